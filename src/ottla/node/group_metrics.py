"""Consumer groups in Prometheus' text format, under kafka_exporter's names: how far they are, how far behind.

In pieces of a few dozen offsets, as the rest of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from ottla.coordinator.offsets import Place
from ottla.model.values import NamedTuple
from ottla.replica.partition import Partition
from ottla.replica.partitions import Partitions
from ottla.server.group_service import GroupService

_OFFSETS_PER_PIECE = 32


class _Family(NamedTuple):
    name: str
    text: str
    value: Callable[[int, Partition | None], int | None]  # of a committed offset; None: not known


_FAMILIES = (
    _Family("kafka_consumergroup_current_offset", "The offset a group has committed.", lambda at, _: at),
    _Family(
        "kafka_consumergroup_lag",
        "Records between what a group has committed and what it could read.",
        lambda at, partition: max(0, partition.high_watermark - at) if partition is not None else None,
    ),
)


def group_pieces(groups: GroupService, partitions: Partitions) -> Iterator[str]:
    machines = [partition.machine for partition in groups.loaded_partitions()]
    yield _head("kafka_consumergroup_members", "Members of a group.")
    members = [(name, len(group.members)) for machine in machines for name, group in machine.groups.items()]
    for first in range(0, len(members), _OFFSETS_PER_PIECE):
        yield "".join(
            f'kafka_consumergroup_members{{consumergroup="{escaped(name)}"}} {count}\n'
            for name, count in members[first : first + _OFFSETS_PER_PIECE]
        )
    for family in _FAMILIES:
        sums: dict[tuple[str, str], int] = {}
        yield _head(family.name, family.text)
        places = (
            (machine.offsets.get(place), place)
            for machine in machines
            for name in list(machine.offsets.groups())
            for place in machine.offsets.places(name)
        )
        while part := list(islice(places, _OFFSETS_PER_PIECE)):
            yield "".join(
                _sample(family, place, value.offset, partitions, sums)
                for value, place in part
                if value is not None
            )
        yield from _sum_pieces(family, sums)


def _sample(
    family: _Family, place: Place, offset: int, partitions: Partitions, sums: dict[tuple[str, str], int]
) -> str:
    value = family.value(offset, partitions.named(place.topic, place.partition))
    if value is None:
        return ""
    key = place.group_id, place.topic
    sums[key] = sums.get(key, 0) + value
    return f'{family.name}{{{_labels(*key)},partition="{place.partition}"}} {value}\n'


def _sum_pieces(family: _Family, sums: dict[tuple[str, str], int]) -> Iterator[str]:
    name = f"{family.name}_sum"
    yield _head(name, f"{family.text} All partitions of a topic.")
    samples = iter(sums.items())
    while part := list(islice(samples, _OFFSETS_PER_PIECE)):
        yield "".join(f"{name}{{{_labels(*key)}}} {value}\n" for key, value in part)


def _head(name: str, text: str) -> str:
    return f"# HELP {name} {text}\n# TYPE {name} gauge\n"


def _labels(group_id: str, topic: str) -> str:
    return f'consumergroup="{escaped(group_id)}",topic="{topic}"'


def escaped(text: str) -> str:
    """As a label's value."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
