"""Damage in one partition's files is that partition's trouble: it says so, and everything else goes on."""

from __future__ import annotations

from pathlib import Path

from calls import append, at, create_topic, fetch, fetch_request, list_offset, told, values_from
from in_process import running_broker
from ottla.model.errors import ErrorCode
from wire import WireClient

SMALL_SEGMENTS = {"segment.bytes": str(1024 * 1024)}


def test_a_damaged_segment_is_an_error_of_its_partition_only(tmp_path: Path) -> None:
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        damaged = create_topic(client, "damaged", configs=SMALL_SEGMENTS)
        healthy = create_topic(client, "healthy")
        for number in range(8):
            append(client, damaged, bytes([number]) * 400_000)
        append(client, healthy, b"fine")
    (first, *_) = sorted(tmp_path.glob("log/damaged-0/*.log"))
    content = first.read_bytes()
    first.write_bytes(content[: len(content) // 2] + b"\xff" * (len(content) - len(content) // 2))
    for index in tmp_path.glob("log/damaged-0/*index"):
        index.write_bytes(b"")

    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        (data,) = fetch(client, damaged, at(1))
        assert data.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        both = client.call(fetch_request(healthy, at(0)), 12)
        assert told(both.responses)[0].error_code == ErrorCode.NONE
        assert values_from(client, healthy) == [b"fine"]
        list_offset(client, damaged, 1)  # looks into the file; the connection survives
        running.on_owner(running.broker._housekeeping._retain_all)
        append(client, healthy, b"still")
        assert values_from(client, healthy) == [b"fine", b"still"]


def test_a_segment_that_is_gone_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        lossy = create_topic(client, "lossy", configs=SMALL_SEGMENTS)
        healthy = create_topic(client, "healthy")
        for number in range(8):
            append(client, lossy, bytes([number]) * 400_000)
        append(client, healthy, b"fine")
    gone = sorted(tmp_path.glob("log/lossy-0/*.log"))[1]
    gone.unlink()

    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        (data,) = fetch(client, lossy, at(0))
        assert data.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert values_from(client, healthy) == [b"fine"]
        (offline,) = running.on_owner(lambda: running.broker.partitions.offline)
        assert f"{gone} is gone; it held offsets " in offline.reason
