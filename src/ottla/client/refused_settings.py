"""Settings that users of other clients know and these do not have, each with its reason or its name here.

Refused, never ignored. Kafka's own come first, then those of librdkafka, kafka-python and aiokafka.
"""

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

_REASONS |= {
    "api.version": "versions are agreed upon with each broker",
    "api.version.request": "versions are agreed upon with each broker",
    "broker.version.fallback": "versions are agreed upon with each broker",
    "compression.codec": "its name here is compression.type",
    "consumer.timeout.ms": "poll(timeout) takes a time; iteration goes on until you break",
    "debug": "the loggers below ottla.client tell more at level DEBUG",
    "enable.auto.offset.store": "enable.auto.commit=false and commit() say what is done",
    "enable.partition.eof": "consumer.lag() and at_end() tell; read(...) ends by itself",
    "group.join.timeout.ms": "max.poll.interval.ms is the time that a group has to join",
    "max.in.flight": "its name here is max.in.flight.requests.per.connection",
    "message.max.bytes": "its name here is max.request.size",
    "message.send.max.retries": "its name here is retries",
    "message.timeout.ms": "its name here is delivery.timeout.ms",
    "on.delivery": "give on_delivery to send()",
    "queue.buffering.max.kbytes": "its name here is buffer.memory, in bytes",
    "queue.buffering.max.messages": "buffer.memory bounds the buffer, in bytes",
    "queue.buffering.max.ms": "its name here is linger.ms",
    "request.required.acks": "its name here is acks",
    "security.inter.broker.protocol": "brokers have it; clients have security.protocol",
    "socket.timeout.ms": "its name here is request.timeout.ms",
    "statistics.interval.ms": _METRICS,
}

_PREFIXES = {"ssl.": _OPENSSL, "sasl.": _LOGIN, "metrics.": _METRICS}


def reason(name: str) -> str | None:
    """Why a setting that other clients have is refused here; None: it is not known from any."""
    if name in _REASONS:
        return _REASONS[name]
    return next((why for prefix, why in _PREFIXES.items() if name.startswith(prefix)), None)
