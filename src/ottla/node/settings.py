"""What a broker is started with: defaults, a file, `OTTLA_…` variables, `--set name=value`; the last wins.

Stricter than Kafka in one way: an unknown name is an error, where Kafka logs a warning and goes on. A typing
error in a setting that keeps data safe must not go unnoticed. Every problem is reported, not only the first.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ottla.model.config_types import INT_MAX
from ottla.model.configs import BROKER_SETTINGS, BrokerConfig, InvalidSetting, parse, setting_named
from ottla.model.listeners import EVERY_INTERFACE, Listener, parse_listeners, parse_protocol_map
from ottla.model.refused_settings import reason_to_ignore
from ottla.model.values import dataclass
from ottla.model.zookeeper_config import ZooKeeperConfig, zookeeper_config
from ottla.node.ensemble import EnsembleSettings
from ottla.node.setting_sources import from_assignment, from_environment, from_file


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections are held; these may change while the broker runs."""

    connections_max: int
    per_address_max: int
    per_address_overrides: Mapping[str, int]  # by the text of the address
    per_second_max: int | None  # new ones; None: any number

    def for_address(self, address: str) -> int:
        return self.per_address_overrides.get(address, self.per_address_max)


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The settings that wiring a broker needs, typed and checked; `config` has all of them."""

    config: BrokerConfig
    node_id: int
    rack: str | None
    log_dirs: tuple[Path, ...]
    coordination_dir: Path  # of the tree that the broker keeps itself
    listeners: tuple[Listener, ...]  # where to bind
    advertised_listeners: tuple[Listener, ...]  # what clients are told; port 0: the one that was bound
    control_plane_listener: str | None  # served first in every turn
    inter_broker_listener: str
    socket_send_buffer_bytes: int  # -1: the operating system's choice
    socket_receive_buffer_bytes: int  # -1: the operating system's choice
    socket_request_bytes_max: int
    socket_listen_backlog_size: int
    queued_request_bytes_max: int  # zero or less: no limit
    connections_idle_ms_max: int  # negative: never closed for being idle
    connection_limits: ConnectionLimits
    zookeeper: ZooKeeperConfig  # of the port, for a tree that the broker keeps itself
    ensemble: EnsembleSettings | None  # that keeps the tree instead
    warnings: tuple[str, ...]  # for the log at the start

    @classmethod
    def from_texts(cls, texts: Mapping[str, str], warnings: Iterable[str] = ()) -> BrokerSettings:
        """From texts by setting name. Raises InvalidSetting."""
        texts = {**texts, **_ids(texts)}
        config = BrokerConfig(texts)
        log_dirs = _log_dirs(config)
        coordination_dir = _coordination_dir(config, log_dirs)
        listeners, advertised = _listeners(config)
        inter_broker = _inter_broker_listener(config, texts, advertised)
        return cls(
            config=config,
            node_id=_node_id(config),
            rack=config.text_or_none("broker.rack"),
            log_dirs=log_dirs,
            coordination_dir=coordination_dir,
            listeners=listeners,
            advertised_listeners=advertised,
            control_plane_listener=_control_plane_listener(config, advertised, inter_broker),
            inter_broker_listener=inter_broker,
            socket_send_buffer_bytes=config.integer("socket.send.buffer.bytes"),
            socket_receive_buffer_bytes=config.integer("socket.receive.buffer.bytes"),
            socket_request_bytes_max=config.integer("socket.request.max.bytes"),
            socket_listen_backlog_size=config.integer("socket.listen.backlog.size"),
            queued_request_bytes_max=config.integer("queued.max.request.bytes"),
            connections_idle_ms_max=config.integer("connections.max.idle.ms"),
            connection_limits=connection_limits(config),
            zookeeper=zookeeper_config(config, str(coordination_dir)),
            ensemble=EnsembleSettings.of(config),
            warnings=(*warnings, *config.warnings),
        )

    def advertised_as_bound(self, ports: Mapping[str, int], host: Callable[[], str]) -> tuple[Listener, ...]:
        """What clients are told, once it is known which `ports` were bound (by listener name).

        `host` tells this machine's name, for listeners on every interface that nobody gave an address. It is
        asked only then: a resolver may take its time.
        """
        return tuple(
            listener._replace(host=listener.host or host(), port=listener.port or ports[listener.name])
            for listener in self.advertised_listeners
        )


def load_settings(
    file: Path | None = None,
    assignments: Sequence[str] = (),
    *,
    environment: Mapping[str, str] | None = None,
    home: Path | None = None,
) -> BrokerSettings:
    """From a file (properties or TOML), the environment and `name=value` texts; the last wins.

    `home` is where data goes when none of them names a log directory. Raises InvalidSetting with one line for
    each problem.
    """
    given = [
        *(from_file(file) if file else ()),
        *from_environment(environment or {}),
        *map(from_assignment, assignments),
    ]
    problems, warnings = [], []
    texts: dict[str, str] = {}
    origins: dict[str, str] = {}
    left_out: dict[str, str] = {}  # what has no effect
    for name, text, origin in given:
        reason = reason_to_ignore(name)
        if reason is not None:
            warnings.append(f"{origin}: {name} has no effect: {reason}")
            left_out[name] = text
            continue
        try:
            parse(setting_named(name, BROKER_SETTINGS), text)
        except InvalidSetting as error:
            problems.append(f"{origin}: {error}")
        if name in origins and _file_of(origin) == _file_of(origins[name]) != "":
            warnings.append(f"{origin}: {name} is there twice; the value of {origins[name]} is not used")
        texts[name], origins[name] = text, origin
    if problems:
        raise InvalidSetting("\n".join(problems))
    warnings += _leave_out_raft_listeners(texts, left_out.get("controller.listener.names", ""))
    if home is not None and not texts.keys() & {"log.dirs", "log.dir"}:
        texts["log.dirs"] = str(home / "log")
        texts.setdefault("ottla.coordination.dir", str(home / "coordination"))
    return BrokerSettings.from_texts(texts, warnings)


def _file_of(origin: str) -> str:
    """The file of `file:line`; empty for other origins."""
    return origin.rpartition(":")[0]


def _leave_out_raft_listeners(texts: dict[str, str], raft_listeners: str) -> Iterator[str]:
    """Kafka's Raft quorum has listeners of its own; its file must start a broker that has no such quorum."""
    names = {name.strip().upper() for name in raft_listeners.split(",") if name.strip()}
    for setting in ("listeners", "advertised.listeners"):
        items = [item.strip() for item in texts.get(setting, "").split(",")]
        kept = [item for item in items if item.partition("://")[0].upper() not in names]
        if len(kept) < len(items):
            texts[setting] = ",".join(kept)
            yield f"{setting}: {', '.join(sorted(names))} is left out, because there is no Raft quorum"


