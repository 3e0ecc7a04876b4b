"""What can go wrong between a client and its brokers, each with its cause and, where there is one, its cure.

Everything a client raises on purpose is a `ClientError`. `retriable` says that the same call may succeed
later without anybody changing anything.
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicPartition


class ClientError(Exception):
    retriable = False

    def __init__(self, text: str, cure: str = "") -> None:
        super().__init__(f"{text}; {cure}" if cure else text)
        self.text = text
        self.cure = cure


class InvalidSetting(ClientError, ValueError):
    """A setting of a client has no such name or value."""


class InvalidOffsetSpec(ClientError, ValueError):
    """A text is no place in a partition."""


class Closed(ClientError):
    """The client was closed before, or while the call was under way."""


class Unsupported(ClientError):
    """The broker does not offer what the call needs."""


class Misused(ClientError):
    """The call does not fit what was called before."""


class SerializationFailed(ClientError, TypeError):
    """A key or value could not be turned into bytes."""


class DeserializationFailed(ClientError, ValueError):
    """The bytes of a record are not what the deserializer reads.

    The consumer stays before the record: `seek` behind it to pass over it.
    """

    def __init__(self, text: str, partition: TopicPartition, offset: int) -> None:
        super().__init__(text, f"mend the deserializer, or seek to offset {offset + 1} to pass over it")
        self.partition = partition
        self.offset = offset


class BufferFull(ClientError):
    """No room for a record within max.block.ms."""

    retriable = True


class TimedOut(ClientError, TimeoutError):
    retriable = True


class ConnectionFailed(ClientError, ConnectionError):
    """No usable connection to `address`."""

    retriable = True

    def __init__(self, address: str, text: str, cure: str = "") -> None:
        super().__init__(text, cure)
        self.address = address


class BrokerUnreachable(ConnectionFailed):
    """Nothing answers there."""


class AdvertisedUnreachable(BrokerUnreachable):
    """The cluster named an address that cannot be reached from here."""


class WrongServer(ConnectionFailed):
    """What answers there is not a Kafka broker, or not the listener that security.protocol says."""

    retriable = False

    def __init__(self, address: str, kind: str, text: str, cure: str) -> None:
        super().__init__(address, text, cure)
        self.kind = kind


class TlsFailed(ConnectionFailed):
    """No encrypted connection: one side does not trust the other, or does not speak TLS."""

    retriable = False


class AuthenticationFailed(ConnectionFailed):
    """The broker refused the login."""

    retriable = False


class Disconnected(ConnectionFailed):
    """The connection ended before the answer came: the request may or may not have been carried out."""


class CorruptAnswer(ConnectionFailed):
    """The peer's bytes are not the protocol."""


class BrokerError(ClientError):
    """A broker answered with an error code."""

    def __init__(self, code: ErrorCode, text: str = "", cure: str = "") -> None:
        super().__init__(f"{text or code.text} ({code.name})", cure)
        self.code = code
        self.retriable = code.retriable


class UnknownTopic(BrokerError):
    def __init__(self, topic: str, nearest: tuple[str, ...] = ()) -> None:
        cure = f"did you mean {' or '.join(nearest)}?" if nearest else "create it, or check the name"
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}", cure)
        self.retriable = False
        self.topic = topic
        self.nearest = nearest


class UnknownPartition(BrokerError):
    def __init__(self, topic: str, partition: int, count: int) -> None:
        super().__init__(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {topic!r} has no partition {partition}",
            f"its partitions are 0 to {count - 1}",
        )
        self.retriable = False


class TopicExists(BrokerError):
    pass


class MessageTooLarge(BrokerError):
    pass


class NotAuthorized(BrokerError):
    pass


class OffsetOutOfRange(BrokerError):
    """The partition has no such offset any more, or not yet."""

    partition: TopicPartition | None = None
    offset: int | None = None
    earliest: int | None = None  # what the partition has, where that could be found out
    latest: int | None = None

    @classmethod
    def of(cls, partition: TopicPartition, offset: int, earliest: int, latest: int) -> OffsetOutOfRange:
        error = cls(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{partition} at offset {offset}: it has offsets {earliest} to {latest}",
            "what was before is deleted (retention), what is behind is not written, or the topic is new",
        )
        error.partition, error.offset, error.earliest, error.latest = partition, offset, earliest, latest
        return error


