"""What the log says of topics and settings: a line when one comes or goes, or has no effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from calls import create_topic
from in_process import running_broker
from ottla.client import Admin
from wire import WireClient


def test_topics_that_come_and_go_and_settings_in_vain_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "ottla.node")
    with (
        running_broker(tmp_path) as running,
        WireClient(running.bootstrap) as client,
        Admin(running.bootstrap) as admin,
    ):
        topic = create_topic(client)
        admin.alter_topic_configs(topic, set={"message.downconversion.enable": "false"})
        admin.alter_broker_configs(1, set={"background.threads": "20"})
        admin.alter_broker_configs(1, set={"num.io.threads": "16"})
        admin.delete_topic(topic)
    told = [message for message in caplog.messages if "topic " in message or "threads" in message]
    assert [message.split(":")[0] for message in told] == [
        f"topic {topic} is created, partitions",
        f"topic {topic}",
        "background.threads=20 has no effect",
        "num.io.threads=16 has no effect",
        f"topic {topic} is deleted",
    ]
    assert "message.downconversion.enable=false has no effect" in told[1]
