"""Names that Kafka knows and Ottla does not use, with the reason: nothing is ever ignored without a word.

In a start-up file, what is merely without effect is taken with a warning, so that a `server.properties`
starts as it is. What promises safety that would not be there (access control, policies) stays an error.
"""

from __future__ import annotations

_NO_KRAFT = "Ottla has no Raft quorum; brokers are coordinated in ZooKeeper's way"
_NO_JVM = "it names Java code, which a broker in Python cannot load"
_NO_TLS = "TLS is not offered yet, and no listener uses it"
_NO_SASL = "SASL logins are not offered yet, and no listener uses them"
_NO_ACLS = "access control is not offered yet; everyone who connects may do everything"
_NO_QUOTAS = "quotas are not offered yet"
_NO_SHARE_GROUPS = "share groups are not offered"
_NO_TIERED_STORAGE = "tiered storage is not offered; all data stays on the brokers"
_NO_PURGATORY = "what waits is dropped when it is over; there is no purgatory to purge"
_ONE_OWNER = "one thread decides about all groups, and writes what it decided once in a turn"
_ASSIGNED_AT_ONCE = "members are assigned anew by the heartbeat that finds a change"
_ONE_REPLICA = "a partition has one replica here"
_UNSTABLE = "what is not finished is not offered at all"
_GONE = "Kafka 4 has removed it"

IGNORED_PREFIXES = {
    "process.roles": _NO_KRAFT,
    "controller.quorum.": _NO_KRAFT,
    "controller.listener.names": _NO_KRAFT,
    "controller.performance.": _NO_KRAFT,
    "metadata.": _NO_KRAFT,
    "internal.metadata.": _NO_KRAFT,
    "early.start.listeners": _NO_KRAFT,
    "broker.heartbeat.": _NO_KRAFT,
    "broker.session.": _NO_KRAFT,
    "initial.broker.": _NO_KRAFT,
    "ssl.": _NO_TLS,
    "zookeeper.ssl.": _NO_TLS,
    "zookeeper.clientCnxnSocket": _NO_TLS,
    "sasl.": _NO_SASL,
    "connections.max.reauth.ms": _NO_SASL,
    "delegation.token.": _NO_SASL,
    "listener.name.": "settings for one listener only are not offered yet",
    "super.users": _NO_ACLS,
    "allow.everyone.if.no.acl.found": _NO_ACLS,
    "principal.builder.class": _NO_JVM,
    "security.providers": _NO_JVM,
    "metric.reporters": _NO_JVM,
    "metrics.": "Kafka's metric samples do not exist here; Ottla counts without windows",
    "kafka.metrics.": _NO_JVM,
    "auto.include.jmx.reporter": _NO_JVM,
    "client.quota.callback.": _NO_JVM,
    "quota.": _NO_QUOTAS,
    "controller.quota.": _NO_QUOTAS,
    "replication.quota.": _NO_QUOTAS,
    "alter.log.dirs.": _NO_QUOTAS,
    "group.share.": _NO_SHARE_GROUPS,
    "share.": _NO_SHARE_GROUPS,
    "group.streams.": "the streams group protocol is not offered",
    "group.consumer.assignment.interval.ms": _ASSIGNED_AT_ONCE,
    "group.consumer.max.assignment.interval.ms": _ASSIGNED_AT_ONCE,
    "group.consumer.min.assignment.interval.ms": _ASSIGNED_AT_ONCE,
    "group.consumer.regex.refresh.interval.ms": "patterns are matched anew when topics change",
    "group.coordinator.append.linger.ms": _ONE_OWNER,
    "group.coordinator.background.threads": _ONE_OWNER,
    "group.coordinator.cached.buffer.max.bytes": _ONE_OWNER,
    "group.coordinator.threads": _ONE_OWNER,
    "add.partitions.to.txn.retry.backoff.": "the broker that leads a partition coordinates its transactions",
    "delete.records.purgatory.": _NO_PURGATORY,
    "fetch.purgatory.": _NO_PURGATORY,
    "producer.purgatory.": _NO_PURGATORY,
    "num.replica.alter.log.dirs.threads": "partitions are not moved between log directories",
    "unclean.leader.election.interval.ms": _ONE_REPLICA,
    "socket.connection.setup.timeout.": "this broker connects to no other",
    "server.max.startup.time.ms": "a start takes what it takes; whoever started the broker can end it",
    "unstable.": _UNSTABLE,
    "remote.": _NO_TIERED_STORAGE,
    "follower.fetch.last.tiered.offset.enable": _NO_TIERED_STORAGE,
    "telemetry.": "client telemetry is not offered",
    "password.encoder.": _GONE,
    "inter.broker.protocol.version": _GONE,
    "log.message.format.version": _GONE,
    "message.format.version": _GONE,
    "log.message.timestamp.difference.max.ms": (
        "Kafka 4 has removed it; use log.message.timestamp.before.max.ms and "
        "log.message.timestamp.after.max.ms"
    ),
    "message.timestamp.difference.max.ms": "Kafka 4 has removed it; use message.timestamp.before.max.ms and "
    "message.timestamp.after.max.ms",
}
"""Names, or beginnings of names, that change nothing whatever the value, with the reason."""

REFUSED_PREFIXES = {
    **IGNORED_PREFIXES,
    "authorizer.": _NO_ACLS,
    "zookeeper.set.acl": _NO_ACLS,
    "config.providers": _NO_JVM,
    "cordoned.log.dirs": "new partitions go to any directory of log.dirs; take one off that list instead",
    "create.topic.policy.": _NO_JVM,
    "alter.config.policy.": _NO_JVM,
}
"""The same that are refused: in a start-up file only what is not in IGNORED_PREFIXES, elsewhere all of it."""


def reason_to_ignore(name: str) -> str | None:
    """Why a setting of a start-up file has no effect; None when it is not of those."""
    return next((reason for prefix, reason in IGNORED_PREFIXES.items() if name.startswith(prefix)), None)
