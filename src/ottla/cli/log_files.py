"""`ottla log dump|verify|repair`: the files of logs, of Ottla or Apache Kafka, with or without a broker."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.options import add_output, add_verb, add_verbs
from ottla.cli.output import Row, print_rows, styled
from ottla.cli.state_records import RECORD_DECODERS
from ottla.log.directory import LOCK
from ottla.log.file_names import parse_directory
from ottla.log.files import DirectoryLocked
from ottla.log.inspection.dump import FileDump, UnknownFile, dump_file
from ottla.log.inspection.file_check import check_place
from ottla.log.inspection.findings import Finding
from ottla.log.inspection.places import Place, PlaceKind, files_in, find_place
from ottla.log.inspection.repair import perform
from ottla.log.inspection.repair_directory import DirectoryRepair, plan_repair
from ottla.log.inspection.repair_plan import Wish
from ottla.log.system_files import SystemFiles
from ottla.model.errors import CorruptData
from ottla.model.topics import TopicPartition

_FILES = SystemFiles()
_ROWS_AT_ONCE = 1_000  # of a table, whose widths are known when all of them are there
_TEXT_WIDTH_MAX = 60
_FINDING_COLUMNS = ("kind", "file", "position", "offset", "problem", "cure")
_STEP_COLUMNS = ("file", "step")
_PLACES = "name a data directory, a partition's directory or a file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)
    dumps = add_verb(verbs, "dump", dump, "show what is in the files")
    _add_paths(dumps)
    dumps.add_argument("--records", action="store_true", help="the records of logs instead of their batches")
    add_output(dumps)
    verifies = add_verb(verbs, "verify", verify, "check every batch, index, snapshot and checkpoint")
    _add_paths(verifies)
    verifies.add_argument("--records", action="store_true", help="decode every record too")
    add_output(verifies)
    repairs = add_verb(verbs, "repair", repair, "make damaged logs whole; without --yes only say how")
    repairs.add_argument("path", type=Path, metavar="PATH", help="a data directory or a partition's")
    given_up = repairs.add_mutually_exclusive_group()
    given_up.add_argument(
        "--cut-at", type=int, metavar="OFFSET", help="give up everything from this offset on (one partition)"
    )
    given_up.add_argument(
        "--drop-corrupt", action="store_true", help="give up the damaged parts; their offsets will be missing"
    )
    repairs.add_argument("-y", "--yes", action="store_true", help="do it")
    add_output(repairs)


def _add_paths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", type=Path, nargs="+", metavar="PATH", help="data directories, partitions' directories, files"
    )


# -- dump --------------------------------------------------------------------------------------------------


def dump(options: argparse.Namespace) -> int:
    dumps = _dumps(options.paths, records=options.records)
    if options.output == "table":
        for number, file in enumerate(dumps):
            _print_table(file, is_first=number == 0)
    else:
        print_rows(({"file": file.path, **row} for file in dumps for row in _rows(file)), options.output)
    return ExitCode.DONE


def _dumps(paths: list[Path], *, records: bool) -> Iterator[FileDump]:
    for place in [_place(path) for path in paths]:
        for path in files_in(_FILES, place):
            try:
                yield dump_file(_FILES, path, records=records, decoders=RECORD_DECODERS)
            except UnknownFile as error:
                cure = "dump knows logs, indexes, snapshots, checkpoints and metadata"
                raise CommandFailed(str(error), cure, ExitCode.WRONG_USE) from None


def _rows(file: FileDump) -> Iterator[Row]:
    """With a last one for what cannot be read, so that the rest is shown."""
    try:
        yield from file.rows
    except (CorruptData, OSError) as error:
        yield {"problem": str(error)}


def _print_table(file: FileDump, *, is_first: bool) -> None:
    print(styled(f"{'' if is_first else chr(10)}{file.path}", "bold"))
    rows = ({name: _shortened(cell) for name, cell in row.items()} for row in _rows(file))
    while part := list(islice(rows, _ROWS_AT_ONCE)):
        columns = dict.fromkeys(name for row in part for name in row if not name.endswith("_base64"))
        used = [name for name in columns if any(row.get(name) is not None for row in part)]
        print_rows(part, "table", used)


def _shortened(cell: Any) -> Any:
    if isinstance(cell, list):
        return ", ".join(f"{header['name']}={header['value']}" for header in cell) or None
    if isinstance(cell, str) and len(cell) > _TEXT_WIDTH_MAX:
        return f"{cell[:_TEXT_WIDTH_MAX]}… ({len(cell)} characters)"
    return cell


# -- verify ------------------------------------------------------------------------------------------------


def verify(options: argparse.Namespace) -> int:
    findings: list[Finding] = []
    for place in [_place(path) for path in options.paths]:
        try:
            findings += check_place(_FILES, place, look_inside=options.records)
        except ValueError as error:
            raise CommandFailed(str(error), _PLACES, ExitCode.WRONG_USE) from None
    _print_findings(findings, options.output)
    return ExitCode.FAILED if findings else ExitCode.DONE


def _print_findings(findings: list[Finding], form: str) -> None:
    if findings or form != "table":
        print_rows(map(_finding_row, findings), form, _FINDING_COLUMNS)
    else:
        print("Everything is whole.")


def _finding_row(finding: Finding) -> Row:
    return {
        "kind": finding.kind.value,
        "file": finding.path,
        "position": finding.position,
        "offset": finding.offset,
        "problem": finding.problem,
        "cure": finding.cure,
    }


# -- repair ------------------------------------------------------------------------------------------------


def repair(options: argparse.Namespace) -> int:
    place = _place(options.path)
    only = _only_partition(place, options.cut_at)
    try:
        lock = _FILES.lock(os.path.join(place.log_directory, LOCK))
    except DirectoryLocked:
        raise CommandFailed(
            f"a broker uses {place.log_directory}", "stop it first; `ottla log verify` works beside it"
        ) from None
    try:
        planned = plan_repair(_FILES, place.log_directory, only, Wish(options.cut_at, options.drop_corrupt))
        if options.yes:
            for step in planned.steps:
                perform(_FILES, step)
    finally:
        lock.release()
    if planned.steps or options.output != "table":
        rows: list[Row] = [{"file": step.path, "step": str(step)} for step in planned.steps]
        print_rows(rows, options.output, _STEP_COLUMNS)
    _conclude(planned, is_done=options.yes)
    return ExitCode.FAILED if planned.left else ExitCode.DONE


def _only_partition(place: Place, cut_at: int | None) -> TopicPartition | None:
    if place.kind is PlaceKind.LOG_DIRECTORY:
        if cut_at is not None:
            cure = "name the directory of that partition"
            raise CommandFailed("--cut-at is for one partition", cure, ExitCode.WRONG_USE)
        return None
    partition = parse_directory(os.path.basename(place.path))
    if place.kind is PlaceKind.FILE or partition is None:
        cure = "name the partition's directory, as it lies in its data directory"
        raise CommandFailed(f"{place.path} cannot be repaired alone", cure, ExitCode.WRONG_USE)
    return partition


def _conclude(planned: DirectoryRepair, *, is_done: bool) -> None:
    """To stderr: the steps are the output."""
    if not (planned.steps or planned.left):
        print("Everything is whole.", file=sys.stderr)
    elif planned.steps and is_done:
        print(
            f"Done: {len(planned.steps)} steps. What was taken away lies beside as *.removed.",
            file=sys.stderr,
        )
    elif planned.steps:
        print("Nothing was changed; --yes does it.", file=sys.stderr)
    for finding in planned.left:
        place = "" if finding.position is None else f" at {finding.position}"
        print(f"left: {finding.path}{place}: {finding.problem}\n      {finding.cure}", file=sys.stderr)


def _place(path: Path) -> Place:
    try:
        return find_place(_FILES, str(path))
    except FileNotFoundError:
        raise CommandFailed(f"{path} does not exist", exit_code=ExitCode.NOT_FOUND) from None
    except ValueError as error:
        raise CommandFailed(str(error), _PLACES, ExitCode.WRONG_USE) from None
