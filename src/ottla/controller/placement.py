"""Which brokers hold a partition: leaders and replicas spread evenly over brokers, and over racks if known.

Kafka's own algorithm: first replicas go round the brokers from a random start; the others follow at a
distance that grows with each round, so that the followers of one broker's partitions are spread too. With
racks the brokers are taken in turn from each rack, and a rack gets a second replica only when every rack has
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random

from ottla.model.errors import ErrorCode, Refused


def place(
    racks: Mapping[int, str | None],
    partitions: int,
    replication_factor: int,
    random: Random,
    *,
    first_partition: int = 0,
    start_broker: int | None = None,
) -> list[tuple[int, ...]]:
    """Replicas of `partitions` partitions on the brokers that `racks` names, the preferred leader first.

    A topic that grows passes `start_broker`, the leader of its partition 0, and goes on where it stopped.
    """
    if replication_factor > len(racks):
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} is larger than the number of brokers, {len(racks)}",
        )
    # A broker without a rack makes racks meaningless for all (Kafka's 'safe' mode).
    rack_of = {broker: rack for broker, rack in racks.items() if rack is not None}
    aware = len(rack_of) == len(racks)
    brokers = alternate_racks(rack_of) if aware else sorted(racks)
    if start_broker is None:
        start, shift = random.randrange(len(brokers)), random.randrange(len(brokers))
    else:
        start = shift = _first_at_or_above(start_broker, sorted(racks))
    placed = []
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % len(brokers) == 0:
            shift += 1
        first = (partition + start) % len(brokers)
        if aware:
            placed.append(_spread_over_racks(brokers, rack_of, first, shift, replication_factor))
        else:
            followers = (
                brokers[_follower(first, shift, n, len(brokers))] for n in range(replication_factor - 1)
            )
            placed.append((brokers[first], *followers))
    return placed


def alternate_racks(rack_of: Mapping[int, str]) -> list[int]:
    """Brokers in turn from each rack: racks a: 0 1 2, b: 3, c: 4 5 give 0 3 4 1 5 2."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(rack_of):
        by_rack.setdefault(rack_of[broker], []).append(broker)
    turns = max(map(len, by_rack.values()))
    return [
        by_rack[rack][turn] for turn in range(turns) for rack in sorted(by_rack) if turn < len(by_rack[rack])
    ]


def _spread_over_racks(
    brokers: Sequence[int], rack_of: Mapping[int, str], first: int, shift: int, replication_factor: int
) -> tuple[int, ...]:
    rack_count = len(set(rack_of.values()))
    replicas = [brokers[first]]
    racks_used = {rack_of[brokers[first]]}
    step = 0
    while len(replicas) < replication_factor:
        broker = brokers[_follower(first, shift * rack_count, step, len(brokers))]
        step += 1
        rack_is_free = rack_of[broker] not in racks_used or len(racks_used) == rack_count
        if rack_is_free and broker not in replicas:
            replicas.append(broker)
            racks_used.add(rack_of[broker])
    return tuple(replicas)


def _follower(first: int, shift: int, n: int, broker_count: int) -> int:
    """Index of the n-th follower; never the leader's own."""
    return (first + 1 + (shift + n) % (broker_count - 1)) % broker_count


def _first_at_or_above(broker: int, brokers: Iterable[int]) -> int:
    return next((index for index, candidate in enumerate(brokers) if candidate >= broker), 0)
