"""The hash of topics that consumer groups keep: Kafka's own values (computed by its Utils of 4.3)."""

from __future__ import annotations

from coordinator.bench import topic_id
from ottla.coordinator.known_topics import KnownTopic, metadata_hash
from ottla.coordinator.xxh3 import xxh3_64
from ottla.model.topics import TopicId

FOO = KnownTopic(
    TopicId(bytes.fromhex("0123456789abcdeffedcba9876543210")), 2, (("rack1", "rack0"), ("rack2", "rack1"))
)
BAR = KnownTopic(TopicId(b"\x11" * 8 + b"\x22" * 8), 1)


def test_groups_have_the_hash_that_kafka_gives_them() -> None:
    assert metadata_hash({}) == 0
    assert metadata_hash({"foo": FOO}) == -3_651_539_661_068_893_492
    assert metadata_hash({"foo": FOO, "bar": BAR}) == -556_879_919_459_959_918
    assert metadata_hash({"bar": BAR, "foo": FOO}) == -556_879_919_459_959_918, "in whatever order"


def test_another_count_id_name_or_rack_gives_another_hash() -> None:
    topic = KnownTopic(topic_id("t"), 3)
    others = [
        {"t": topic._replace(partitions=4)},
        {"t": topic._replace(id=topic_id("again"))},
        {"u": topic},
        {"t": topic._replace(racks=((), ("a",), ()))},
    ]
    assert len({metadata_hash(each) for each in [{"t": topic}, *others]}) == 5


def test_every_length_is_hashed_as_the_reference_does() -> None:
    """Each of these takes another way; the values are those of xxHash 0.8."""
    known = {
        8: 0xB88DEE77F6BF6980,
        12: 0x305C5BAE3681D0E0,
        100: 0x6DBB812CF19D012E,
        200: 0x7C64F3B17285E96A,
        241: 0x541B19226F0052E8,
        1024: 0xDC5ACF0B043C445B,
        1025: 0xE1D9CD946277AE26,
        3000: 0x6168BB188259CCCF,
    }
    found = {length: xxh3_64(bytes(number * 7 % 256 for number in range(length))) for length in known}
    assert found == known