def _ids(texts: Mapping[str, str]) -> dict[str, str]:
    """Either name of the broker's number is told under both."""
    told = texts.get("node.id", texts.get("broker.id"))
    return {} if told is None else {name: texts.get(name, told) for name in ("node.id", "broker.id")}


def _node_id(config: BrokerConfig) -> int:
    node_id, broker_id = config.integer("node.id"), config.integer("broker.id")
    if node_id != broker_id:
        raise InvalidSetting(
            f"node.id={node_id} and broker.id={broker_id}: they name the same thing; set one"
        )
    return node_id


def _log_dirs(config: BrokerConfig) -> tuple[Path, ...]:
    text = config.text_or_none("log.dirs") or config.text("log.dir")
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InvalidSetting("log.dirs: names no directory, expected at least one")
    directories = tuple(map(Path, names))
    for directory in directories:
        if directories.count(directory) > 1:
            raise InvalidSetting(f"log.dirs={text}: {directory} is there twice")
    return directories


def _coordination_dir(config: BrokerConfig, log_dirs: Sequence[Path]) -> Path:
    """Never inside a log directory: Kafka refuses to start on one that holds anything but partitions."""
    text = config.text_or_none("ottla.coordination.dir")
    directory = Path(text or f"{log_dirs[0]}.coordination")
    for log_dir in log_dirs:
        if directory.is_relative_to(log_dir):
            raise InvalidSetting(
                f"ottla.coordination.dir={directory}: must not be in the log directory {log_dir}"
            )
    return directory


