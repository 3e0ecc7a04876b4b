"""What nobody reads is looked at all the same, slowly, and a damaged partition goes offline by itself."""

from __future__ import annotations

import time
from pathlib import Path

from calls import append, batch_of, create_topic, produce, values_from
from in_process import running_broker
from ottla.model.errors import ErrorCode
from wire import WireClient

FAST = {"ottla.log.scrub.bytes.per.second": str(2**30), "log.initial.task.delay.ms": "0"}


def test_a_damaged_middle_is_found_while_the_rest_is_served(tmp_path: Path) -> None:
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        damaged = create_topic(client, "damaged", configs={"segment.bytes": str(1024 * 1024)})
        healthy = create_topic(client, "healthy")
        for _ in range(8):
            append(client, damaged, bytes(400_000))
        append(client, healthy, b"fine")
    first, *_ = sorted(tmp_path.glob("log/damaged-0/*.log"))
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 1
    first.write_bytes(content)

    with running_broker(tmp_path, FAST) as running, WireClient(running.bootstrap) as client:
        deadline = time.monotonic() + 30
        while running.metric("partitions.offline") == 0:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        refused = produce(client, damaged, batch_of(b"v"))
        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "is damaged at position" in (refused.error_message or "")
        assert running.metric("log.scrub.damages") == 1
        append(client, healthy, b"still")
        assert values_from(client, healthy) == [b"fine", b"still"]


def test_the_scrub_can_be_switched_off(tmp_path: Path) -> None:
    with running_broker(tmp_path, {**FAST, "ottla.log.scrub.bytes.per.second": "0"}) as running:
        with WireClient(running.bootstrap) as client:
            append(client, create_topic(client), b"v")
        time.sleep(0.2)
        assert running.metric("log.scrub.bytes") == 0
