"""`ottla pipeline dlq ls|show|replay`: the dead letters of a pipeline."""

from __future__ import annotations

import argparse
import base64
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.options import confirm
from ottla.cli.output import Row, print_done, print_plan, print_rows
from ottla.cli.pipeline_projects import brokers_of, explained_problems, loaded
from ottla.client.access import Access
from ottla.pipeline.letters import Letter, read_letters, unreplayed
from ottla.pipeline.letters import replay as send_back

Place = tuple[int, int]  # partition and offset of a letter

_LISTED = ("part", "reason", "letters", "not_replayed")
_SHOWN_MAX = 10  # in a table, unless -n says more; programs get all
_SHOWN = (
    "partition",
    "offset",
    "time",
    "part",
    "reason",
    "topic",
    "source_partition",
    "source_offset",
    "value",
)


@contextmanager
def _letters(options: argparse.Namespace) -> Iterator[tuple[Access, str, str]]:
    """(brokers, topic, group that remembers what was replayed)"""
    with explained_problems():
        pipeline = loaded(options)
        yield brokers_of(options, pipeline), pipeline.dead_letters, f"{pipeline.name}.replay"


def ls(options: argparse.Namespace) -> int:
    with _letters(options) as (access, topic, group):
        letters = Counter((each.part, each.reason) for each in read_letters(access, topic))
        left = Counter((each.part, each.reason) for each in unreplayed(access, topic, group))
    rows: list[Row] = [
        {"part": part, "reason": reason, "letters": count, "not_replayed": left[part, reason]}
        for (part, reason), count in letters.most_common()
    ]
    print_rows(rows, options.output, _LISTED)
    return ExitCode.DONE


def show(options: argparse.Namespace) -> int:
    with _letters(options) as (access, topic, _):
        letters = list(read_letters(access, topic))
    shown_max = _SHOWN_MAX if options.n is None and options.output == "table" else options.n
    if shown_max is not None:
        letters = letters[max(0, len(letters) - shown_max) :]
    print_rows([_row(each) for each in letters], options.output, _SHOWN)
    return ExitCode.DONE


def replay(options: argparse.Namespace) -> int:
    with _letters(options) as (access, topic, group):
        letters = unreplayed(access, topic, group)
        mended = _mended(Path(options.mended)) if options.mended else {}
        if mended:
            _check_places(options.mended, mended, read_letters(access, topic))
        rows = _plan(letters, mended)
        print_plan(rows, options.output)
        sentence = f"{len(letters)} letters sent back"
        if letters and not options.dry_run:
            confirm(f"Send {len(letters)} letters back to where they came from?", yes=options.yes)
            send_back(access, topic, group, letters, mended)
    print_done(rows, options.output, sentence, done=not options.dry_run)
    return ExitCode.DONE


def _plan(letters: list[Letter], mended: Mapping[Place, bytes | None]) -> list[Row]:
    """What goes where, and how much of it is no longer as it came."""
    counts = Counter((each.part, each.reason, each.topic) for each in letters)
    changed = Counter(
        (each.part, each.reason, each.topic)
        for each in letters
        if mended.get((each.partition, each.offset), each.value) != each.value
    )
    return [
        {
            "part": part,
            "reason": reason,
            "to_topic": to,
            "letters": count,
            "mended": changed[part, reason, to],
        }
        for (part, reason, to), count in counts.items()
    ]


def _check_places(file: str, mended: Mapping[Place, bytes | None], letters: Iterable[Letter]) -> None:
    """A line of a letter that was replayed before does no harm; one of no letter is a mistake."""
    unknown = mended.keys() - {(each.partition, each.offset) for each in letters}
    if unknown:
        partition, offset = min(unknown)
        raise CommandFailed(
            f"{file}: there is no letter at partition {partition}, offset {offset}",
            "`ottla pipeline dlq show -o jsonl` has the lines; leave partition and offset as they are",
            ExitCode.WRONG_USE,
        )


def _row(letter: Letter) -> Row:
    return {
        "partition": letter.partition,
        "offset": letter.offset,
        "time": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(letter.timestamp_ms / 1000)),
        "part": letter.part,
        "reason": letter.reason,
        "topic": letter.topic,
        "source_partition": letter.source_partition,
        "source_offset": letter.source_offset,
        **_text("key", letter.key),
        **_text("value", letter.value),
    }


def _text(name: str, data: bytes | None) -> dict[str, str | None]:
    """Bytes that are no text are shown in base64, under a name that says so."""
    try:
        return {name: None if data is None else data.decode()}
    except UnicodeDecodeError:
        assert data is not None
        return {f"{name}_base64": base64.b64encode(data).decode()}


def _mended(path: Path) -> dict[Place, bytes | None]:
    """New values by the place of their letters."""
    mended: dict[Place, bytes | None] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            told = json.loads(line)
            place = told["partition"], told["offset"]
            if "value_base64" in told:
                mended[place] = base64.b64decode(told["value_base64"])
            else:
                mended[place] = None if told["value"] is None else told["value"].encode()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CommandFailed(
                f"{path}:{number}: no line of `ottla pipeline dlq show -o jsonl` ({error})",
                exit_code=ExitCode.WRONG_USE,
            ) from None
    return mended
