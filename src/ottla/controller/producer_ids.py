"""Producer ids: handed to brokers in blocks, so that no two producers of a cluster ever share one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from ottla.controller.cluster import ClusterImage, Znodes
from ottla.controller.znode_formats import (
    PRODUCER_ID_BLOCK,
    ProducerIdBlock,
    decode_producer_id_block,
    encode_producer_id_block,
)
from ottla.coordination.operations import SetData, Step, StepResult
from ottla.model.errors import ErrorCode, Refused

BLOCK_IDS = 1_000
"""Ids of a block, as in Kafka: a change of a znode for every thousandth producer."""

_PRODUCER_ID_MAX = 2**63 - 1


class ProducerIdBlockPlan:
    def __init__(self, block: ProducerIdBlock, version: int) -> None:
        self.block = block
        self.steps: list[Step] = [SetData(PRODUCER_ID_BLOCK, encode_producer_id_block(block), version)]

    def apply(self, image: ClusterImage, answers: Sequence[StepResult]) -> None:
        """The image does not hold producer ids."""


def decide_producer_id_block(znodes: Znodes, broker_id: int) -> ProducerIdBlockPlan:
    found = znodes.read(PRODUCER_ID_BLOCK)
    assert found is not None, "made when the controller took office"
    data, stat = found
    present = decode_producer_id_block(data)
    first_id = 0 if present is None else present.last_id + 1
    last_id = first_id + BLOCK_IDS - 1
    if last_id > _PRODUCER_ID_MAX:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "every producer id has been handed out")
    return ProducerIdBlockPlan(ProducerIdBlock(broker_id, first_id, last_id), stat.version)


class BlockSource(Protocol):
    def next_producer_id_block(self, done: Callable[[ProducerIdBlock | Refused], None]) -> None: ...


class ProducerIds:
    """The ids of one broker: taken from its block, and the next block is asked for when that runs out."""

    def __init__(self, source: BlockSource) -> None:
        self._source = source
        self._next_id = 0
        self._end_id = 0
        self._waiting: deque[Callable[[int | Refused], None]] = deque()

    def take(self, done: Callable[[int | Refused], None]) -> None:
        """`done` gets an id that nobody had before, at once or when a new block is durable."""
        if self._next_id < self._end_id and not self._waiting:
            self._next_id += 1
            done(self._next_id - 1)
            return
        self._waiting.append(done)
        if len(self._waiting) == 1:
            self._source.next_producer_id_block(self._received)

    def _received(self, block: ProducerIdBlock | Refused) -> None:
        if isinstance(block, Refused):
            refused, self._waiting = self._waiting, deque()
            for done in refused:
                done(block)
            return
        self._next_id, self._end_id = block.first_id, block.last_id + 1
        while self._waiting and self._next_id < self._end_id:
            self._next_id += 1
            self._waiting.popleft()(self._next_id - 1)
        if self._waiting:
            self._source.next_producer_id_block(self._received)
