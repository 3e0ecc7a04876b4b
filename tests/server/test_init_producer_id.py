"""InitProducerId: every producer gets an id that nobody had before (over restarts: tests/node)."""

from __future__ import annotations

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from wire import WireClient


@pytest.mark.parametrize("version", range(6))
def test_every_version_gives_a_new_id(client: WireClient, version: int) -> None:
    answers = [client.call(InitProducerIdRequest(), version) for _ in range(3)]
    assert {(answer.error_code, answer.producer_epoch) for answer in answers} == {(ErrorCode.NONE, 0)}
    ids = [answer.producer_id for answer in answers]
    assert len(set(ids)) == 3
    assert min(ids) >= 0


def test_more_than_a_block_of_ids_in_one_piece(client: WireClient) -> None:
    """The ids run out in the middle, and the requests that wait for the next block keep their order."""
    client.send_together(*((InitProducerIdRequest(), 4) for _ in range(2_500)))
    answers = [client.receive() for _ in range(2_500)]
    assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
    ids = [answer.producer_id for answer in answers]
    assert len(set(ids)) == 2_500


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_producer_that_names_its_id_gets_a_new_one(client: WireClient, version: int) -> None:
    first = client.call(InitProducerIdRequest(), version)
    again = client.call(
        InitProducerIdRequest(producer_id=first.producer_id, producer_epoch=first.producer_epoch), version
    )
    assert (again.error_code, again.producer_epoch) == (ErrorCode.NONE, 0)
    assert again.producer_id != first.producer_id


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 5)])
def test_half_a_name_is_refused(client: WireClient, version: int, producer_id: int, epoch: int) -> None:
    request = InitProducerIdRequest(producer_id=producer_id, producer_epoch=epoch)
    refused = client.call(request, version)
    assert (refused.error_code, refused.producer_id, refused.producer_epoch) == (
        ErrorCode.INVALID_REQUEST,
        -1,
        -1,
    )
