"""Every setting of one broker by itself: who it is, its listeners, its limits, its log. Kafka's names.

The defaults of topics are broker settings too; they are derived from the topics' table, so that the two
cannot disagree. What only a cluster, a group or a transaction needs
is in `cluster_settings` and `coordinator_settings`.
"""

from __future__ import annotations

from dataclasses import replace

from ottla.model.cluster_settings import CLUSTER_SETTINGS
from ottla.model.config_types import (
    BOOLEAN,
    INT,
    INT_MAX,
    LONG,
    LONG_MAX,
    STRING,
    Rule,
    Setting,
    SettingTable,
    at_least,
)
from ottla.model.coordinator_settings import COORDINATOR_SETTINGS
from ottla.model.limits import (
    CONNECTION_IDLE_MS_MAX,
    CONNECTIONS_MAX,
    CONNECTIONS_PER_ADDRESS_MAX,
    FETCH_BYTES_MAX,
    FETCH_SESSIONS_MAX,
    FRAME_BYTES_MAX,
    FRAMES_BYTES_TOTAL,
    KIB,
)
from ottla.model.topic_settings import MINUTE_MS, TOPIC_SETTINGS

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_ONE_OWNER = "one thread owns the broker's state; more cores are used by running more brokers"
_NO_ID_GENERATION = "a broker's id is the one in node.id; ids are not generated"

_IDENTITY = (
    Setting(
        "node.id",
        INT,
        1,
        "This broker's number, different for each broker of a cluster and never changed: its data directory "
        "remembers it.",
        at_least(0),
        "high",
    ),
    Setting("broker.id", INT, None, "The older name of node.id.", at_least(0), "high"),
    Setting(
        "broker.rack",
        STRING,
        None,
        "Where this broker stands (a rack, a zone). Replicas of a partition are spread over racks.",
    ),
    Setting(
        "broker.id.generation.enable",
        BOOLEAN,
        False,
        "Whether a broker without an id is given one by the cluster.",
        unsupported=_NO_ID_GENERATION,
    ),
    Setting(
        "reserved.broker.max.id",
        INT,
        1000,
        "The largest id that generation leaves to people.",
        at_least(0),
        unsupported=_NO_ID_GENERATION,
    ),
)

_LISTENERS = (
    Setting(
        "listeners",
        STRING,
        "PLAINTEXT://127.0.0.1:9092",
        "Where clients and brokers connect: NAME://host:port, comma-separated. The default is this machine "
        "only; an empty host or 0.0.0.0 is every interface, and then advertised.listeners must say how "
        "clients reach it.",
        importance="high",
    ),
    Setting(
        "advertised.listeners",
        STRING,
        None,
        "The addresses that Metadata gives to clients, by listener name, when they differ from `listeners` "
        "(several interfaces, containers, NAT).",
        importance="high",
    ),
    Setting(
        "listener.security.protocol.map",
        STRING,
        ",".join(f"{protocol}:{protocol}" for protocol in SECURITY_PROTOCOLS),
        "Which security protocol each listener name speaks, so that several listeners can share one: "
        "INTERNAL:PLAINTEXT.",
        importance="low",
    ),
    Setting(
        "control.plane.listener.name",
        STRING,
        None,
        "The listener that is kept for requests between brokers that change leadership and topics; it is "
        "served first.",
        importance="high",
    ),
    Setting(
        "inter.broker.listener.name",
        STRING,
        None,
        "The listener that other brokers use. Not set: the one named by security.inter.broker.protocol.",
    ),
    Setting(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        "The security protocol between brokers; set this or inter.broker.listener.name, not both.",
        Rule(f"one of {', '.join(SECURITY_PROTOCOLS)}", lambda value: value in SECURITY_PROTOCOLS),
    ),
)

