"""The protocol's errors in one table, and the three kinds of exception this code base raises.

- `Refused`: the peer asked for something we answer with an error code (and a text that names cause and cure).
- `Malformed`: the peer's bytes are not the protocol; the connection is closed with one log line.
- `CorruptData`: bytes on our disk are not what we wrote; the partition goes offline.
Anything else that is raised is a bug of ours.
"""

from __future__ import annotations

from enum import IntEnum

from ottla.model.problems import CorruptData as CorruptData
from ottla.model.problems import Malformed as Malformed


class ErrorCode(IntEnum):
    retriable: bool
    text: str

    def __new__(cls, code: int, retriable: bool, text: str) -> ErrorCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.text = text
        return member

    UNKNOWN_SERVER_ERROR = -1, False, "the broker failed unexpectedly; its log has the reason"
    NONE = 0, False, ""
    OFFSET_OUT_OF_RANGE = 1, False, "the offset is outside of what the partition holds"
    CORRUPT_MESSAGE = 2, True, "a batch is damaged: CRC, length or content do not fit"
    UNKNOWN_TOPIC_OR_PARTITION = 3, True, "no such topic or partition here"
    INVALID_FETCH_SIZE = 4, False, "the fetch size is not valid"
    LEADER_NOT_AVAILABLE = 5, True, "the partition has no leader at the moment"
    NOT_LEADER_OR_FOLLOWER = 6, True, "this broker does not lead the partition"
    REQUEST_TIMED_OUT = 7, True, "the request ran out of time"
    BROKER_NOT_AVAILABLE = 8, False, "the broker is not available"
    REPLICA_NOT_AVAILABLE = 9, True, "the replica is not available"
    MESSAGE_TOO_LARGE = 10, False, "a batch is larger than max.message.bytes"
    STALE_CONTROLLER_EPOCH = 11, False, "another controller has been elected since"
    OFFSET_METADATA_TOO_LARGE = 12, False, "the metadata of an offset commit is too large"
    NETWORK_EXCEPTION = 13, True, "the connection broke before an answer arrived"
    COORDINATOR_LOAD_IN_PROGRESS = 14, True, "the coordinator is still loading"
    COORDINATOR_NOT_AVAILABLE = 15, True, "the coordinator is not available"
    NOT_COORDINATOR = 16, True, "this broker is not the coordinator"
    INVALID_TOPIC_EXCEPTION = 17, False, "the topic name is not valid, or the topic may not be used so"
    RECORD_LIST_TOO_LARGE = 18, False, "a batch is larger than segment.bytes"
    NOT_ENOUGH_REPLICAS = 19, True, "fewer replicas are in sync than min.insync.replicas asks for"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, True, "written, but to fewer in-sync replicas than asked for"
    INVALID_REQUIRED_ACKS = 21, False, "acks must be 0, 1 or -1 (all)"
    ILLEGAL_GENERATION = 22, False, "the group has moved on to another generation"
    INCONSISTENT_GROUP_PROTOCOL = 23, False, "the group's members share no protocol with this one"
    INVALID_GROUP_ID = 24, False, "the group id is not valid"
    UNKNOWN_MEMBER_ID = 25, False, "the group does not know this member"
    INVALID_SESSION_TIMEOUT = 26, False, "the session timeout is outside of the broker's limits"
    REBALANCE_IN_PROGRESS = 27, False, "the group is rebalancing; join again"
    INVALID_COMMIT_OFFSET_SIZE = 28, False, "the offset commit is too large"
    TOPIC_AUTHORIZATION_FAILED = 29, False, "not authorized for this topic"
    GROUP_AUTHORIZATION_FAILED = 30, False, "not authorized for this group"
    CLUSTER_AUTHORIZATION_FAILED = 31, False, "not authorized for the cluster"
    INVALID_TIMESTAMP = 32, False, "a record's timestamp is outside of what the topic accepts"
    UNSUPPORTED_SASL_MECHANISM = 33, False, "the broker does not offer this SASL mechanism"
    ILLEGAL_SASL_STATE = 34, False, "the request does not fit the state of the authentication"
    UNSUPPORTED_VERSION = 35, False, "the broker does not speak this version of the API"
    TOPIC_ALREADY_EXISTS = 36, False, "a topic of this name exists"
    INVALID_PARTITIONS = 37, False, "the number of partitions is not valid"
    INVALID_REPLICATION_FACTOR = 38, False, "the replication factor is below 1 or above the number of brokers"
    INVALID_REPLICA_ASSIGNMENT = 39, False, "the replica assignment is not valid"
    INVALID_CONFIG = 40, False, "a setting is not valid"
    NOT_CONTROLLER = 41, True, "this broker is not the controller"
    INVALID_REQUEST = 42, False, "the request contradicts itself or the protocol"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, False, "the message format does not support this"
    POLICY_VIOLATION = 44, False, "a policy of the cluster forbids this"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, False, "a sequence number is missing before this batch"
    DUPLICATE_SEQUENCE_NUMBER = 46, False, "the batch was written before"
    INVALID_PRODUCER_EPOCH = 47, False, "a newer epoch of this producer exists"
    INVALID_TXN_STATE = 48, False, "the transaction is not in a state for this"
    INVALID_PRODUCER_ID_MAPPING = 49, False, "the producer id does not belong to this transactional id"
    INVALID_TRANSACTION_TIMEOUT = 50, False, "the transaction timeout is above transaction.max.timeout.ms"
    CONCURRENT_TRANSACTIONS = 51, True, "another operation of this transaction is under way"
    TRANSACTION_COORDINATOR_FENCED = 52, False, "another transaction coordinator has taken over"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, False, "not authorized for this transactional id"
    SECURITY_DISABLED = 54, False, "no authorizer is set up"
    OPERATION_NOT_ATTEMPTED = 55, False, "not attempted, because another part of the request failed"
    KAFKA_STORAGE_ERROR = 56, True, "a file of the partition cannot be read or written"
    LOG_DIR_NOT_FOUND = 57, False, "no such log directory"
    SASL_AUTHENTICATION_FAILED = 58, False, "authentication failed"
    UNKNOWN_PRODUCER_ID = 59, False, "nothing is known of this producer id any more"
    REASSIGNMENT_IN_PROGRESS = 60, False, "the partition is being reassigned"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, False, "delegation tokens are not enabled"
    DELEGATION_TOKEN_NOT_FOUND = 62, False, "no such delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, False, "not an owner or renewer of the token"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, False, "tokens cannot be asked for on this connection"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, False, "not authorized for the token"
    DELEGATION_TOKEN_EXPIRED = 66, False, "the token has expired"
    INVALID_PRINCIPAL_TYPE = 67, False, "the principal type is not supported"
    NON_EMPTY_GROUP = 68, False, "the group has members"
    GROUP_ID_NOT_FOUND = 69, False, "no such group"
    FETCH_SESSION_ID_NOT_FOUND = 70, True, "no such fetch session; start a new one"
    INVALID_FETCH_SESSION_EPOCH = 71, True, "the fetch session's epoch does not fit; start a new one"
    LISTENER_NOT_FOUND = 72, True, "the leader has no listener of this name"
    TOPIC_DELETION_DISABLED = 73, False, "topic deletion is switched off (delete.topic.enable)"
    FENCED_LEADER_EPOCH = 74, True, "a newer leader epoch exists"
    UNKNOWN_LEADER_EPOCH = 75, True, "the broker has not heard of this leader epoch yet"
    UNSUPPORTED_COMPRESSION_TYPE = 76, False, "the client cannot read this compression type"
    STALE_BROKER_EPOCH = 77, False, "the broker has registered anew since"
    OFFSET_NOT_AVAILABLE = 78, True, "a new leader does not know the high watermark yet"
    MEMBER_ID_REQUIRED = 79, False, "join again with the member id given here"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, True, "the preferred leader is not available"
    GROUP_MAX_SIZE_REACHED = 81, False, "the group is full"
    FENCED_INSTANCE_ID = 82, False, "another consumer has taken this group.instance.id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, True, "no replica may become leader"
    ELECTION_NOT_NEEDED = 84, True, "the leader is the right one already"
    NO_REASSIGNMENT_IN_PROGRESS = 85, False, "the partition is not being reassigned"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, False, "the group still reads this topic"
    INVALID_RECORD = 87, False, "a record breaks a rule of the topic"
    UNSTABLE_OFFSET_COMMIT = 88, True, "a transaction's offsets are still open"
    THROTTLING_QUOTA_EXCEEDED = 89, True, "a quota is used up; wait"
    PRODUCER_FENCED = 90, False, "a newer producer uses this transactional id"
    RESOURCE_NOT_FOUND = 91, False, "no such resource"
    DUPLICATE_RESOURCE = 92, False, "the same resource is named twice"
    UNACCEPTABLE_CREDENTIAL = 93, False, "the credential is not acceptable"
    INCONSISTENT_VOTER_SET = 94, False, "the voter sets differ"
    INVALID_UPDATE_VERSION = 95, False, "the version is not valid"
    FEATURE_UPDATE_FAILED = 96, False, "the feature could not be updated"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, False, "a forwarded principal could not be read"
    SNAPSHOT_NOT_FOUND = 98, False, "no such snapshot"
    POSITION_OUT_OF_RANGE = 99, False, "the position is outside of the snapshot"
    UNKNOWN_TOPIC_ID = 100, True, "no topic has this id here"
    DUPLICATE_BROKER_REGISTRATION = 101, False, "the broker id is taken"
    BROKER_ID_NOT_REGISTERED = 102, False, "no broker has this id"
    INCONSISTENT_TOPIC_ID = 103, True, "the topic id is not the one of this topic"
    INCONSISTENT_CLUSTER_ID = 104, False, "the request is meant for another cluster"
    TRANSACTIONAL_ID_NOT_FOUND = 105, False, "no such transactional id"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, True, "the fetch session mixes names and ids; start a new one"
    INELIGIBLE_REPLICA = 107, False, "a replica may not join the ISR now"
    NEW_LEADER_ELECTED = 108, False, "the change was made, and a new leader elected"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, False, "the offset is in tiered storage"
    FENCED_MEMBER_EPOCH = 110, False, "the member's epoch is fenced; give up the partitions and join again"
    UNRELEASED_INSTANCE_ID = 111, False, "another member still uses this instance id"
    UNSUPPORTED_ASSIGNOR = 112, False, "the group does not support this assignor"
    STALE_MEMBER_EPOCH = 113, False, "the member's epoch is old; heartbeat, then try again"
    MISMATCHED_ENDPOINT_TYPE = 114, False, "the request was sent to the wrong kind of endpoint"
    UNSUPPORTED_ENDPOINT_TYPE = 115, False, "this kind of endpoint is not supported"
    UNKNOWN_CONTROLLER_ID = 116, False, "no such controller"
    UNKNOWN_SUBSCRIPTION_ID = 117, False, "no such telemetry subscription"
    TELEMETRY_TOO_LARGE = 118, False, "the telemetry is too large"
    INVALID_REGISTRATION = 119, False, "the broker's registration is not valid"
    TRANSACTION_ABORTABLE = 120, False, "abort the transaction; the transactional id can be used on"
    INVALID_RECORD_STATE = 121, False, "the record cannot be acknowledged in its state"
    SHARE_SESSION_NOT_FOUND = 122, True, "no such share session"
    INVALID_SHARE_SESSION_EPOCH = 123, True, "the share session's epoch does not fit"
    FENCED_STATE_EPOCH = 124, False, "the share group's state has moved on"
    INVALID_VOTER_KEY = 125, False, "the voter key does not fit"
    DUPLICATE_VOTER = 126, False, "the voter is in the set already"
    VOTER_NOT_FOUND = 127, False, "no such voter"
    INVALID_REGULAR_EXPRESSION = 128, False, "the regular expression is not valid"
    REBOOTSTRAP_REQUIRED = 129, False, "start again from the bootstrap servers"
    STREAMS_INVALID_TOPOLOGY = 130, False, "the topology is not valid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, False, "the topology's epoch is not valid"
    STREAMS_TOPOLOGY_FENCED = 132, False, "the topology's epoch is fenced"
    SHARE_SESSION_LIMIT_REACHED = 133, True, "too many share sessions"


class Refused(Exception):
    """The peer's request is answered with `code` and `text`."""

    def __init__(self, code: ErrorCode, text: str = "") -> None:
        super().__init__(f"{code.name}: {text or code.text}")
        self.code = code
        self.text = text or code.text