def _listeners(config: BrokerConfig) -> tuple[tuple[Listener, ...], tuple[Listener, ...]]:
    """What is bound and what is advertised."""
    protocols = parse_protocol_map(config.text("listener.security.protocol.map"))
    listeners = parse_listeners(config.text("listeners"), protocols, "listeners")
    for listener in listeners:
        if listener.security_protocol != "PLAINTEXT":
            raise InvalidSetting(
                f"listeners: {listener} speaks {listener.security_protocol}, which is not offered yet; "
                "use PLAINTEXT on a network that you trust"
            )
    advertised_text = config.text_or_none("advertised.listeners")
    if advertised_text is None:
        advertised = listeners
    else:
        advertised = parse_listeners(advertised_text, protocols, "advertised.listeners", distinct_ports=False)
    names = [listener.name for listener in listeners]
    for listener in advertised:
        if listener.name not in names:
            raise InvalidSetting(
                f"advertised.listeners: {listener.name} is not among the listeners ({', '.join(names)})"
            )
        if listener.host and listener.host in EVERY_INTERFACE:
            raise InvalidSetting(
                f"advertised.listeners: clients cannot connect to {listener.host}; set advertised.listeners "
                "to an address of this machine that they can reach"
            )
    return listeners, advertised


def _inter_broker_listener(
    config: BrokerConfig, texts: Mapping[str, str], advertised: Sequence[Listener]
) -> str:
    name = config.text_or_none("inter.broker.listener.name")
    if name is not None and "security.inter.broker.protocol" in texts:
        raise InvalidSetting("set inter.broker.listener.name or security.inter.broker.protocol, not both")
    name = (name or config.text("security.inter.broker.protocol")).upper()
    _check_advertised("inter.broker.listener.name", name, advertised)
    return name


def _control_plane_listener(
    config: BrokerConfig, advertised: Sequence[Listener], inter_broker: str
) -> str | None:
    name = config.text_or_none("control.plane.listener.name")
    if name is None:
        return None
    name = name.upper()
    _check_advertised("control.plane.listener.name", name, advertised)
    if name == inter_broker:
        raise InvalidSetting(
            f"control.plane.listener.name={name}: must not be the inter-broker listener; its purpose is to "
            "be free of data"
        )
    return name


def _check_advertised(setting: str, name: str, advertised: Sequence[Listener]) -> None:
    names = [listener.name for listener in advertised]
    if name not in names:
        raise InvalidSetting(f"{setting}={name}: not among the advertised listeners ({', '.join(names)})")


def connection_limits(config: BrokerConfig) -> ConnectionLimits:
    """The limits that `config` sets; to be asked again when it changes. Raises InvalidSetting."""
    overrides = {}
    for item in config.text("max.connections.per.ip.overrides").split(","):
        if not item.strip():
            continue
        address, _, count = item.strip().rpartition(":")
        try:
            if not count.isascii() or not count.isdigit():
                raise ValueError(count)
            overrides[str(ipaddress.ip_address(address.strip("[]")))] = int(count)
        except ValueError:
            raise InvalidSetting(
                f"max.connections.per.ip.overrides: {item.strip()!r} is not valid, expected address:count, "
                "as in 10.0.0.7:100"
            ) from None
    rate = config.integer("max.connection.creation.rate")
    return ConnectionLimits(
        connections_max=config.integer("max.connections"),
        per_address_max=config.integer("max.connections.per.ip"),
        per_address_overrides=overrides,
        per_second_max=None if rate == INT_MAX else rate,
    )
