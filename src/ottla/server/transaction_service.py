"""The transaction coordinator of this broker: carries decisions to their log, ends transactions, keeps time.

A transaction ends in two rounds of the disk, however many partitions it has: the decision, and the markers.
Then the producer hears of it, so that its next transaction can begin, with which the note goes that all is
done: a coordinator that loads its log without that note writes the markers again, which does no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ottla.controller.changes import Change
from ottla.controller.topics import TopicSpec
from ottla.coordinator.transaction import Transaction
from ottla.coordinator.transaction_machine import ProducerIdNeeded, TransactionMachine
from ottla.coordinator.transaction_records import transaction_record
from ottla.model.configs import BrokerConfig
from ottla.model.errors import ErrorCode, Refused
from ottla.model.offsets import NO_PRODUCER_ID
from ottla.model.topics import TRANSACTIONS_TOPIC, TopicPartition
from ottla.records.compression import Codec
from ottla.server.state_partition import Done, StatePartition
from ottla.server.state_topic import StateTopic
from ottla.server.timers import Timer
from ottla.server.transaction_markers import Ending, Results, write_markers

if TYPE_CHECKING:
    from ottla.server.services import Services

log = logging.getLogger(__name__)

Transactions = StatePartition[TransactionMachine]
Decision = Callable[[TransactionMachine, int | None], Transaction | None]

_HOLD_MS_MAX = 100
"""How long an answer waits for markers. Sooner the producer could not begin anew; if they take longer, a
partition is in trouble, and the decision itself is safe.
"""
_NOTE_MS_MAX = 50  # how long the note that a transaction is done waits for another write to go with
_RETRY_MS = 500  # markers that a partition did not take
_WRITE_TIMEOUT_MS = 5_000  # Kafka's request timeout of its own log
_OVER = (  # markers that no later try can write, or need not
    ErrorCode.NONE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
)


class TransactionService:
    def __init__(self, services: Services) -> None:
        self._services = services
        config = services.broker_config
        self._expiration_ms = config.integer("transactional.id.expiration.ms")
        self._expiry_interval_ms = config.integer(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        )
        self.timeout_ms_max = config.integer("transaction.max.timeout.ms")
        self._timers: dict[str, Timer] = {}  # of each id that has, or lately had, one open
        self._waiting: dict[str, list[_Held]] = {}  # for the end of an id's transaction
        self.topic: StateTopic[TransactionMachine] = StateTopic(
            services,
            self,
            lambda: _topic_spec(services.broker_config, len(services.controller.image.brokers)),
            codec=Codec.NONE,
            commit_timeout_ms=_WRITE_TIMEOUT_MS,
            load_bytes=config.integer("transaction.state.log.load.buffer.size"),
        )

    def start(self) -> None:
        self.topic.start()
        self._set_expiry_timer()
        self._services.metrics.gauge(
            "transactions", lambda: sum(len(each.machine.transactions) for each in self.loaded_partitions())
        )

    def stop(self) -> None:
        """The broker stops: its log is to say what has become of every transaction."""
        for partition in self.loaded_partitions():
            partition.urge()

    @property
    def verifies(self) -> bool:
        """Whether a batch is taken only for partitions that its transaction has named."""
        return self._services.broker_config.flag("transaction.partition.verification.enable")

    def loaded_partitions(self) -> list[Transactions]:
        return [each for each in self.topic.partitions.values() if each.is_loaded]

    # -- decisions -----------------------------------------------------------------------------------------

    def begin(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: tuple[int, int] | None,
        done: Callable[[Transaction | Refused], None],
        *,
        keep_prepared: bool = False,
    ) -> None:
        """InitProducerId. An open transaction of the producer before is aborted first, or kept."""

        def decided(transaction: Transaction | Refused | None) -> None:
            assert transaction is not None
            if isinstance(transaction, Refused) or not transaction.state.is_ending:
                done(transaction)
            else:
                self._when_ended(transactional_id, again)

        def again() -> None:
            self._decide(transactional_id, decision, conclude)

        def conclude(transaction: Transaction | Refused | None) -> None:
            assert transaction is not None
            done(transaction)

        def decision(machine: TransactionMachine, new_id: int | None) -> Transaction:
            return machine.begin(
                transactional_id, timeout_ms, expected, new_id, self._now_ms, keep_prepared=keep_prepared
            )

        self._decide(transactional_id, decision, decided)

    def add(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        done: Done,
    ) -> None:
        """`done` when the partitions are part of the transaction for good, so that they may be written to."""

        def decision(machine: TransactionMachine, new_id: int | None) -> Transaction | None:
            return machine.add(transactional_id, producer_id, producer_epoch, partitions, self._now_ms)

        self._decide(
            transactional_id, decision, lambda result: done(result if isinstance(result, Refused) else None)
        )

    def verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partition: TopicPartition
    ) -> None:
        machine = self.topic.find(transactional_id).machine
        machine.verify(transactional_id, producer_id, producer_epoch, partition)

    def end(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        is_commit: bool,
        client_version: int,
        done: Callable[[Transaction | Refused], None],
    ) -> None:
        """EndTxn. The result holds the id and epoch that the producer's next transaction has."""

        def decision(machine: TransactionMachine, new_id: int | None) -> Transaction | None:
            return machine.end(
                transactional_id,
                producer_id,
                producer_epoch,
                is_commit,
                client_version,
                new_id,
                self._now_ms,
            )

        def decided(result: Transaction | Refused | None) -> None:
            if isinstance(result, Refused):
                done(result)
            elif result is None:
                done(self.topic.find(transactional_id).machine.transactions[transactional_id])
            else:
                self._when_ended(transactional_id, lambda: done(_as_next(result)))

        self._decide(transactional_id, decision, decided)

    @property
    def _now_ms(self) -> int:
        return self._services.clock.wall_ms()

    def _decide(
        self,
        transactional_id: str,
        decision: Decision,
        done: Callable[[Transaction | Refused | None], None],
        new_producer_id: int | None = None,
    ) -> None:
        """`done` gets what was decided when it is durable; None when there was nothing to decide."""
        try:
            partition = self.topic.find(transactional_id)
            decided = decision(partition.machine, new_producer_id)
            if decided is None:
                partition.when_durable(done)
            else:
                self._write(partition, transactional_id, decided, lambda refusal: done(refusal or decided))
        except ProducerIdNeeded:

            def taken(producer_id: int | Refused) -> None:
                if isinstance(producer_id, Refused):
                    done(producer_id)
                else:
                    self._decide(transactional_id, decision, done, producer_id)

            self._services.producer_ids.take(taken)
        except Refused as refusal:
            done(refusal)

    def _write(
        self, partition: Transactions, transactional_id: str, decided: Transaction, done: Done
    ) -> None:
        def written(refusal: Refused | None) -> None:
            done(refusal)  # first, so that it waits already if there is no marker to wait for
            if decided.state.is_ending:
                self._carry_out(partition, transactional_id, decided.partitions, refusal)

        partition.write([transaction_record(transactional_id, decided)], written)
        partition.machine.remember_last_epoch(transactional_id, decided)
        if decided.deadline_ms is not None and transactional_id not in self._timers:
            self._set_timer(partition, transactional_id, decided.deadline_ms)

    # -- ending --------------------------------------------------------------------------------------------

    def _carry_out(
        self,
        partition: Transactions,
        transactional_id: str,
        places: Collection[TopicPartition],
        refusal: Refused | None,
    ) -> None:
        """Decided is decided, also when the disk took so long that whoever asked was told to ask again."""
        if refusal is None:
            self._mark(partition, transactional_id, places)
        elif not partition.is_lost:
            partition.when_durable(lambda late: self._carry_out(partition, transactional_id, places, late))

    def _mark(
        self, partition: Transactions, transactional_id: str, places: Collection[TopicPartition]
    ) -> None:
        """The decision is durable: its markers are written, for as long as it takes."""
        transaction = partition.machine.transactions.get(transactional_id)
        if partition.is_lost or transaction is None or not transaction.state.is_ending:
            return

        def marked(results: Results) -> None:
            left = [place for place, code in results.items() if code not in _OVER]
            if left:
                log.warning(
                    "the transaction of %s cannot end yet in %s: %s",
                    transactional_id,
                    ", ".join(map(str, left)),
                    results[left[0]].name,
                )
                retry_ms = self._services.clock.monotonic_ms() + _RETRY_MS
                self._services.reactor.timers.set(
                    retry_ms, lambda: self._mark(partition, transactional_id, left)
                )
            else:
                self._complete(partition, transactional_id)

        ending = Ending(
            transaction.producer_id,
            transaction.producer_epoch,
            transaction.is_commit,
            partition.partition.leader_epoch,
        )
        write_markers(self._services, ending, places, marked)

    def _complete(self, partition: Transactions, transactional_id: str) -> None:
        if partition.is_lost:
            return  # whoever loads it writes the markers again, which does no harm
        decided = partition.machine.complete(transactional_id, self._now_ms)
        if not partition.has_later:
            deadline_ms = self._services.clock.monotonic_ms() + _NOTE_MS_MAX
            self._services.reactor.timers.set(deadline_ms, partition.urge)
        partition.write_later(transaction_record(transactional_id, decided))
        partition.machine.remember_last_epoch(transactional_id, decided)
        for held in self._waiting.pop(transactional_id, ()):
            held.release()

    def _when_ended(self, transactional_id: str, then: Callable[[], None]) -> None:
        """`then` when the id's transaction has all its markers, or that takes too long."""
        timers = self._services.reactor.timers
        held = _Held(then, timers.cancel)
        deadline_ms = self._services.clock.monotonic_ms() + _HOLD_MS_MAX
        held.timer = timers.set(deadline_ms, held.expire)
        self._waiting.setdefault(transactional_id, []).append(held)

    # -- time ----------------------------------------------------------------------------------------------

    def _set_timer(self, partition: Transactions, transactional_id: str, deadline_ms: int) -> None:
        """It stays when the transaction ends: the next one will need it, and it looks again when it fires."""
        clock = self._services.clock
        left_ms = max(0, deadline_ms - clock.wall_ms())
        self._timers[transactional_id] = self._services.reactor.timers.set(
            clock.monotonic_ms() + left_ms, lambda: self._tick(partition, transactional_id)
        )

    def _tick(self, partition: Transactions, transactional_id: str) -> None:
        del self._timers[transactional_id]
        transaction = partition.machine.transactions.get(transactional_id)
        if partition.is_lost or transaction is None or transaction.deadline_ms is None:
            return
        if transaction.deadline_ms > self._now_ms:
            self._set_timer(partition, transactional_id, transaction.deadline_ms)
            return
        log.info("the transaction of %s is aborted: it took too long", transactional_id)
        decided = partition.machine.fence(transactional_id, self._now_ms)
        self._write(partition, transactional_id, decided, _ignore)

    def _set_expiry_timer(self) -> None:
        deadline_ms = self._services.clock.monotonic_ms() + self._expiry_interval_ms
        self._services.reactor.timers.set(deadline_ms, self._expire)

    def _expire(self) -> None:
        self._set_expiry_timer()
        for partition in self.loaded_partitions():
            for transactional_id in partition.machine.expired(self._now_ms, self._expiration_ms):
                partition.write([transaction_record(transactional_id, None)], _ignore)

    # -- what the topic asks for ---------------------------------------------------------------------------

    def new_machine(self) -> TransactionMachine:
        return TransactionMachine()

    def loaded(self, partition: Transactions) -> None:
        """What was decided before a stop is carried out; what was open gets its time."""
        for transactional_id, transaction in list(partition.machine.transactions.items()):
            if transaction.state.is_ending:
                self._mark(partition, transactional_id, transaction.partitions)
            elif transaction.deadline_ms is not None:
                self._set_timer(partition, transactional_id, transaction.deadline_ms)

    def unloaded(self, partition: Transactions) -> None:
        for transactional_id in partition.machine.transactions:
            timer = self._timers.pop(transactional_id, None)
            if timer is not None:
                self._services.reactor.timers.cancel(timer)
            for held in self._waiting.pop(transactional_id, ()):
                held.release()

    def follow(self, change: Change) -> None:
        self.topic.follow(change)


