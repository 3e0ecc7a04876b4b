"""What a broker is started with, and every reason not to start it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ottla.model.configs import InvalidSetting, topic_config
from ottla.model.listeners import Listener
from ottla.node.settings import BrokerSettings, connection_limits, load_settings

PLAINTEXT = Listener("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT")

# What Kafka 3.9 ships for ZooKeeper mode, without the address of an ensemble.
STOCK_FILE = """
broker.id=0
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kafka-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
#log.flush.interval.messages=10000
log.retention.hours=168
#log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
"""


def settings(**texts: str) -> BrokerSettings:
    return BrokerSettings.from_texts({name.replace("_", "."): text for name, text in texts.items()})


def refusal(**texts: str) -> str:
    with pytest.raises(InvalidSetting) as refused:
        settings(**texts)
    return str(refused.value)


def test_a_broker_starts_without_any_setting() -> None:
    defaults = load_settings()
    assert defaults.node_id == 1
    assert defaults.listeners == (PLAINTEXT,)
    assert defaults.advertised_listeners == (PLAINTEXT,)
    assert defaults.inter_broker_listener == "PLAINTEXT"
    assert defaults.control_plane_listener is None
    assert defaults.log_dirs == (Path("ottla-data/log"),)
    assert defaults.coordination_dir == Path("ottla-data/log.coordination")
    assert defaults.rack is None
    assert defaults.socket_send_buffer_bytes == 102_400
    assert defaults.socket_receive_buffer_bytes == -1
    assert defaults.socket_request_bytes_max == 104_857_600
    assert defaults.socket_listen_backlog_size == 50
    assert defaults.queued_request_bytes_max == 512 * 1024 * 1024
    assert defaults.connections_idle_ms_max == 600_000
    assert defaults.warnings == ()


def test_the_command_line_wins_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions = 3\ndefault.replication.factor: 2\n")
    loaded = load_settings(file, ["num.partitions=4", "num.partitions=5", " broker.rack = a=b "])
    assert loaded.config.integer("num.partitions") == 5
    assert loaded.config.integer("default.replication.factor") == 2
    assert loaded.rack == "a=b"
    assert loaded.warnings == ()


def test_kafkas_own_file_is_understood(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(STOCK_FILE)
    loaded = load_settings(file)
    assert loaded.node_id == 0
    assert loaded.log_dirs == (Path("/tmp/kafka-logs"),)
    assert topic_config({}, loaded.config).retention_ms == 168 * 3_600_000


# Every setting of the file that Kafka 4 ships.
RAFT_FILE = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,\
SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_a_raft_file_starts_with_one_warning_for_each_key_without_effect(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(RAFT_FILE)
    loaded = load_settings(file)
    assert [str(listener) for listener in loaded.listeners] == ["PLAINTEXT://:9092"]
    assert [str(listener) for listener in loaded.advertised_listeners] == ["PLAINTEXT://localhost:9092"]
    named = [
        re.search(r"(\S+?)(=\d+)?:? (has no effect: \w|is left out, because)", warning)
        for warning in loaded.warnings
    ]
    assert [found and found[1] for found in named] == [
        "process.roles",
        "controller.quorum.bootstrap.servers",
        "controller.listener.names",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
        "CONTROLLER",
        "CONTROLLER",
        "num.network.threads",
        "num.io.threads",
        "num.recovery.threads.per.data.dir",
    ]


def test_toml_names_settings_by_tables_and_dotted_keys(tmp_path: Path) -> None:
    file = tmp_path / "ottla.toml"
    file.write_text(
        'num.partitions = 3\nauto.create.topics.enable = false\n"broker.rack" = "a"\n'
        '[log]\ndirs = "d"\nretention.hours = 2\ncleanup.policy = ["compact", "delete"]\n'
    )
    loaded = load_settings(file)
    assert loaded.config.integer("num.partitions") == 3
    assert loaded.config.flag("auto.create.topics.enable") is False
    assert loaded.config.texts("log.cleanup.policy") == ("compact", "delete")
    assert (loaded.rack, loaded.log_dirs) == ("a", (Path("d"),))
    assert topic_config({}, loaded.config).retention_ms == 2 * 3_600_000


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("num.partitions = ", "is not TOML: "),
        ("num.partitions = 2026-01-01", "num.partitions: expected a text, a number"),
        ("num.partitons = 3", "broker setting num.partitons does not exist; did you mean num.partitions?"),
    ],
)
def test_wrong_toml_is_refused_with_its_file(tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / "ottla.toml"
    file.write_text(content)
    with pytest.raises(InvalidSetting, match=f"^{file}: {re.escape(problem)}"):
        load_settings(file)


def test_the_environment_wins_over_the_file_and_the_command_line_over_both(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nbroker.rack=file\nlog.retention.hours=1\n")
    variables = {
        "OTTLA_NUM_PARTITIONS": "4",
        "OTTLA_BROKER_RACK": "environment",
        "OTTLA_COORDINATION_DIR": "c",
        "OTTLA_BOOTSTRAP": "elsewhere:9092",
        "HOME": "/",
    }
    loaded = load_settings(file, ["num.partitions=5"], environment=variables)
    assert loaded.config.integer("num.partitions") == 5
    assert (loaded.rack, loaded.coordination_dir) == ("environment", Path("c"))
    assert loaded.config.integer("log.retention.hours") == 1
    assert loaded.warnings == ()


def test_a_typing_error_in_the_environment_suggests_the_nearest_variable() -> None:
    with pytest.raises(InvalidSetting) as refused:
        load_settings(environment={"OTTLA_NUM_PARTITONS": "4", "OTTLA_XYZ": ""})
    assert str(refused.value).splitlines() == [
        "environment variable OTTLA_NUM_PARTITONS names no setting; did you mean OTTLA_NUM_PARTITIONS?",
        "environment variable OTTLA_XYZ names no setting",
    ]


def test_data_goes_home_unless_a_log_directory_is_named(tmp_path: Path) -> None:
    at_home = load_settings(home=tmp_path)
    assert (at_home.log_dirs, at_home.coordination_dir) == ((tmp_path / "log",), tmp_path / "coordination")
    away = load_settings(home=tmp_path, environment={"OTTLA_LOG_DIRS": "d"})
    assert (away.log_dirs, away.coordination_dir) == ((Path("d"),), Path("d.coordination"))


def test_every_problem_is_reported_with_the_place_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# start\nnum.partitons=3\nauthorizer.class.name=Acls\nlog.segment.bytes=12\n")
    with pytest.raises(InvalidSetting) as refused:
        load_settings(file, ["auto.create.topics.enable=maybe"])
    assert str(refused.value).splitlines() == [
        f"{file}:2: broker setting num.partitons does not exist; did you mean num.partitions?",
        f"{file}:3: broker setting authorizer.class.name cannot be used: access control is not offered yet; "
        "everyone who connects may do everything",
        f"{file}:4: log.segment.bytes=12: not valid, expected a whole number of 32 bits, 1048576 or more",
        "--set: auto.create.topics.enable=maybe: not valid, expected true or false",
    ]


def test_a_name_twice_in_the_file_is_taken_from_below_with_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nnum.partitions=4\n")
    loaded = load_settings(file)
    assert loaded.config.integer("num.partitions") == 4
    assert loaded.warnings == (f"{file}:2: num.partitions is there twice; the value of {file}:1 is not used",)


def test_settings_without_effect_are_among_the_warnings() -> None:
    (warning,) = load_settings(None, ["num.io.threads=16"]).warnings
    assert warning.startswith("num.io.threads=16 has no effect")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidSetting, match=r"nowhere\.properties: cannot be read: No such file or directory"
    ):
        load_settings(tmp_path / "nowhere.properties")
    latin = tmp_path / "latin.properties"
    latin.write_bytes(b"broker.rack=Z\xfcrich")
    with pytest.raises(InvalidSetting, match=r"latin\.properties: byte 13 is not UTF-8"):
        load_settings(latin)
    broken = tmp_path / "broken.properties"
    broken.write_text("a=\\u12")
    with pytest.raises(InvalidSetting, match=r"broken\.properties: line 1: "):
        load_settings(broken)


@pytest.mark.parametrize("assignment", ["num.partitions", "=3", ""])
def test_an_assignment_needs_a_name_and_a_value(assignment: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        load_settings(None, [assignment])
    assert str(refused.value) == f"--set {assignment}: not valid, expected name=value"


def test_node_id_and_broker_id_are_one() -> None:
    assert settings(node_id="7").node_id == 7
    assert settings(broker_id="8").node_id == 8
    for given in ({"node_id": "7"}, {"broker_id": "7"}):
        config = settings(**given).config
        assert (config.integer("node.id"), config.integer("broker.id")) == (7, 7)
    assert settings(node_id="9", broker_id="9").node_id == 9
    assert refusal(node_id="1", broker_id="2") == (
        "node.id=1 and broker.id=2: they name the same thing; set one"
    )
    assert refusal(node_id="-1").startswith("node.id=-1: not valid")


def test_log_dirs_win_over_log_dir() -> None:
    assert settings(log_dir="/a").log_dirs == (Path("/a"),)
    assert settings(log_dir="/a", log_dirs="/b, /c").log_dirs == (Path("/b"), Path("/c"))
    assert refusal(log_dirs="/b,/c,/b/") == "log.dirs=/b,/c,/b/: /b is there twice"
    assert refusal(log_dirs=",") == "log.dirs: names no directory, expected at least one"
    assert refusal(log_dir="") == "log.dirs: names no directory, expected at least one"


def test_coordination_is_kept_beside_the_log() -> None:
    assert settings(log_dirs="/a/b,/c").coordination_dir == Path("/a/b.coordination")
    assert settings(log_dirs="/a/b", ottla_coordination_dir="/a/tree").coordination_dir == Path("/a/tree")
    for inside in ("/a/b", "/a/b/tree"):
        assert refusal(log_dirs="/c,/a/b", ottla_coordination_dir=inside) == (
            f"ottla.coordination.dir={inside}: must not be in the log directory /a/b"
        )
    assert refusal(log_dirs=".").endswith("must not be in the log directory .")


def test_listeners_by_name_with_what_is_advertised() -> None:
    loaded = settings(
        listeners="INTERNAL://0.0.0.0:19092,external://[::]:9092,CONTROL://10.0.0.1:9090",
        listener_security_protocol_map="INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROL:PLAINTEXT",
        advertised_listeners="INTERNAL://b1.internal:19092,EXTERNAL://b1.example:443,CONTROL://10.0.0.1:9090",
        inter_broker_listener_name="internal",
        control_plane_listener_name="Control",
    )
    assert [str(listener) for listener in loaded.listeners] == [
        "INTERNAL://0.0.0.0:19092",
        "EXTERNAL://[::]:9092",
        "CONTROL://10.0.0.1:9090",
    ]
    assert loaded.advertised_listeners[1] == Listener("EXTERNAL", "b1.example", 443, "PLAINTEXT")
    assert loaded.inter_broker_listener == "INTERNAL"
    assert loaded.control_plane_listener == "CONTROL"


def test_the_ports_that_were_bound_are_advertised() -> None:
    loaded = settings(
        listeners="PLAINTEXT://127.0.0.1:0,B://:9093",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
    )
    assert loaded.advertised_as_bound({"PLAINTEXT": 40001, "B": 9093}, lambda: "machine") == (
        Listener("PLAINTEXT", "127.0.0.1", 40001, "PLAINTEXT"),
        Listener("B", "machine", 9093, "PLAINTEXT"),
    )


@pytest.mark.parametrize(
    ("listeners", "host"), [("PLAINTEXT://0.0.0.0:9092", "0.0.0.0"), ("PLAINTEXT://[::]:1", "::")]
)
def test_an_address_that_nobody_can_reach_is_not_advertised(listeners: str, host: str) -> None:
    expected = (
        f"advertised.listeners: clients cannot connect to {host}; set advertised.listeners to an address of "
        "this machine that they can reach"
    )
    assert refusal(listeners=listeners) == expected
    assert refusal(listeners="PLAINTEXT://:9092", advertised_listeners=listeners) == expected


def test_advertised_names_are_among_the_listeners() -> None:
    text = refusal(advertised_listeners="SSL://a:9092,PLAINTEXT://b:9093")
    assert text == "advertised.listeners: SSL is not among the listeners (PLAINTEXT)"


def test_advertised_listeners_may_share_a_port() -> None:
    loaded = settings(
        listeners="PLAINTEXT://:9092,B://:9093",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
        advertised_listeners="PLAINTEXT://a:443,B://b:443",
    )
    assert [listener.port for listener in loaded.advertised_listeners] == [443, 443]


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_protocols_that_are_not_offered_are_refused(protocol: str) -> None:
    assert refusal(listeners=f"{protocol}://127.0.0.1:9093") == (
        f"listeners: {protocol}://127.0.0.1:9093 speaks {protocol}, which is not offered yet; use PLAINTEXT "
        "on a network that you trust"
    )


def test_the_inter_broker_listener_must_be_advertised() -> None:
    assert refusal(inter_broker_listener_name="B") == (
        "inter.broker.listener.name=B: not among the advertised listeners (PLAINTEXT)"
    )
    assert (
        refusal(listeners="A://127.0.0.1:9092", listener_security_protocol_map="A:PLAINTEXT")
        == "inter.broker.listener.name=PLAINTEXT: not among the advertised listeners (A)"
    )
    assert refusal(inter_broker_listener_name="PLAINTEXT", security_inter_broker_protocol="PLAINTEXT") == (
        "set inter.broker.listener.name or security.inter.broker.protocol, not both"
    )


def test_the_control_plane_listener_is_one_of_its_own() -> None:
    assert refusal(control_plane_listener_name="B") == (
        "control.plane.listener.name=B: not among the advertised listeners (PLAINTEXT)"
    )
    assert refusal(control_plane_listener_name="PLAINTEXT") == (
        "control.plane.listener.name=PLAINTEXT: must not be the inter-broker listener; its purpose is to be"
        " free of data"
    )


def test_connection_limits_by_address() -> None:
    limits = settings(
        max_connections="100",
        max_connections_per_ip="10",
        max_connections_per_ip_overrides="10.0.0.7:20, ::1:30,[fe80::1]:40,",
    ).connection_limits
    assert limits.connections_max == 100
    assert limits.for_address("10.0.0.8") == 10
    assert limits.for_address("10.0.0.7") == 20
    assert limits.for_address("::1") == 30
    assert limits.for_address("fe80::1") == 40


@pytest.mark.parametrize("item", ["10.0.0.7", "host:5", "10.0.0.7:-1", "10.0.0.7:", ":5", "10.0.0.7:٥"])
def test_a_wrong_limit_for_an_address_is_refused(item: str) -> None:
    assert refusal(max_connections_per_ip_overrides=item) == (
        f"max.connections.per.ip.overrides: {item!r} is not valid, expected address:count, as in 10.0.0.7:100"
    )


def test_connection_limits_follow_dynamic_settings() -> None:
    loaded = settings(max_connections="100")
    changed = loaded.config.with_dynamic({"max.connections": "200"}, {})
    assert connection_limits(changed).connections_max == 200