_CONNECTIONS = (
    Setting(
        "socket.send.buffer.bytes",
        INT,
        100 * KIB,
        "SO_SNDBUF of client connections; -1 leaves it to the operating system, which is better over long "
        "distances.",
        at_least(-1),
        "high",
    ),
    Setting(
        "socket.receive.buffer.bytes",
        INT,
        100 * KIB,
        "SO_RCVBUF of client connections; -1 leaves it to the operating system, which is better over long "
        "distances.",
        at_least(-1),
        "high",
    ),
    Setting(
        "socket.request.max.bytes",
        INT,
        FRAME_BYTES_MAX,
        "The largest request; a longer one closes its connection. At least as large as the largest batch.",
        at_least(1),
        "high",
    ),
    Setting(
        "socket.listen.backlog.size",
        INT,
        50,
        "How many connections may wait to be accepted; the operating system has a limit of its own "
        "(somaxconn).",
        at_least(1),
    ),
    Setting(
        "max.connections",
        INT,
        CONNECTIONS_MAX,
        "How many connections the broker holds. Each costs an open file, so stay well below the limit of "
        "the process.",
        at_least(0),
        update_mode="cluster-wide",
    ),
    Setting(
        "max.connections.per.ip",
        INT,
        CONNECTIONS_PER_ADDRESS_MAX,
        "How many connections one address may hold, so that one broken host cannot lock out the rest. 0 "
        "only with max.connections.per.ip.overrides.",
        at_least(0),
        update_mode="cluster-wide",
    ),
    Setting(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        "Other limits for single addresses: 10.0.0.7:100,10.0.0.8:200.",
        update_mode="cluster-wide",
    ),
    Setting(
        "max.connection.creation.rate",
        INT,
        INT_MAX,
        "How many connections are accepted per second.",
        at_least(0),
        update_mode="cluster-wide",
        unsupported=(
            "the rate of new connections is not limited yet; use max.connections and max.connections.per.ip"
        ),
    ),
    Setting(
        "connections.max.idle.ms",
        LONG,
        CONNECTION_IDLE_MS_MAX,
        "After how long without a request a connection is closed; negative is never.",
    ),
    Setting(
        "connection.failed.authentication.delay.ms",
        INT,
        100,
        "How long the answer to a failed login is held back, to slow down guessing; below "
        "connections.max.idle.ms.",
        at_least(0),
        "low",
        inert="no listener asks for a login yet",
    ),
)

_REQUESTS = (
    Setting(
        "num.network.threads",
        INT,
        3,
        "Kafka's number of socket threads per listener. Taken so that existing files work; one thread "
        "serves all sockets here.",
        at_least(1),
        "high",
        update_mode="cluster-wide",
        inert=_ONE_OWNER,
    ),
    Setting(
        "num.io.threads",
        INT,
        8,
        "Kafka's number of request threads. Taken so that existing files work; one thread handles all "
        "requests here, and syncs and cold reads have workers of their own.",
        at_least(1),
        "high",
        update_mode="cluster-wide",
        inert=_ONE_OWNER,
    ),
    Setting(
        "background.threads",
        INT,
        10,
        "Kafka's number of threads for housekeeping. Taken so that existing files work.",
        at_least(1),
        "high",
        update_mode="cluster-wide",
        inert=_ONE_OWNER,
    ),
    Setting(
        "queued.max.requests",
        INT,
        500,
        "Kafka's length of the queue between socket and request threads. Taken so that existing files work;"
        " there is no such queue here, and queued.max.request.bytes bounds what is held.",
        at_least(1),
        "high",
        inert="requests are handled in the turn that reads them",
    ),
    Setting(
        "queued.max.request.bytes",
        LONG,
        FRAMES_BYTES_TOTAL,
        "Memory for requests that are arriving or unanswered, over all connections; above it sockets are "
        "left unread. Zero or less is no limit, which is Kafka's default and not ours.",
    ),
    Setting(
        "fetch.max.bytes",
        INT,
        FETCH_BYTES_MAX,
        "The most that one Fetch is answered with, whatever the client asks for (one batch is always whole).",
        at_least(1024),
    ),
    Setting(
        "max.incremental.fetch.session.cache.slots",
        INT,
        FETCH_SESSIONS_MAX,
        "How many fetch sessions are remembered, so that consumers need not name all their partitions each "
        "time.",
        at_least(0),
    ),
    Setting(
        "max.request.partition.size.limit",
        INT,
        2000,
        "How many partitions one DescribeTopicPartitions answer has at most; the client asks again for the "
        "rest.",
        at_least(1),
    ),
)

