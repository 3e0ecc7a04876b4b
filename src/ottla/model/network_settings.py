"""Where a broker is reached, and what connections and requests may cost it."""

from __future__ import annotations

from ottla.model.config_types import (
    INT,
    INT_MAX,
    LONG,
    STRING,
    Setting,
    at_least,
    between,
    one_of,
)
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

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_ONE_OWNER = "one thread owns the broker's state; more cores are used by running more brokers"

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
        one_of(*SECURITY_PROTOCOLS),
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
        -1,
        "SO_RCVBUF of client connections; -1 leaves it to the operating system, which lets it grow with what "
        "a connection sends. Kafka's 102400 hold producers of large batches up.",
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
        "ottla.http.port",
        INT,
        9308,
        "The port of /metrics, /healthz and /readyz (9308 is kafka_exporter's). 0 takes a free one, -1 none. "
        "When the default is taken, the broker says so and serves without.",
        between(-1, 65_535),
    ),
    Setting(
        "ottla.http.host",
        STRING,
        "127.0.0.1",
        "The address of the same; whoever reaches it sees names of topics and how the broker does.",
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
        "How many connections are accepted per second, over all listeners; those beyond it wait their turn.",
        at_least(0),
        update_mode="cluster-wide",
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

NETWORK_SETTINGS = (*_LISTENERS, *_CONNECTIONS, *_REQUESTS)