class _Held:
    """An answer that waits for the end of a transaction."""

    __slots__ = ("_cancel", "_then", "timer")

    def __init__(self, then: Callable[[], None], cancel: Callable[[Timer], None]) -> None:
        self._then: Callable[[], None] | None = then
        self._cancel = cancel
        self.timer: Timer | None = None

    def release(self) -> None:
        if self.timer is not None:
            self._cancel(self.timer)
        self.expire()

    def expire(self) -> None:
        self.timer = None
        then, self._then = self._then, None
        if then is not None:
            then()


def _as_next(ended: Transaction) -> Transaction:
    """As the producer goes on."""
    if ended.next_producer_id == NO_PRODUCER_ID:
        return ended
    return ended._replace(producer_id=ended.next_producer_id, producer_epoch=ended.next_producer_epoch + 1)


def _ignore(refusal: Refused | None) -> None:
    """What is not written now follows from the log when it is loaded again."""


def _topic_spec(config: BrokerConfig, broker_count: int) -> TopicSpec:
    replicas = min(config.integer("transaction.state.log.replication.factor"), max(broker_count, 1))
    return TopicSpec(
        TRANSACTIONS_TOPIC,
        num_partitions=config.integer("transaction.state.log.num.partitions"),
        replication_factor=replicas,
        configs=[
            ("cleanup.policy", "compact"),
            ("segment.bytes", str(config.integer("transaction.state.log.segment.bytes"))),
            ("compression.type", "uncompressed"),
            ("min.insync.replicas", str(config.integer("transaction.state.log.min.isr"))),
            ("unclean.leader.election.enable", "false"),
        ],
    )
