"""Every format of a source, through a run: what decodes becomes rows, what does not becomes a dead letter."""

from __future__ import annotations

import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import fastavro
import pytest

from ottla.client import Admin, Producer
from ottla.testing import BrokerProcess
from pipeline.commands import QUICK, Ottla, produce

pytestmark = pytest.mark.timeout(300)

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
}
DEFINITION = f"""\
[pipeline]
name = "formats"
{QUICK}
[source.rows]
topic = "formats.csv"
format = "csv"
schema = "id BIGINT, day DATE"
options = {{ sep = ";", dateFormat = "dd.MM.yyyy" }}

[source.orders]
topic = "formats.avro"
format = "avro"
schema = "id BIGINT, name STRING"
avro_schema = "order.avsc"

[source.lines]
topic = "formats.text"
format = "text"

[source.blobs]
topic = ["formats.raw"]
format = "raw"
start = "1"
"""
SINK = """
[sink.{name}]
input = "{name}"
sqlite = "all.db"
table = "{name}"
"""


def avro(number: int, name: str) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, AVRO, {"id": number, "name": name})
    return stream.getvalue()


def rows_of(folder: Path, table: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / "all.db")) as database:
        return sorted(database.execute(f"SELECT * FROM {table}").fetchall())


def test_every_format_is_read_and_what_is_none_of_it_becomes_a_letter(
    ottla: Ottla, broker: BrokerProcess, tmp_path: Path
) -> None:
    folder = tmp_path / "formats"
    folder.mkdir()
    sinks = "".join(SINK.format(name=name) for name in ("rows", "orders", "lines", "blobs"))
    (folder / "pipeline.toml").write_text(DEFINITION + sinks)
    (folder / "order.avsc").write_text(json.dumps(AVRO))
    produce(broker, "formats.csv", ["1;01.11.2026", "2;02.11.2026", "three;03.11.2026"])
    framed = b"\x00\x00\x00\x00\x07" + avro(2, "Grace")  # as Confluent's serializers write it
    produce(broker, "formats.avro", [avro(1, "Ada"), framed, b"\xff\xff\xff"])
    produce(broker, "formats.text", ["hello", "wörld"])
    with Admin(broker.bootstrap) as admin:
        admin.create_topic("formats.raw", partitions=1)
    with Producer(broker.bootstrap) as producer:
        producer.send("formats.text", None, partition=0)
        producer.send("formats.raw", b"before the start")
        producer.send("formats.raw", b"\xff\x00", b"key")
    ottla("run", "--once", str(folder))
    assert rows_of(folder, "rows") == [(1, "2026-11-01"), (2, "2026-11-02")]
    assert rows_of(folder, "orders") == [(1, "Ada"), (2, "Grace")]
    assert rows_of(folder, "lines") == [("hello",), ("wörld",)]
    assert rows_of(folder, "blobs") == [(b"key", b"\xff\x00")]
    letters = ottla.rows("dlq", "show", str(folder))
    assert sorted(
        (each["part"], each["reason"], each["topic"], each["source_offset"]) for each in letters
    ) == [
        ("lines", "there is no value", "formats.text", 1),
        ("orders", "the value is no avro of the schema", "formats.avro", 1),
        ("rows", "the value is no csv of the schema", "formats.csv", 1),
    ]
    by_part = {each["part"]: each for each in letters}
    assert by_part["rows"]["value"] == "three;03.11.2026"
    assert by_part["orders"]["value_base64"] == "////"
    assert by_part["lines"]["value"] is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n"type": nothing}', "order.avsc:2: no JSON"),
        ('{"type": "recrd"}', "order.avsc: no schema of Avro"),
    ],
)
def test_a_broken_schema_of_avro_is_named(ottla: Ottla, tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "pipeline.toml").write_text(DEFINITION + SINK.format(name="orders"))
    (tmp_path / "order.avsc").write_text(text)
    ottla("check", "--offline", str(tmp_path), code=2)
    assert expected in ottla.err