_TOPICS = (
    Setting(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        "Whether a topic comes into being when a client first asks for it. Convenient at a desk; in "
        "production a typing error makes a topic.",
        importance="high",
    ),
    Setting(
        "delete.topic.enable",
        BOOLEAN,
        True,
        "Whether topics may be deleted; false refuses every such request.",
        importance="high",
    ),
    Setting(
        "num.partitions",
        INT,
        1,
        "Partitions of a topic whose creator does not say. More allow more consumers of a group to work "
        "side by side; records keep their order only within one.",
        at_least(1),
    ),
    Setting(
        "default.replication.factor",
        INT,
        1,
        "Replicas of a topic whose creator does not say. 1 is right for one broker; 3 is usual for a "
        "cluster.",
        at_least(1),
    ),
)

_LOG = (
    Setting(
        "log.dir",
        STRING,
        "ottla-data",
        "The directory for all data, when log.dirs is not set. Relative to where the broker is started.",
        importance="high",
    ),
    Setting(
        "log.dirs",
        STRING,
        None,
        "The directories for all data, comma-separated; new partitions go to the one with the fewest.",
        importance="high",
    ),
    Setting(
        "log.retention.check.interval.ms",
        LONG,
        5 * MINUTE_MS,
        "How often segments are checked for being too old or too many.",
        at_least(1),
    ),
    Setting(
        "log.initial.task.delay.ms",
        LONG,
        30_000,
        "How long after its start the broker begins housekeeping.",
        at_least(0),
        "low",
        internal=True,
    ),
    Setting(
        "log.flush.scheduler.interval.ms",
        LONG,
        LONG_MAX,
        "The longest time that records wait for a sync, when log.flush.interval.ms is not set.",
        importance="high",
    ),
    Setting(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        MINUTE_MS,
        "How often the point is noted from which a restart after a crash must check the log.",
        at_least(0),
        "high",
    ),
    Setting(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        MINUTE_MS,
        "How often the first offset of each log is noted, for records that DeleteRecords has removed.",
        at_least(0),
        "high",
    ),
    Setting(
        "log.dir.failure.timeout.ms",
        LONG,
        30_000,
        "How long a broker with a failed directory may be unable to report it.",
        at_least(1),
        "low",
        unsupported="a failed directory stops the broker at once",
    ),
    Setting(
        "num.recovery.threads.per.data.dir",
        INT,
        2,
        "How many workers check the logs of one directory after a crash.",
        at_least(1),
        "high",
        update_mode="cluster-wide",
    ),
    Setting("log.retention.minutes", INT, None, "As log.retention.ms, in minutes.", importance="high"),
    Setting(
        "log.retention.hours",
        INT,
        168,
        "As log.retention.ms, in hours; used when neither ms nor minutes are set.",
        importance="high",
    ),
    Setting("log.roll.hours", INT, 168, "As log.roll.ms, in hours.", at_least(1), "high"),
    Setting("log.roll.jitter.hours", INT, 0, "As log.roll.jitter.ms, in hours.", at_least(0), "high"),
)

_UNSET_IN_FAVOUR_OF_HOURS = frozenset(
    {"log.retention.ms", "log.roll.ms", "log.roll.jitter.ms", "log.flush.interval.ms"}
)
_RETENTION_RULE = Rule(
    "-1, or 1 or more", lambda value: isinstance(value, int) and (value == -1 or value >= 1)
)


def _topic_default(topic_setting: Setting) -> Setting:
    """The broker setting that topics without a value of their own follow."""
    name = topic_setting.synonyms[0].name
    setting = replace(
        topic_setting,
        name=name,
        doc=(
            f"{topic_setting.doc} This is the default for topics that do not set {topic_setting.name} "
            "themselves."
        ),
        scope="broker",
        synonyms=topic_setting.synonyms[1:],
    )
    if name in _UNSET_IN_FAVOUR_OF_HOURS:
        setting = replace(setting, default=None)
    if name == "log.retention.ms":
        setting = replace(setting, rule=_RETENTION_RULE)
    return setting


BROKER_SETTINGS: SettingTable = {
    setting.name: setting
    for setting in (
        *_IDENTITY,
        *_LISTENERS,
        *_CONNECTIONS,
        *_REQUESTS,
        *_TOPICS,
        *_LOG,
        *(_topic_default(setting) for setting in TOPIC_SETTINGS.values() if setting.synonyms),
        *CLUSTER_SETTINGS,
        *COORDINATOR_SETTINGS,
    )
}
