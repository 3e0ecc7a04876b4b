"""Fetch sessions (KIP-227): what a reader reads is said once, then only what changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from calls import (
    append,
    at,
    create_topic,
    delete_topic,
    fetch_request,
    told,
    topic_id_of,
    values_in,
)
from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import TopicId
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from ottla.server import fetch_sessions
from ottla.server.fetch_requests import of_message
from ottla.server.fetch_sessions import EVICTION_IDLE_MS, FetchSessions
from ottla.testing import BrokerProcess
from wire import WireClient

Topic = str | TopicId


class Session:
    """A reader with a session, as clients keep it."""

    def __init__(self, client: WireClient, version: int, topic: Topic, *partitions: FetchPartition) -> None:
        self.client = client
        self.version = version
        self.topic = topic
        response = client.call(fetch_request(topic, *partitions, session_epoch=0), version)
        assert response.error_code == ErrorCode.NONE
        self.first = response
        self.id = response.session_id
        self.epoch = 1

    def fetch(
        self, *partitions: FetchPartition, forget: tuple[int, ...] = (), max_wait_ms: int = 0
    ) -> FetchResponse:
        response = self.client.call(
            self.request(*partitions, forget=forget, max_wait_ms=max_wait_ms), self.version
        )
        assert isinstance(response, FetchResponse)
        self.epoch += 1
        return response

    def request(
        self, *partitions: FetchPartition, forget: tuple[int, ...] = (), max_wait_ms: int = 0
    ) -> FetchRequest:
        name, topic_id = (self.topic, bytes(16)) if isinstance(self.topic, str) else ("", self.topic)
        return FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            session_id=self.id,
            session_epoch=self.epoch,
            topics=[FetchTopic(name, TopicId(topic_id), partitions)] if partitions else [],
            forgotten_topics_data=[ForgottenTopic(name, TopicId(topic_id), forget)] if forget else [],
        )


@pytest.fixture(params=[7, 12, 13, 18])
def version(request: pytest.FixtureRequest) -> int:
    """The first and last with names, the first and last with ids."""
    return int(request.param)


@pytest.fixture
def name(client: WireClient) -> str:
    return create_topic(client, partitions=3)


@pytest.fixture
def session(client: WireClient, version: int, name: str) -> Session:
    topic: Topic = name if version < 13 else topic_id_of(client, name)
    return Session(client, version, topic, at(0, 0), at(0, 1), at(0, 2))


def indexes(response: FetchResponse) -> list[int]:
    return [data.partition_index for data in told(response.responses)]


def test_the_first_answer_tells_every_partition_and_opens_a_session(session: Session) -> None:
    assert session.id > 0
    assert indexes(session.first) == [0, 1, 2]


def test_without_news_an_incremental_answer_is_empty(session: Session) -> None:
    for _ in range(3):
        response = session.fetch()
        assert (response.error_code, response.session_id, response.responses) == (0, session.id, ())


def test_an_incremental_answer_has_only_what_changed(client: WireClient, session: Session, name: str) -> None:
    append(client, name, b"a", partition=1)
    response = session.fetch()
    assert indexes(response) == [1]
    assert values_in(told(response.responses)[0]) == [b"a"]
    assert indexes(session.fetch(at(1, 1))) == []  # read, and nothing new
    append(client, name, b"b", partition=2)
    append(client, name, b"c", partition=0)
    assert sorted(indexes(session.fetch())) == [0, 2]


def test_a_moved_log_start_is_a_change(client: WireClient, session: Session, name: str) -> None:
    append(client, name, b"a", partition=0)
    session.fetch()
    assert indexes(session.fetch(at(1, 0))) == []
    trim = DeleteRecordsTopic(name, [DeleteRecordsPartition(0, 1)])
    client.call(DeleteRecordsRequest([trim]), 2)
    (data,) = told(session.fetch().responses)
    assert (data.partition_index, data.log_start_offset) == (0, 1)


def test_a_partition_that_has_data_goes_to_the_end_of_the_line(
    client: WireClient, session: Session, name: str
) -> None:
    """So that a full answer starves nobody: whoever was served stands behind the others next time."""
    for partition in range(3):
        for _ in range(3):
            append(client, name, b"x" * 100, partition=partition)
    offsets = [0, 0, 0]
    served = []
    for _ in range(6):
        request = session.request(*(at(offsets[index], index) for index in range(3)))
        request.max_bytes = 1  # type: ignore[misc]  # one batch, of whoever is first
        response = client.call(request, session.version)
        session.epoch += 1
        with_data = [data for data in told(response.responses) if data.records]
        assert len(with_data) == 1
        served.append(with_data[0].partition_index)
        offsets[served[-1]] += 1
    assert served == [0, 1, 2, 0, 1, 2]


def test_forgotten_partitions_are_told_no_more(client: WireClient, session: Session, name: str) -> None:
    for partition in range(3):
        append(client, name, b"a", partition=partition)
    assert indexes(session.fetch(forget=(0, 2))) == [1]


def test_partitions_can_be_added(client: WireClient, version: int, name: str) -> None:
    topic: Topic = name if version < 13 else topic_id_of(client, name)
    session = Session(client, version, topic, at(0, 0))
    append(client, name, b"a", partition=2)
    assert indexes(session.fetch()) == []
    assert indexes(session.fetch(at(0, 2))) == [2]


def test_an_error_is_told_until_it_is_over(client: WireClient, session: Session, name: str) -> None:
    for _ in range(2):
        (data,) = told(session.fetch(at(99, 1)).responses)
        assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    (data,) = told(session.fetch(at(0, 1)).responses)
    assert (data.error_code, data.high_watermark) == (ErrorCode.NONE, 0)
    assert indexes(session.fetch()) == []


def test_a_session_waits_like_any_other_fetch(
    client: WireClient, reader: WireClient, session: Session, name: str
) -> None:
    client.send(session.request(max_wait_ms=60_000), session.version)
    assert client.is_silent(0.05)
    append(reader, name, b"came", partition=2)
    assert indexes(client.receive()) == [2]


def test_a_topic_deleted_meanwhile_is_told(
    client: WireClient, reader: WireClient, session: Session, name: str
) -> None:
    client.send(session.request(max_wait_ms=60_000), session.version)
    assert client.is_silent(0.05)
    delete_topic(reader, name)
    response = client.receive()
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if session.version < 13 else ErrorCode.UNKNOWN_TOPIC_ID
    assert {data.error_code for data in told(response.responses)} == {code}


@pytest.mark.parametrize("epoch", [2, 17, 2**31 - 1])
def test_a_wrong_epoch_is_refused_and_does_not_end_the_session(session: Session, epoch: int) -> None:
    session.epoch = epoch
    response = session.fetch()
    assert response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert response.responses == ()
    session.epoch = 1
    assert session.fetch().error_code == ErrorCode.NONE


def test_an_epoch_cannot_be_used_twice(session: Session) -> None:
    session.fetch()
    session.epoch = 1
    assert session.fetch().error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_session_nobody_knows_is_refused(session: Session) -> None:
    session.id ^= 1
    assert session.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_the_final_epoch_closes_a_session(session: Session) -> None:
    session.epoch = -1
    response = session.fetch(at(0, 0))
    assert (response.error_code, response.session_id) == (ErrorCode.NONE, 0)
    assert indexes(response) == [0]
    session.epoch = 1
    assert session.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_the_initial_epoch_replaces_a_session(session: Session) -> None:
    old = session.id
    session.epoch = 0
    response = session.fetch(at(0, 1))
    assert response.session_id not in (0, old)
    assert indexes(response) == [1]
    session.epoch = 1
    assert session.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_that_has_nothing_left_to_read_is_closed(session: Session) -> None:
    response = session.fetch(forget=(0, 1, 2))
    assert (response.error_code, response.session_id, response.responses) == (ErrorCode.NONE, 0, ())
    assert session.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_reader_that_wants_no_session_gets_none(client: WireClient, version: int, name: str) -> None:
    topic: Topic = name if version < 13 else topic_id_of(client, name)
    assert client.call(fetch_request(topic, at(0), session_epoch=-1), version).session_id == 0


def test_a_session_may_not_change_between_names_and_ids(client: WireClient, name: str) -> None:
    by_name = Session(client, 12, name, at(0))
    by_name.version = 13
    assert by_name.fetch().error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    by_id = Session(client, 13, topic_id_of(client, name), at(0))
    by_id.version = 12
    assert by_id.fetch().error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_session_goes_on_over_another_connection(
    client: WireClient, reader: WireClient, session: Session, name: str
) -> None:
    append(client, name, b"a")
    session.client = reader
    assert indexes(session.fetch()) == [0]


# -- slots ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def narrow() -> Iterator[BrokerProcess]:
    """A broker with room for three sessions."""
    with BrokerProcess(settings={"max.incremental.fetch.session.cache.slots": "3"}) as broker:
        yield broker


def test_a_reader_without_a_slot_reads_without_a_session(narrow: BrokerProcess) -> None:
    with WireClient(narrow.bootstrap) as client:
        topic = create_topic(client)
        append(client, topic, b"a")
        sessions = [Session(client, 12, topic, at(0)) for _ in range(3)]
        assert all(session.id for session in sessions)
        fourth = Session(client, 12, topic, at(0))
        assert fourth.id == 0
        assert values_in(told(fourth.first.responses)[0]) == [b"a"]
        assert all(session.fetch().error_code == ErrorCode.NONE for session in sessions)
        sessions[0].epoch = -1
        sessions[0].fetch()  # gives its slot back
        assert Session(client, 12, topic, at(0)).id != 0


def opened(sessions: FetchSessions, now_ms: int, session_id: int = 0, epoch: int = 0) -> int:
    """The id of the session that a fetch at `now_ms` gets."""
    request = fetch_request("topic", at(0), session_id=session_id, session_epoch=epoch)
    return sessions.open(of_message(request, 12), 12, now_ms).session_id


def test_a_session_that_is_idle_for_long_gives_way_to_a_new_one() -> None:
    sessions = FetchSessions(2, seed=1)
    old, used = opened(sessions, 0), opened(sessions, 0)
    assert opened(sessions, EVICTION_IDLE_MS - 1) == 0
    assert opened(sessions, EVICTION_IDLE_MS - 1, used, 1) == used
    new = opened(sessions, EVICTION_IDLE_MS)
    assert new not in (0, old, used)
    with pytest.raises(Refused) as refusal:
        opened(sessions, EVICTION_IDLE_MS, old, 1)
    assert refusal.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert opened(sessions, EVICTION_IDLE_MS, used, 2) == used
    assert len(sessions) == 2


def test_without_slots_there_are_no_sessions() -> None:
    sessions = FetchSessions(0)
    assert opened(sessions, 0) == 0
    assert opened(sessions, 10 * EVICTION_IDLE_MS) == 0


def test_the_epoch_after_the_largest_is_1() -> None:
    sessions = FetchSessions(1)
    session_id = opened(sessions, 0)
    sessions._sessions[session_id].epoch = 2**31 - 1
    assert opened(sessions, 0, session_id, 2**31 - 1) == session_id
    assert opened(sessions, 0, session_id, 1) == session_id


def test_all_sessions_together_follow_a_limited_number_of_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "FETCH_SESSION_PARTITIONS_MAX", 10)
    sessions = FetchSessions(100)
    six = of_message(
        fetch_request("topic", *(at(0, partition) for partition in range(6)), session_epoch=0), 12
    )
    first = sessions.open(six, 12, 0).session_id
    assert first != 0
    assert sessions.open(six, 12, 0).session_id == 0  # it reads without one
    more = fetch_request(
        "topic", *(at(0, partition) for partition in range(3, 12)), session_id=first, session_epoch=1
    )
    with pytest.raises(Refused) as refusal:
        sessions.open(of_message(more, 12), 12, 0)
    assert refusal.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 0
    assert sessions.open(six, 12, 0).session_id != 0  # what it followed is free again