class CommitFailed(BrokerError):
    """The group has moved on: these partitions may be read by another member now."""


class NoOffset(ClientError):
    """A partition has no place to start from, and auto.offset.reset is none."""


class ProducerFenced(BrokerError):
    """A newer producer has taken this one's place: it must not write any more."""


class TransactionAborted(ClientError):
    """The record belonged to a transaction that was aborted before the record was delivered."""


class TransactionFailed(ClientError):
    """Something of the transaction is lost, so it can only be aborted. `cause` tells what."""

    def __init__(self, cause: ClientError) -> None:
        super().__init__(
            f"the transaction cannot commit: {cause.text}", "abort it, then do all of it again in a new one"
        )
        self.cause = cause


_COMMIT_CURE = (
    "poll more often (max.poll.interval.ms), or take fewer records per poll; poll() joins the group again"
)
_FENCED_CURE = (
    "close this producer: a newer one with its transactional.id has replaced it, or its transaction took "
    "longer than transaction.timeout.ms"
)
_TOO_LARGE_CURE = "raise max.message.bytes of the topic and max.request.size of the producer, or send less"

_KINDS: dict[ErrorCode, tuple[type[BrokerError], str]] = {
    ErrorCode.TOPIC_ALREADY_EXISTS: (TopicExists, "choose another name, or delete it first"),
    ErrorCode.MESSAGE_TOO_LARGE: (MessageTooLarge, _TOO_LARGE_CURE),
    ErrorCode.RECORD_LIST_TOO_LARGE: (MessageTooLarge, "raise segment.bytes of the topic, or send less"),
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: (NotAuthorized, "ask for an ACL on the topic"),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: (NotAuthorized, "ask for an ACL on the group"),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (NotAuthorized, "ask for an ACL on the cluster"),
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        NotAuthorized,
        "ask for an ACL on the transactional id",
    ),
    ErrorCode.ILLEGAL_GENERATION: (CommitFailed, _COMMIT_CURE),
    ErrorCode.UNKNOWN_MEMBER_ID: (CommitFailed, _COMMIT_CURE),
    ErrorCode.REBALANCE_IN_PROGRESS: (CommitFailed, _COMMIT_CURE),
    ErrorCode.FENCED_MEMBER_EPOCH: (CommitFailed, _COMMIT_CURE),
    ErrorCode.STALE_MEMBER_EPOCH: (CommitFailed, _COMMIT_CURE),
    ErrorCode.OFFSET_OUT_OF_RANGE: (OffsetOutOfRange, "ask for the first and last offsets, then seek"),
    ErrorCode.INVALID_PRODUCER_EPOCH: (ProducerFenced, _FENCED_CURE),
    ErrorCode.PRODUCER_FENCED: (ProducerFenced, _FENCED_CURE),
}

_CURES = {
    ErrorCode.NOT_ENOUGH_REPLICAS: "start more brokers, or lower min.insync.replicas",
    ErrorCode.INVALID_REPLICATION_FACTOR: "use at most as many replicas as there are brokers",
    ErrorCode.TOPIC_DELETION_DISABLED: "set delete.topic.enable=true on the brokers",
    ErrorCode.KAFKA_STORAGE_ERROR: "look into the broker's log, and at its disk",
    ErrorCode.UNKNOWN_SERVER_ERROR: "look into the broker's log",
    ErrorCode.INVALID_TXN_STATE: "make a new producer; its init_transactions() ends what is left of this one",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "make a new producer: the broker has forgotten this one",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "lower transaction.timeout.ms: the broker's most is "
    "transaction.max.timeout.ms",
    ErrorCode.INVALID_TIMESTAMP: "see message.timestamp.before.max.ms and message.timestamp.after.max.ms",
}


_CODES = {int(code): code for code in ErrorCode}


def error_code(code: int) -> ErrorCode:
    """The member of the table; a newer broker's unknown ones are UNKNOWN_SERVER_ERROR."""
    return _CODES.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)


def broker_error(code: int, subject: str = "", message: str | None = None) -> BrokerError:
    """The exception for an answer's error code; `subject` says what the call was about."""
    known = error_code(code)
    if known != code:
        message = message or f"the broker answered with the unknown error code {code}"
    kind, cure = _KINDS.get(known, (BrokerError, _CURES.get(known, "")))
    text = message or known.text
    return kind(known, text if subject in text else f"{subject}: {text}", cure)
