"""Where to start and to stop, as options say it: a word, offsets or times by partition, or one time for all.

`resolve` asks the brokers and gives offsets. It clamps nothing: what is out of range is for `loss` to judge.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ottla.client.admin_values import FoundOffset
from ottla.client.cluster_view import Topic
from ottla.model.topics import TopicPartition
from ottla.spark.errors import InvalidOption
from ottla.spark.offsets import Offsets, from_json

EARLIEST = "earliest"
LATEST = "latest"
_SPECIAL = {-2: EARLIEST, -1: LATEST}


class Log(Protocol):
    """Who knows what partitions hold: brokers (`client.admin.Admin`), or files (`files.LogFiles`)."""

    def topics(self, names: Iterable[str] | None = None) -> tuple[Topic, ...]: ...

    def earliest_offsets(self, partitions: Collection[TopicPartition], /) -> Offsets: ...

    def latest_offsets(
        self, partitions: Collection[TopicPartition], /, *, read_committed: bool = False
    ) -> Offsets: ...

    def list_offsets(
        self, times_ms: Mapping[TopicPartition, int], /, *, read_committed: bool = False
    ) -> dict[TopicPartition, FoundOffset]: ...


@dataclass(frozen=True)
class Places:
    option: str  # who said it
    word: str | None = None  # EARLIEST or LATEST, for all partitions
    offsets: Mapping[TopicPartition, int] | None = None  # -2 and -1 are earliest and latest
    times_ms: Mapping[TopicPartition, int] | None = None
    time_ms: int | None = None  # for all partitions
    missing: str = "error"  # "latest": a time behind the last record means the end


def parse_places(option: str, text: str, *, words: Collection[str]) -> Places:
    word = text.strip().lower()
    if word in words:
        return Places(option, word=word)
    if word in (EARLIEST, LATEST):
        raise InvalidOption(f"{option} cannot be {word} here: {_advice(option, words)}")
    if not word.startswith("{"):
        raise InvalidOption(f"{option} is {text!r}: {_advice(option, words)}")
    places = by_partition(option, text, times=False)
    for target, offset in (places.offsets or {}).items():
        special = _SPECIAL.get(offset)
        if offset < 0 and special not in words:
            raise InvalidOption(f"{option}: {offset} for {target} has no meaning: {_advice(option, words)}")
    return places


def by_partition(option: str, text: str, *, times: bool, missing: str = "error") -> Places:
    shape = '{"orders":{"0":23,"1":-2}}' if not times else '{"orders":{"0":1793527200000}}'
    try:
        parsed = from_json(json.loads(text))
    except (ValueError, AttributeError, TypeError):
        raise InvalidOption(f"{option} is no JSON of topics and partitions: write it as {shape}") from None
    if not parsed or any(type(value) is not int or (times and value < 0) for value in parsed.values()):
        raise InvalidOption(f"{option} needs a whole number for each partition: write it as {shape}")
    if times:
        return Places(option, times_ms=parsed, missing=missing)
    return Places(option, offsets=parsed)


def by_time(option: str, time_ms: int, *, missing: str) -> Places:
    return Places(option, time_ms=time_ms, missing=missing)


def resolve(
    places: Places, log: Log, partitions: Collection[TopicPartition], *, read_committed: bool
) -> Offsets:
    """The offset of each partition."""
    if places.word is not None:
        return _ends(log, dict.fromkeys(partitions, places.word), read_committed)
    if places.time_ms is not None:
        return _at_times(log, places, dict.fromkeys(partitions, places.time_ms), read_committed)
    given = places.offsets or places.times_ms or {}
    _check_complete(places.option, given, partitions)
    if places.times_ms is not None:
        return _at_times(log, places, given, read_committed)
    words = {target: _SPECIAL[offset] for target, offset in given.items() if offset in _SPECIAL}
    return {**given, **_ends(log, words, read_committed)}


def _ends(log: Log, words: Mapping[TopicPartition, str], read_committed: bool) -> Offsets:
    first = [target for target, word in words.items() if word == EARLIEST]
    last = [target for target, word in words.items() if word == LATEST]
    return {
        **log.earliest_offsets(first),
        **log.latest_offsets(last, read_committed=read_committed),
    }


def _at_times(
    log: Log, places: Places, times_ms: Mapping[TopicPartition, int], read_committed: bool
) -> Offsets:
    found = log.list_offsets(times_ms, read_committed=read_committed)
    late = [target for target, each in found.items() if each.offset is None]
    if late and places.missing == "error":
        raise InvalidOption(
            f"{places.option}: {late[0]} has no record at or after {times_ms[late[0]]}; take an earlier "
            "time, or set startingOffsetsByTimestampStrategy to latest to begin with what comes next"
        )
    ends = log.latest_offsets(late, read_committed=read_committed)
    return {target: ends[target] if each.offset is None else each.offset for target, each in found.items()}


def _check_complete(
    option: str, given: Mapping[TopicPartition, int], partitions: Collection[TopicPartition]
) -> None:
    missing = sorted(set(partitions) - set(given))
    extra = sorted(set(given) - set(partitions))
    if missing:
        raise InvalidOption(
            f"{option} says nothing of {missing[0]}: name all partitions (-2 is earliest, -1 latest)"
        )
    if extra:
        raise InvalidOption(f"{option} names {extra[0]}, which the query does not read: leave it out")


def _advice(option: str, words: Collection[str]) -> str:
    return f'write {" or ".join(words)}, or offsets of all partitions as {{"orders":{{"0":23,"1":42}}}}'
