"""ottla config, cluster and profile: used rightly and wrongly; which cluster is meant."""

from __future__ import annotations

import pytest

from cli.program import Program
from compat.broker import unique_name
from ottla.testing import BrokerProcess


def test_cluster_show_has_brokers_and_apis(client: Program, broker: BrokerProcess) -> None:
    shown = client.ok("cluster", "show", "-o", "json").json
    assert shown["controller"] == 1
    (only,) = shown["brokers"]
    assert (only["broker"], only["address"]) == (1, broker.bootstrap)
    assert "BROKER  ADDRESS" in client.ok("cluster", "show").out
    apis = {row["api"]: row for row in client.ok("cluster", "show", "--apis", "-o", "json").json}
    assert apis["Fetch"]["first"] == 4
    assert "required: VERB" in client.fails(2, "cluster")


def test_settings_say_where_they_come_from(client: Program) -> None:
    topic = unique_name("set")
    client.ok("topic", "create", topic)
    client.ok("config", "set", f"topic:{topic}", "retention.ms=1000")
    rows = client.ok("config", "get", f"topic:{topic}", "retention.ms", "segment.ms", "-o", "json").json
    assert [(row["setting"], row["value"], row["source"]) for row in rows] == [
        ("retention.ms", "1000", "dynamic topic"),
        ("segment.ms", "604800000", "default"),
    ]
    changed = client.ok("config", "get", f"topic:{topic}", "--changed", "-o", "json").json
    assert [row["setting"] for row in changed] == ["retention.ms"]
    unset = client.ok("config", "set", f"topic:{topic}", "--unset", "retention.ms", "-o", "json").json
    assert unset == [{"setting": "retention.ms", "before": "1000", "after": "604800000", "done": True}]


def test_brokers_take_settings_while_they_run(client: Program) -> None:
    assert "(not done)" in client.ok("config", "set", "cluster", "max.connections=99", "--dry-run").out
    assert client.ok("config", "get", "cluster", "-o", "json").json == []
    client.ok("config", "set", "cluster", "max.connections=99")
    (row,) = client.ok("config", "get", "broker:1", "max.connections", "-o", "json").json
    assert (row["value"], row["source"]) == ("99", "dynamic default broker")
    client.ok("config", "set", "cluster", "--unset", "max.connections")


@pytest.mark.parametrize(
    ("arguments", "code", "cause"),
    [
        (("get", "orders"), 2, "expected topic:NAME"),
        (("get", "broker:x"), 2, "expected topic:NAME"),
        (("get", "broker:7"), 4, "there is no broker 7"),
        (("get", "topic:nowhere"), 4, "there is no topic 'nowhere'"),
        (("get", "broker:1", "num.partitons"), 4, "did you mean num.partitions?"),
        (("set", "cluster"), 2, "nothing to change"),
        (("set", "broker:1", "num.partitions"), 2, "expected NAME=VALUE"),
        (("set", "broker:1", "num.partitions=3"), 1, "cannot be changed while the broker runs"),
        (("explain", "retension.ms"), 4, "did you mean retention.ms?"),
    ],
)
def test_wrong_use_of_config_names_the_cause(
    client: Program, arguments: tuple[str, ...], code: int, cause: str
) -> None:
    assert cause in client.fails(code, "config", *arguments)


def test_every_setting_is_explained_without_a_broker(ottla: Program) -> None:
    rows = ottla.ok("config", "explain", "-o", "jsonl").json_lines
    assert len(rows) > 100
    for row in rows:
        assert row["type"], row
        assert row["meaning"], row
        assert row["scope"] in ("topic", "broker")
    told = ottla.ok("config", "explain", "min.insync.replicas").out
    assert told.count("meaning") == 2  # for topics, and for brokers
    one = ottla.ok("config", "explain", "retention.ms", "-o", "json").json
    assert (one["scope"], one["default"]) == ("topic", "604800000")
    assert "log.retention.hours" in ottla.ok("config", "explain", "retention").out
    several = ottla.ok("config", "explain", "retention", "-o", "json").json
    assert {"retention.ms", "log.retention.hours"} <= {row["setting"] for row in several}


def test_profiles_name_clusters(ottla: Program, broker: BrokerProcess) -> None:
    ottla.ok("profile", "set", "here", broker.bootstrap)
    ottla.ok("profile", "set", "away", "127.0.0.1:1")
    assert ottla.ok("profile", "ls", "-o", "json").json == [
        {"profile": "away", "bootstrap": "127.0.0.1:1", "used": False},
        {"profile": "here", "bootstrap": broker.bootstrap, "used": True},
    ]
    ottla.ok("topic", "ls")
    ottla.fails(3, "topic", "ls", "--profile", "away")
    ottla.fails(3, "topic", "ls", OTTLA_PROFILE="away")
    ottla.ok("profile", "use", "away")
    assert "no broker at 127.0.0.1:1" in ottla.fails(3, "topic", "ls")
    ottla.ok("topic", "ls", "--profile", "here")
    ottla.ok("topic", "ls", OTTLA_BOOTSTRAP=broker.bootstrap)
    ottla.ok("topic", "ls", "-b", broker.bootstrap, OTTLA_BOOTSTRAP="127.0.0.1:1")
    removed = ottla.ok("profile", "rm", "away", "-o", "json").json
    assert removed == [{"profile": "away", "bootstrap": None, "used": False, "done": True}]
    assert ottla.ok("profile", "use", "here").out == "profile here is used from now on\n"


def test_wrong_use_of_profile_names_the_cause(ottla: Program) -> None:
    assert "no profile 'x'" in ottla.fails(4, "profile", "use", "x")
    assert "no profile 'x'" in ottla.fails(4, "profile", "rm", "x")
    assert "no profile 'x'" in ottla.fails(4, "topic", "ls", "--profile", "x")
    assert "no broker address" in ottla.fails(2, "profile", "set", "x", "host:port")
    (ottla.home / "config" / "ottla").mkdir(parents=True)
    (ottla.home / "config" / "ottla" / "profiles.json").write_text("{")
    assert "profiles.json cannot be read" in ottla.fails(1, "profile", "ls")
