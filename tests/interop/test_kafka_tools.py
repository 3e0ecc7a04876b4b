"""Kafka's own command line tools work against the broker."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from compat.broker import CreateTopic, unique_name
from compat.cases import QUICK
from compat.clients.confluent import Confluent
from compat.record import Record
from interop.kafka_tool import kafka_tool
from ottla.coordinator.state_log import partition_for
from ottla.model.topics import OFFSETS_TOPIC

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


def _topics(bootstrap: str, *arguments: str) -> str:
    return kafka_tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", bootstrap, *arguments)


def test_topic_command_creates_describes_alters_lists_and_deletes(bootstrap: str) -> None:
    topic = unique_name("tooled")
    of_topic = ("--topic", topic)
    out = _topics(
        bootstrap,
        "--create",
        *of_topic,
        "--partitions",
        "2",
        "--replication-factor",
        "1",
        "--config",
        "retention.ms=5000",
    )
    assert f"Created topic {topic}." in out
    assert topic in _topics(bootstrap, "--list").split()
    described = _topics(bootstrap, "--describe", *of_topic)
    assert re.search(
        r"PartitionCount: 2\s+ReplicationFactor: 1\s+Configs: .*retention\.ms=5000", described
    ), described
    assert len(re.findall(r"Partition: \d+\s+Leader: \d+\s+Replicas: \d+\s+Isr: \d+", described)) == 2
    _topics(bootstrap, "--alter", *of_topic, "--partitions", "4")
    assert "PartitionCount: 4" in _topics(bootstrap, "--describe", *of_topic)
    _topics(bootstrap, "--delete", *of_topic)
    assert topic not in _topics(bootstrap, "--list").split()


def test_config_command_changes_and_describes_topics(bootstrap: str, create_topic: CreateTopic) -> None:
    topic = create_topic("configured")

    def configs(*arguments: str) -> str:
        of_topic = ("--entity-type", "topics", "--entity-name", topic)
        return kafka_tool("kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap, *of_topic, *arguments)

    configs("--alter", "--add-config", "retention.ms=6000,cleanup.policy=[compact,delete]")
    described = configs("--describe")
    assert "retention.ms=6000" in described
    assert "cleanup.policy=compact,delete" in described
    configs("--alter", "--delete-config", "retention.ms")
    assert "retention.ms" not in configs("--describe")
    assert "retention.ms=604800000" in configs("--describe", "--all")


def test_config_command_describes_the_broker(bootstrap: str) -> None:
    described = kafka_tool(
        "kafka.admin.ConfigCommand",
        "--bootstrap-server",
        bootstrap,
        "--entity-type",
        "brokers",
        "--describe",
        "--all",
    )
    assert "message.max.bytes=1048588" in described


def test_offset_shell_shows_the_ends(bootstrap: str, create_topic: CreateTopic) -> None:
    topic = create_topic("counted", partitions=2)
    Confluent().write(bootstrap, topic, 1, [Record("one", value=b"v") for _ in range(7)], QUICK)

    def offsets(at: str) -> list[str]:
        shell = "org.apache.kafka.tools.GetOffsetShell"
        return kafka_tool(shell, "--bootstrap-server", bootstrap, "--topic", topic, "--time", at).split()

    assert offsets("latest") == [f"{topic}:0:0", f"{topic}:1:7"]
    assert offsets("earliest") == [f"{topic}:0:0", f"{topic}:1:0"]


def test_delete_records_command_moves_the_front(
    bootstrap: str, create_topic: CreateTopic, tmp_path: Path
) -> None:
    topic = create_topic("shortened")
    Confluent().write(bootstrap, topic, 0, [Record("one", value=b"v") for _ in range(7)], QUICK)
    request = tmp_path / "offsets.json"
    request.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 3}]})
    )
    command = "org.apache.kafka.tools.DeleteRecordsCommand"
    out = kafka_tool(command, "--bootstrap-server", bootstrap, "--offset-json-file", str(request))
    assert "low_watermark: 3" in out


def test_log_dirs_command_describes_the_topic(bootstrap: str, create_topic: CreateTopic) -> None:
    topic = create_topic("stored")
    Confluent().write(bootstrap, topic, 0, [Record("one", value=bytes(5000))], QUICK)
    command = "org.apache.kafka.tools.LogDirsCommand"
    out = kafka_tool(command, "--bootstrap-server", bootstrap, "--describe", "--topic-list", topic)
    described = json.loads(out.splitlines()[-1])
    [partition] = [
        partition
        for broker in described["brokers"]
        for directory in broker["logDirs"]
        for partition in directory["partitions"]
    ]
    assert partition["partition"] == f"{topic}-0"
    assert 5000 < partition["size"] < 5500


def test_verifiable_producer_sees_every_acknowledgement(bootstrap: str, create_topic: CreateTopic) -> None:
    topic = create_topic("verified")
    out = kafka_tool(
        "org.apache.kafka.tools.VerifiableProducer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--max-messages", "2000", "--throughput", "-1"),
    )
    events = [json.loads(line) for line in out.splitlines()]
    sent = [event for event in events if event["name"] == "producer_send_success"]
    assert sorted(event["offset"] for event in sent) == list(range(2000))
    assert events[-1]["acked"] == 2000


def test_console_producer_and_consumer_talk(bootstrap: str, create_topic: CreateTopic) -> None:
    topic = create_topic("typed")
    of_topic = ("--bootstrap-server", bootstrap, "--topic", topic)
    lines = "".join(f"key{i}:line {i}\n" for i in range(100))
    properties = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    kafka_tool("org.apache.kafka.tools.ConsoleProducer", *of_topic, *properties, stdin=lines)
    out = kafka_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *of_topic,
        *("--partition", "0", "--offset", "earliest", "--max-messages", "100"),
        *("--formatter-property", "print.key=true", "--formatter-property", "key.separator=:"),
    )
    assert out == lines


def test_api_versions_command_lists_what_the_broker_offers(bootstrap: str) -> None:
    out = kafka_tool("org.apache.kafka.tools.BrokerApiVersionsCommand", "--bootstrap-server", bootstrap)
    for api in ("Produce(0)", "Fetch(1)", "ListOffsets(2)", "Metadata(3)", "ApiVersions(18)"):
        assert re.search(re.escape(api) + r": \d+ to \d+ \[usable: \d+\]", out), (
            f"{api} is not usable:\n{out}"
        )


def test_cluster_tool_tells_the_id(bootstrap: str) -> None:
    out = kafka_tool("org.apache.kafka.tools.ClusterTool", "cluster-id", "--bootstrap-server", bootstrap)
    assert re.fullmatch(r"Cluster ID: \S+\s*", out)


def test_features_command_describes_the_cluster(bootstrap: str) -> None:
    kafka_tool("org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", bootstrap, "describe")


def test_config_command_changes_the_broker_and_the_cluster(bootstrap: str) -> None:
    def configs(*arguments: str) -> str:
        return kafka_tool(
            "kafka.admin.ConfigCommand",
            "--bootstrap-server",
            bootstrap,
            "--entity-type",
            "brokers",
            *arguments,
        )

    configs("--entity-default", "--alter", "--add-config", "max.connections=777")
    assert "max.connections=777" in configs("--entity-default", "--describe")
    configs("--entity-default", "--alter", "--delete-config", "max.connections")
    assert "max.connections=777" not in configs("--entity-default", "--describe")


def _groups(bootstrap: str, *arguments: str) -> str:
    name = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    return kafka_tool(name, "--bootstrap-server", bootstrap, *arguments)


def test_group_command_lists_describes_resets_and_deletes(bootstrap: str, create_topic: CreateTopic) -> None:
    topic, group = create_topic("grouped", partitions=2), unique_name("group")
    records = [Record("numbered", value=b"%d" % number) for number in range(10)]
    Confluent().write(bootstrap, topic, 1, records, QUICK)
    consumer = ("--bootstrap-server", bootstrap, "--topic", topic, "--group", group, "--from-beginning")
    read = kafka_tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *consumer, "--max-messages", "10")
    assert sorted(read.split()) == sorted(str(number) for number in range(10))

    assert group in _groups(bootstrap, "--list")
    assert re.search(rf"{group}\s.*Empty", _groups(bootstrap, "--describe", "--state", "--group", group))
    described = _groups(bootstrap, "--describe", "--offsets", "--group", group)
    assert re.search(rf"{group}\s+{topic}\s+1\s+10\s+10\s+0\s", described)

    reset = ("--group", group, "--topic", topic, "--reset-offsets", "--to-offset", "4", "--execute")
    assert re.search(rf"{topic}\s+1\s+4", _groups(bootstrap, *reset))
    described = _groups(bootstrap, "--describe", "--offsets", "--group", group)
    assert re.search(rf"{group}\s+{topic}\s+1\s+4\s+10\s+6\s", described)

    _groups(bootstrap, "--delete-offsets", "--group", group, "--topic", f"{topic}:1")
    assert not re.search(
        rf"{topic}\s+1\s+\d", _groups(bootstrap, "--describe", "--offsets", "--group", group)
    )
    _groups(bootstrap, "--delete", "--group", group)
    assert group not in _groups(bootstrap, "--list")


def test_console_consumer_prints_the_records_of_groups(bootstrap: str, create_topic: CreateTopic) -> None:
    topic, group = create_topic("formatted"), unique_name("group")
    Confluent().write(bootstrap, topic, 0, [Record("one", value=b"v")], QUICK)
    consumer = ("--bootstrap-server", bootstrap, "--topic", topic, "--group", group, "--from-beginning")
    kafka_tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *consumer, "--max-messages", "1")

    def printed(formatter: str) -> list[dict[str, Any]]:
        out = kafka_tool(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", bootstrap, "--topic", OFFSETS_TOPIC),
            *("--partition", str(partition_for(group, 50)), "--offset", "earliest"),
            *("--formatter", f"org.apache.kafka.tools.consumer.{formatter}", "--timeout-ms", "10000"),
        )
        joined = out.replace("}{", "}\n{")  # this one puts nothing between its objects
        return [json.loads(line) for line in joined.splitlines()]

    offsets = [each for each in printed("OffsetsMessageFormatter") if each["key"]["data"]["group"] == group]
    assert offsets[-1]["key"]["data"] == {"group": group, "topic": topic, "partition": 0}
    assert offsets[-1]["value"]["data"]["offset"] == 1
    groups = [
        each for each in printed("GroupMetadataMessageFormatter") if each["key"]["data"]["group"] == group
    ]
    assert [len(each["value"]["data"]["members"]) for each in groups] == [1, 0]
