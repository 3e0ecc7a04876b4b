"""The text files beside the logs, as Kafka writes and reads them."""

from __future__ import annotations

import threading

import pytest

from faults.power_cut import SimulatedFiles
from ottla.log import checkpoints, file_names
from ottla.log.ballast import Ballast
from ottla.log.checkpoint_writes import CheckpointWriter
from ottla.model.errors import CorruptData
from ottla.model.topics import TopicId, TopicPartition, parse_topic_id


def test_offset_checkpoint_has_kafkas_bytes() -> None:
    offsets = {TopicPartition("orders", 0): 5, TopicPartition("a.b-c_d", 12): 2**62}
    data = b"0\n2\norders 0 5\na.b-c_d 12 4611686018427387904\n"
    assert checkpoints.encode_offsets(offsets) == data
    assert checkpoints.decode_offsets(data) == offsets
    assert checkpoints.decode_offsets(b"") == {}
    assert checkpoints.decode_offsets(b"0\n0\n") == {}


@pytest.mark.parametrize(
    "data",
    [b"1\n0\n", b"x\n", b"0\n1\n", b"0\n1\norders 0\n", b"0\n1\norders zero 5\n", b"0\n2\norders 0 5\n"],
)
def test_a_damaged_checkpoint_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptData):
        checkpoints.decode_offsets(data)


def test_partition_metadata_has_kafkas_bytes() -> None:
    topic_id = parse_topic_id("AAECAwQFBgcICQoLDA0ODw")
    data = b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert checkpoints.encode_partition_metadata(topic_id) == data
    assert checkpoints.decode_partition_metadata(data + b"\n") == TopicId(bytes(range(16)))
    for damaged in (b"", b"version: 1\ntopic_id: x", b"version: 0\n", b"version: 0\ntopic_id: short"):
        with pytest.raises(CorruptData):
            checkpoints.decode_partition_metadata(damaged)


def test_clean_shutdown_marker_has_kafkas_bytes() -> None:
    assert checkpoints.encode_clean_shutdown(42) == b'{"version":0,"brokerEpoch":42}'


def test_names_are_kafkas() -> None:
    assert file_names.offset_name(42, ".log") == "00000000000000000042.log"
    assert file_names.parse_offset("00000000000000000042.log") == 42
    assert file_names.parse_offset("leader-epoch-checkpoint") is None
    assert file_names.parse_directory("my-topic-7") == TopicPartition("my-topic", 7)
    for no_partition in ("orders", "orders-", "-1", "orders-x", "bad name-1", "orders-0.0123-delete"):
        assert file_names.parse_directory(no_partition) is None
    long_name = file_names.delete_directory_name(TopicPartition("t" * 249, 3))
    assert len(long_name) == 255
    assert file_names.is_delete_directory(long_name)
    assert file_names.delete_directory_name(TopicPartition("a", 3)).startswith("a-3.")


def test_older_content_never_replaces_newer() -> None:
    files = SimulatedFiles()
    writer = CheckpointWriter(files, Ballast(files, "/"))
    old = writer.begin([("/a", b"old"), ("/b", b"old")])
    new = writer.begin([("/a", b"new")])
    new.run()
    thread = threading.Thread(target=old.run)
    thread.start()
    thread.join()
    assert (files.read_all("/a"), files.read_all("/b")) == (b"new", b"old")
    assert old.is_done
    assert new.is_done
