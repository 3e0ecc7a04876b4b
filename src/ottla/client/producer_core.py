"""A producer without its shell: what its settings mean, and the parts that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.client import plugins
from ottla.client.accumulator import Accumulator, Batch
from ottla.client.cluster import Cluster
from ottla.client.cluster_view import Topic
from ottla.client.errors import BufferFull, ClientError, InvalidSetting, TimedOut
from ottla.client.intake import PLUGGABLE, Intake
from ottla.client.sender import Sender, SendRules
from ottla.client.sequences import Sequences
from ottla.client.settings import PRODUCER_SETTINGS, bootstrap_of, load
from ottla.client.transactions import Transactions
from ottla.model.config_types import TypedValues

_IN_FLIGHT_IDEMPOTENT_MAX = 5  # a broker remembers that many batches of a producer (KIP-98)

MakeCluster = Callable[[str | Sequence[str], TypedValues], Cluster]


class ProducerCore:
    def __init__(
        self, bootstrap: str | Sequence[str], settings: dict[str, object], make_cluster: MakeCluster
    ) -> None:
        given = dict(settings)
        bootstrap = bootstrap_of(bootstrap, given)
        plugged = plugins.taken(given, *PLUGGABLE)
        configs = plugins.configs_of(given, plugged)
        loaded = load(given, PRODUCER_SETTINGS)
        idempotent = _is_idempotent(given, loaded)
        transactional_id = loaded.text_or_none("transactional.id")
        if transactional_id is not None and not idempotent:
            raise InvalidSetting(
                "transactional.id needs idempotence",
                "leave enable.idempotence, acks, retries and max.in.flight.requests.per.connection unset",
            )
        rules = _rules(loaded)
        self.settings = loaded
        self.max_block_ms = loaded.integer("max.block.ms")
        self.batches = Accumulator(loaded.integer("batch.size"))
        self.cluster = make_cluster(bootstrap, loaded)
        sequences = Sequences(enabled=idempotent, transactional=transactional_id is not None)
        self.transactions: Transactions | None = None
        if transactional_id is not None:
            self.transactions = Transactions(
                transactional_id,
                loaded.integer("transaction.timeout.ms"),
                sequences,
                self.batches,
                self.cluster.backoff,
                two_phase=loaded.flag("transaction.two.phase.commit.enable"),
            )
        self.sender = Sender(self.batches, sequences, rules, self.cluster.backoff, self.transactions)
        try:
            self.intake = Intake(
                plugged,
                configs,
                loaded,
                self.batches,
                self.cluster.metadata,
                self.transactions,
            )
        except BaseException:
            self.cluster.close()
            raise
        self._waiters = 0  # callers who wait for delivery or room: nothing lingers then

    def topic(self, name: str) -> Topic | ClientError | None:
        """The topic, or why it cannot be had; None: not known yet."""
        return self.intake.topic(name) or self.cluster.hopeless

    # -- those who wait ------------------------------------------------------------------------------------

    def begin_waiting(self) -> list[Batch]:
        """Nothing lingers from now on; what is under way, up to its callbacks."""
        self._waiters += 1
        self.sender.is_flushing = True
        waiting = list(self.batches.waiting())
        if any(batch.is_open for batch in waiting):  # others go when they can; a wake costs a turn
            self.cluster.network.wake()
        return [*waiting, *self.batches.in_flight(), *self.sender.finished, *self.sender.telling]

    def end_waiting(self) -> None:
        self._waiters -= 1
        self.sender.is_flushing = self._waiters > 0

    @property
    def problem(self) -> ClientError | None:
        """Why records are not delivered yet, as far as is known. With the lock held."""
        return self.sender.problem or self.cluster.last_problem

    def buffer_full(self) -> BufferFull:
        return BufferFull(
            f"the buffer of {self.intake.buffer_bytes} bytes was full for {self.max_block_ms} ms",
            "send slower, or raise buffer.memory or max.block.ms; the broker may be slow or away",
        )


def not_delivered(batches: Sequence[Batch], timeout: float | None) -> TimedOut:
    left = sum(len(batch.records) for batch in batches if not batch.is_over)
    return TimedOut(f"{left} records are not delivered after {timeout} s")


def _is_idempotent(given: dict[str, object], loaded: TypedValues) -> bool:
    """On unless other settings contradict it; asked for explicitly, a contradiction is refused."""
    explicit = any(name.replace("_", ".") == "enable.idempotence" for name in given)
    if not loaded.flag("enable.idempotence"):
        return False
    acks_all = loaded.text("acks") in ("all", "-1")
    if explicit and not acks_all:
        raise InvalidSetting(
            "enable.idempotence needs acks=all", "leave acks unset, or switch idempotence off"
        )
    in_flight = loaded.integer("max.in.flight.requests.per.connection")
    if explicit and in_flight > _IN_FLIGHT_IDEMPOTENT_MAX:
        raise InvalidSetting(
            f"enable.idempotence allows at most {_IN_FLIGHT_IDEMPOTENT_MAX} requests in flight",
            "lower max.in.flight.requests.per.connection",
        )
    if explicit and loaded.integer("retries") == 0:
        raise InvalidSetting("enable.idempotence needs retries", "leave retries unset")
    return acks_all and in_flight <= _IN_FLIGHT_IDEMPOTENT_MAX and loaded.integer("retries") > 0


def _rules(loaded: TypedValues) -> SendRules:
    linger_ms = loaded.integer("linger.ms")
    delivery_timeout_ms = loaded.integer("delivery.timeout.ms")
    if delivery_timeout_ms < linger_ms:
        raise InvalidSetting("delivery.timeout.ms is shorter than linger.ms", "lower linger.ms")
    return SendRules(
        linger_ms=linger_ms,
        delivery_timeout_ms=delivery_timeout_ms,
        retries=loaded.integer("retries"),
        in_flight_max=loaded.integer("max.in.flight.requests.per.connection"),
    )
