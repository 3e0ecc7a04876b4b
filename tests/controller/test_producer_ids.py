"""No producer id is ever given twice, whatever happens between."""

from __future__ import annotations

import pytest

from controller.running import RunningController
from ottla.controller.producer_ids import BLOCK_IDS, ProducerIds
from ottla.controller.znode_formats import ProducerIdBlock, encode_producer_id_block
from ottla.coordination.operations import SetData
from ottla.model.errors import ErrorCode, Refused

pytestmark = pytest.mark.usefixtures("where")


def next_block(running: RunningController) -> ProducerIdBlock | Refused:
    blocks: list[ProducerIdBlock | Refused] = []
    running.controller.next_producer_id_block(blocks.append)
    running.coordination.sync()
    [block] = blocks
    return block


def test_blocks_follow_each_other_over_restarts() -> None:
    running = RunningController()
    assert next_block(running) == ProducerIdBlock(1, 0, 999)
    assert next_block(running) == ProducerIdBlock(1, 1000, 1999)
    assert running.data("/latest_producer_id_block") == (
        b'{"version":1,"broker":1,"block_start":"1000","block_end":"1999"}'
    )
    running = RunningController(running.files.cut(3))
    assert next_block(running) == ProducerIdBlock(1, 2000, 2999)


def test_blocks_asked_for_at_once_differ() -> None:
    running = RunningController()
    blocks: list[ProducerIdBlock | Refused] = []
    for _ in range(3):
        running.controller.next_producer_id_block(blocks.append)
    running.coordination.sync()
    assert blocks == [ProducerIdBlock(1, first, first + 999) for first in (0, 1000, 2000)]


def test_the_last_ids_are_refused_rather_than_reused() -> None:
    running = RunningController()
    data = encode_producer_id_block(ProducerIdBlock(1, 2**63 - 2000, 2**63 - 1001))
    running.coordination.submit(SetData("/latest_producer_id_block", data), lambda _: None)
    assert next_block(running) == ProducerIdBlock(1, 2**63 - 1000, 2**63 - 1)
    block = next_block(running)
    assert isinstance(block, Refused)
    assert block.code is ErrorCode.UNKNOWN_SERVER_ERROR


class TestTakingIds:
    def test_ids_wait_for_their_block_to_be_durable_and_then_cost_nothing(self) -> None:
        running = RunningController()
        ids = ProducerIds(running.controller)
        taken: list[int | Refused] = []
        ids.take(taken.append)
        ids.take(taken.append)
        assert taken == []
        running.coordination.sync()
        assert taken == [0, 1]
        before = running.files.operations
        for _ in range(BLOCK_IDS - 2):
            ids.take(taken.append)
        assert taken == list(range(BLOCK_IDS))
        assert running.files.operations == before
        ids.take(taken.append)
        running.coordination.sync()
        assert taken[-1] == BLOCK_IDS

    def test_more_waiting_than_a_block_holds(self) -> None:
        running = RunningController()
        ids = ProducerIds(running.controller)
        taken: list[int | Refused] = []
        for _ in range(2 * BLOCK_IDS + 5):
            ids.take(taken.append)
        running.coordination.sync()
        assert taken == list(range(2 * BLOCK_IDS + 5))

    def test_a_restart_never_gives_an_id_again(self) -> None:
        running = RunningController()
        taken: list[int | Refused] = []
        for seed in range(3):
            ids = ProducerIds(running.controller)
            ids.take(taken.append)
            running.coordination.sync()
            running = RunningController(running.files.cut(seed))
        assert taken == [0, 1000, 2000]

    def test_a_refusal_reaches_all_who_wait(self) -> None:
        running = RunningController()
        running.coordination.submit(SetData("/controller_epoch", b"9"), lambda _: None)
        ids = ProducerIds(running.controller)
        taken: list[int | Refused] = []
        ids.take(taken.append)
        ids.take(taken.append)
        running.coordination.sync()
        assert [outcome.code for outcome in taken if isinstance(outcome, Refused)] == [
            ErrorCode.NOT_CONTROLLER
        ] * 2
