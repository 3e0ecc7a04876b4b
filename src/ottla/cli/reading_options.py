"""Options of everything that shows records: `ottla consume`, `ottla topic tail`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ottla.cli.options import add_cluster, lazily


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Options of everything that shows records."""
    parser.add_argument(
        "-p", "--partition", action="append", type=int, metavar="N", help="only this one; may be repeated"
    )
    parser.add_argument(
        "--filter", action="append", default=[], type=lazily("record_filters.record_filter"), metavar="TEST",
        help="key=TEXT, value~REGEX, header.NAME!=TEXT, value.FIELD=TEXT of JSON; several must all hold",
    )  # fmt: skip
    parser.add_argument(
        "-f", "--format", type=lazily("record_forms.text_form"), metavar="FORMAT",
        help=r"as '%%t %%p %%o %%k %%v\n': topic, partition, offset, key, value; %%T time, %%h headers",
    )  # fmt: skip
    parser.add_argument(
        "--decode", choices=("avro", "json", "msgpack"), help="what values are; they are shown as JSON then"
    )
    parser.add_argument(
        "--schema", type=Path, metavar="FILE", help="of --decode avro: the schema that values are read by"
    )
    parser.add_argument(
        "--registry", metavar="URL", help="of --decode avro: values carry the id of a schema that is there"
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "json", "jsonl", "csv"), default="table",
        help="table shows values; json and jsonl a line for each record, which `ottla produce` takes",
    )  # fmt: skip
    parser.add_argument("--committed", action="store_true", help="leave out aborted and open transactions")
    add_cluster(parser)
