"""Settings of Kafka's own clients that these do not have, each with its reason. Refused, never ignored."""

from __future__ import annotations

_OPENSSL = "encryption is OpenSSL's, with its own choice of ciphers and engines"
_PEM_PASSWORD = "PEM files have no password; that of an encrypted key is ssl.key.password"
_LOGIN = "logins are PLAIN and SCRAM, with sasl.username and sasl.password or sasl.jaas.config"
_METRICS = "this client reports no metrics; ask it (consumer.lag()), or the broker (/metrics)"
_CONNECTIONS = "connections are kept as long as the client lives, and opened again with retry.backoff.ms"
_STICKY = "records without a key go to one partition per batch, among those that have a leader"

_REASONS = {
    "auto.include.jmx.reporter": _METRICS,
    "client.dns.lookup": "every address of a name is tried, in the order that the resolver gives them",
    "client.rack": "only a consumer may go to a replica nearby; everybody else goes to leaders",
    "config.providers": "settings are taken as they are; put the value here",
    "connections.max.idle.ms": _CONNECTIONS,
    "enable.metrics.push": _METRICS,
    "exclude.internal.topics": "a pattern never finds internal topics; subscribe to them by name",
    "internal.leave.group.on.close": "a member leaves when it is closed, a static one stays",
    "metadata.max.idle.ms": "topics are known for as long as they are used",
    "metadata.recovery.rebootstrap.trigger.ms": "the bootstrap addresses are asked when no other answers",
    "metadata.recovery.strategy": "the bootstrap addresses are asked when no other answers",
    "metric.reporters": _METRICS,
    "partitioner.adaptive.partitioning.enable": _STICKY,
    "partitioner.availability.timeout.ms": _STICKY,
    "partitioner.ignore.keys": "set partitioner.class to sticky instead",
    "reconnect.backoff.max.ms": _CONNECTIONS,
    "reconnect.backoff.ms": _CONNECTIONS,
    "security.providers": _OPENSSL,
    "share.acknowledgement.mode": "this client has no share groups",
    "share.acquire.mode": "this client has no share groups",
    "ssl.keystore.password": _PEM_PASSWORD,
    "ssl.truststore.password": _PEM_PASSWORD,
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms is the same for every try",
}

_PREFIXES = {"ssl.": _OPENSSL, "sasl.": _LOGIN, "metrics.": _METRICS}


def reason(name: str) -> str | None:
    """Why a setting that Kafka's clients have is refused here; None: they have no such setting either."""
    if name in _REASONS:
        return _REASONS[name]
    return next((why for prefix, why in _PREFIXES.items() if name.startswith(prefix)), None)
