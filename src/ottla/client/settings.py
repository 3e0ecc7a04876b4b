"""Settings of clients under Kafka's own names: type, default, what they are for.

Names are taken as Kafka writes them (`linger.ms`) or as Python arguments (`linger_ms`); values as texts or
typed. Defaults are Kafka's, except where the text of a setting says why not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.client import refused_settings
from ottla.client.errors import InvalidSetting
from ottla.client.offset_spec import is_reset
from ottla.client.sasl import MECHANISMS
from ottla.model import config_types
from ottla.model.config_types import (
    BOOLEAN,
    INT,
    INT_MAX,
    LIST,
    LONG,
    STRING,
    ConfigType,
    Rule,
    Setting,
    SettingTable,
    TypedValues,
    Value,
    at_least,
    between,
    one_of,
    some_of,
)
from ottla.model.limits import FETCH_BYTES_MAX, MIB

HIDDEN = "(hidden)"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def _setting(
    name: str, kind: ConfigType, default: Value, rule: Rule | None, doc: str, unsupported: str = ""
) -> Setting:
    return Setting(name, kind, default, doc, rule, scope="client", unsupported=unsupported)


def _table(*settings: Setting) -> SettingTable:
    return {setting.name: setting for setting in settings}


SECURITY_SETTINGS = _table(
    _setting(
        "security.protocol",
        STRING,
        "PLAINTEXT",
        one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        "How to speak to brokers: encrypted (SSL), with a login (SASL), both or neither.",
    ),
    _setting(
        "sasl.mechanism", STRING, None, one_of(*MECHANISMS), "How to log in. Kafka's default is GSSAPI."
    ),
    _setting("sasl.username", STRING, None, None, "Who logs in; librdkafka's name for it."),
    _setting("sasl.password", ConfigType.PASSWORD, None, None, "The password; librdkafka's name for it."),
    _setting(
        "sasl.jaas.config",
        ConfigType.PASSWORD,
        None,
        None,
        'Both of them, as Java\'s clients have it: …LoginModule required username="…" password="…";',
    ),
    _setting(
        "ssl.truststore.location",
        STRING,
        None,
        None,
        "A PEM file with the certificates to trust; the operating system's by default.",
    ),
    _setting("ssl.truststore.certificates", STRING, None, None, "The same as text."),
    _setting("ssl.truststore.type", STRING, "PEM", one_of("PEM"), "Of the file. Kafka's default is JKS."),
    _setting(
        "ssl.keystore.location",
        STRING,
        None,
        None,
        "A PEM file with this client's key and certificates, for brokers that ask who it is.",
    ),
    _setting("ssl.keystore.certificate.chain", STRING, None, None, "Its certificates as text."),
    _setting("ssl.keystore.key", ConfigType.PASSWORD, None, None, "Its key as text."),
    _setting("ssl.keystore.type", STRING, "PEM", one_of("PEM"), "Of the file. Kafka's default is JKS."),
    _setting("ssl.key.password", ConfigType.PASSWORD, None, None, "Of an encrypted key."),
    _setting(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        one_of("https", ""),
        "https: a broker's certificate must have the name it is addressed by. Empty: it need not.",
    ),
    _setting(
        "ssl.enabled.protocols",
        LIST,
        ("TLSv1.2", "TLSv1.3"),
        some_of("TLSv1.2", "TLSv1.3"),
        "The versions of TLS to speak.",
    ),
)

COMMON_SETTINGS = SECURITY_SETTINGS | _table(
    _setting("client.id", STRING, "ottla", None, "The name under which brokers log and meter this client."),
    _setting(
        "request.timeout.ms",
        INT,
        30_000,
        at_least(1),
        "How long an answer may take; then the connection is closed and the request tried again.",
    ),
    _setting(
        "default.api.timeout.ms",
        INT,
        60_000,
        at_least(1),
        "How long one call of an admin client or consumer may take with all its tries.",
    ),
    _setting("retry.backoff.ms", LONG, 100, at_least(0), "The pause before the first new try."),
    _setting(
        "retry.backoff.max.ms", LONG, 1_000, at_least(0), "The longest pause; each is twice the one before."
    ),
    _setting(
        "metadata.max.age.ms",
        LONG,
        300_000,
        at_least(0),
        "How old the view of brokers, topics and leaders may get before it is asked for again.",
    ),
    _setting(
        "socket.connection.setup.timeout.ms", LONG, 10_000, at_least(1), "How long connecting may take."
    ),
    _setting(
        "receive.buffer.bytes", INT, -1, at_least(-1), "SO_RCVBUF; -1 leaves it to the operating system."
    ),
    _setting("send.buffer.bytes", INT, -1, at_least(-1), "SO_SNDBUF; -1 leaves it to the operating system."),
)

PRODUCER_SETTINGS = COMMON_SETTINGS | _table(
    _setting(
        "acks",
        STRING,
        "all",
        one_of("all", "-1", "0", "1"),
        "Who must have a record before it counts as delivered: all in-sync replicas, the leader (1), nobody "
        "(0: no offset comes back, and what is lost is lost silently).",
    ),
    _setting("linger.ms", LONG, 5, at_least(0), "How long a record may wait for others to share its batch."),
    _setting(
        "batch.size",
        INT,
        1_000_000,
        at_least(0),
        "Bytes of records that close a batch before linger.ms does. Kafka's 16384 suits a client that sends "
        "each batch from a thread of its own; here larger ones cost nothing. Brokers take 1048588.",
    ),
    _setting(
        "buffer.memory",
        LONG,
        64 * MIB,
        at_least(0),
        "Bytes of records that may wait for delivery; then send() waits, up to max.block.ms.",
    ),
    _setting(
        "max.block.ms",
        LONG,
        60_000,
        at_least(0),
        "How long send() may wait for room in the buffer or for the topic's partitions; then it raises.",
    ),
    _setting("compression.type", STRING, "none", one_of(*CODECS), "How batches are compressed."),
    _setting(
        "compression.gzip.level", INT, -1, between(-1, 9), "1 (fast) to 9 (small); -1 is gzip's default."
    ),
    _setting("compression.lz4.level", INT, 9, between(1, 17), "1 to 17; 9 is the fast default."),
    _setting(
        "compression.zstd.level", INT, 3, between(-131072, 22), "Up to 22; higher is smaller and slower."
    ),
    _setting(
        "delivery.timeout.ms",
        INT,
        120_000,
        at_least(1),
        "How long after send() a record may be tried; then its future raises.",
    ),
    _setting(
        "retries", INT, INT_MAX, at_least(0), "How often a batch is tried anew, within delivery.timeout.ms."
    ),
    _setting(
        "max.in.flight.requests.per.connection",
        INT,
        5,
        at_least(1),
        "Requests to one broker without an answer. With idempotence order is kept, and 5 is the most.",
    ),
    _setting(
        "enable.idempotence",
        BOOLEAN,
        True,
        None,
        "Brokers drop what they have already: no retry makes a duplicate or a swap.",
    ),
    _setting(
        "transactional.id",
        STRING,
        None,
        None,
        "The name of this producer's transactions. A producer that takes the name of another fences it, and "
        "aborts what it has left open.",
    ),
    _setting(
        "transaction.timeout.ms",
        INT,
        60_000,
        at_least(1),
        "How long a transaction may be open; then the coordinator aborts it and fences its producer.",
    ),
    _setting(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        None,
        "Whether transactions have no timeout, because an outside coordinator ends them (KIP-939).",
    ),
    _setting(
        "max.request.size",
        INT,
        1 * MIB,
        at_least(0),
        "The largest record, as it is encoded, that send() takes.",
    ),
)

CONSUMER_SETTINGS = COMMON_SETTINGS | _table(
    _setting("fetch.min.bytes", INT, 1, at_least(0), "How much a broker gathers before it answers."),
    _setting("fetch.max.wait.ms", INT, 500, at_least(0), "How long it gathers at the most."),
    _setting(
        "fetch.max.bytes", INT, FETCH_BYTES_MAX, at_least(0), "Bytes of one answer; one batch always comes."
    ),
    _setting("max.partition.fetch.bytes", INT, 1 * MIB, at_least(0), "Bytes of one partition in an answer."),
    _setting("max.poll.records", INT, 500, at_least(1), "Records that one poll() returns at the most."),
    _setting(
        "isolation.level",
        STRING,
        "read_uncommitted",
        one_of("read_uncommitted", "read_committed"),
        "read_committed hides open and aborted transactions.",
    ),
    _setting(
        "auto.offset.reset",
        STRING,
        "latest",
        Rule("earliest, latest, none or by_duration:P1DT2H", is_reset),
        "Where to go when there is no offset, or none that the partition still has; none raises; a duration "
        "(ISO 8601) is that long ago.",
    ),
    _setting(
        "group.id",
        STRING,
        None,
        None,
        "The consumer group: its members share partitions and committed offsets.",
    ),
    _setting(
        "group.instance.id",
        STRING,
        None,
        None,
        "A name that outlives restarts (KIP-345): the member finds its partitions again without a rebalance.",
    ),
    _setting(
        "session.timeout.ms",
        INT,
        45_000,
        at_least(1),
        "Without a heartbeat for so long a member counts as dead.",
    ),
    _setting(
        "group.protocol",
        STRING,
        "classic",
        one_of("classic", "consumer"),
        "consumer is the protocol in which the brokers assign partitions (KIP-848).",
    ),
    _setting(
        "group.remote.assignor",
        STRING,
        None,
        None,
        "The brokers' assignor, with group.protocol=consumer: uniform or range; theirs by default.",
    ),
    _setting("heartbeat.interval.ms", INT, 3_000, at_least(1), "How often a member says that it lives."),
    _setting(
        "max.poll.interval.ms",
        INT,
        300_000,
        at_least(1),
        "A member that does not call poll() for so long is stuck: it leaves, and others get its partitions.",
    ),
    _setting(
        "enable.auto.commit", BOOLEAN, True, None, "Whether poll() commits what earlier polls returned."
    ),
    _setting("auto.commit.interval.ms", INT, 5_000, at_least(0), "How often it does."),
    _setting(
        "partition.assignment.strategy",
        LIST,
        ("range",),
        some_of("range", "roundrobin", "sticky", "cooperative-sticky"),
        "How a group shares partitions; the members' common one that most like best is taken.",
    ),
    _setting(
        "allow.auto.create.topics",
        BOOLEAN,
        False,
        None,
        "Whether a topic that is asked for and not there is made, if the broker allows it. Kafka's default "
        "is true, which makes a topic of every mistyped name.",
    ),
    _setting(
        "client.rack",
        STRING,
        "",
        None,
        "Where this consumer is: brokers that have a replica.selector.class may have it read from a replica "
        "in the same rack instead of the leader (KIP-392), and of partitions that it may as well have as "
        "another member of its group it gets those that have one (KIP-881).",
    ),
    _setting("check.crcs", BOOLEAN, True, None, "Whether the checksum of each batch is verified."),
)


def bootstrap_of(bootstrap: str | Sequence[str], given: dict[str, object]) -> str | Sequence[str]:
    """Where the brokers are: the first argument of a client, or its setting bootstrap.servers, taken out."""
    if isinstance(bootstrap, Mapping):
        raise InvalidSetting("settings were given as a dict", "unpack it: Producer(**settings)")
    named = [given.pop(name) for name in ("bootstrap.servers", "bootstrap_servers") if name in given]
    if not named:
        return bootstrap
    if bootstrap or len(named) > 1:
        raise InvalidSetting("bootstrap.servers is given twice", "give it once")
    servers = named[0]
    return servers if isinstance(servers, str) else tuple(str(each) for each in servers)  # type: ignore[attr-defined]


def common_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those that every client takes: how to reach and to trust brokers, and how long to wait for them."""
    return {name: value for name, value in given.items() if name.replace("_", ".") in COMMON_SETTINGS}


def without_secrets(given: Mapping[str, str]) -> dict[str, str]:
    """For people to see."""
    return {
        name: HIDDEN if name in COMMON_SETTINGS and COMMON_SETTINGS[name].sensitive else value
        for name, value in given.items()
    }


def load(given: Mapping[str, object], table: SettingTable) -> TypedValues:
    """Every setting of `table`, as given or by default. Raises InvalidSetting."""
    values: dict[str, Value] = {name: setting.default for name, setting in table.items()}
    for argument, value in given.items():
        name = argument.replace("_", ".")
        setting = table.get(name)
        if setting is None:
            why = refused_settings.reason(name)
            if why is not None:
                raise InvalidSetting(f"{name} is not supported: {why}", "leave it out")
            meant = config_types.nearest(name, table)
            cure = f"did you mean {meant}?" if meant else f"known are {', '.join(sorted(table))}"
            raise InvalidSetting(f"there is no client setting {argument!r}", cure)
        if value is None:
            continue
        try:
            values[name] = config_types.parse(setting, _text(value))
        except config_types.InvalidSetting as error:
            raise InvalidSetting(str(error)) from None
    return TypedValues(values)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(str(item) for item in value)
    return str(value)
