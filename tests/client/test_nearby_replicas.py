"""A consumer that says where it is reads from the replica that the leader names, or from the leader again."""

from __future__ import annotations

from ottla.client.backoff import Backoff
from ottla.client.cluster_view import Broker, ClusterView, Partition, Topic
from ottla.client.errors import TimedOut
from ottla.client.fetcher import Fetcher, FetchRules
from ottla.client.offset_spec import Start
from ottla.client.reader import Reader
from ottla.model.errors import ErrorCode
from ottla.model.topics import NO_TOPIC_ID, TopicPartition
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

TARGET = TopicPartition("topic", 0)
LEADER, NEAR = 1, 2
AGE_MS = 1_000
RULES = FetchRules(1, 500, 1_000_000, 1_000_000, False, True, rack="here", replica_age_ms=AGE_MS)
VIEW = ClusterView(
    brokers={each: Broker(each, "host", 9000 + each) for each in (LEADER, NEAR)},
    topics={"topic": Topic("topic", NO_TOPIC_ID, False, (Partition(0, LEADER, 0, (1, 2), (1, 2)),))},
)


class Reading:
    """A fetcher and its brokers, a step at a time."""

    def __init__(self) -> None:
        self.fetcher = Fetcher(RULES, Backoff(10, 10), Start())
        self.reader = Reader(TARGET, 100)
        self.fetcher.assign([self.reader])
        self.now_ms = 0

    def asked(self) -> int:
        """Who is asked next, and has not answered yet."""
        ((broker, request, self._turns),) = self.fetcher.requests(VIEW, self.now_ms)
        assert request.rack_id == "here"
        self._broker_id = broker.id
        return broker.id

    def answers(self, **partition: int) -> None:
        answer = FetchResponse(
            session_id=7, responses=[FetchableTopicResponse("topic", partitions=[PartitionData(**partition)])]
        )
        self.fetcher.take(self._broker_id, answer, self._turns, {}, self.now_ms)

    def is_lost(self) -> None:
        self.fetcher.lost(self._broker_id, self._turns, TimedOut("no answer"), self.now_ms)


def test_the_named_replica_is_asked_until_its_time_is_over() -> None:
    reading = Reading()
    assert reading.asked() == LEADER
    reading.answers(preferred_read_replica=NEAR)
    assert reading.asked() == NEAR
    reading.answers(high_watermark=100)
    reading.now_ms = AGE_MS - 1
    assert reading.asked() == NEAR
    reading.answers(high_watermark=100)
    reading.now_ms = AGE_MS
    assert reading.asked() == LEADER


def test_what_the_replica_cannot_give_the_leader_is_asked_for() -> None:
    for code in (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        reading = Reading()
        reading.asked()
        reading.answers(preferred_read_replica=NEAR)
        assert reading.asked() == NEAR
        reading.answers(error_code=int(code))
        reading.now_ms = 100  # a pause
        assert reading.reader.offset == 100  # the leader decides whether it is gone
        assert reading.asked() == LEADER
    reading.answers(preferred_read_replica=NEAR)
    assert reading.asked() == NEAR
    reading.is_lost()
    reading.now_ms = 200
    assert reading.asked() == LEADER


def test_an_offset_that_the_leader_does_not_have_is_reset() -> None:
    reading = Reading()
    reading.asked()
    reading.answers(error_code=int(ErrorCode.OFFSET_OUT_OF_RANGE))
    assert reading.reader.offset is None


def test_a_replica_that_is_gone_is_not_asked() -> None:
    reading = Reading()
    reading.asked()
    reading.answers(preferred_read_replica=9)
    assert reading.asked() == LEADER
