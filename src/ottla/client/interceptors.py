"""Users' code on the way of every record, in a chain. What fails there is logged and breaks nothing.

A producer's interceptor has any of `on_send(record)` (gives the record to send, before it is serialized and
its partition chosen) and `on_acknowledgement(delivery, error)` (before the callback of the record); a
consumer's `on_consume(records)` (gives the records to return) and `on_commit(offsets)`; both may have
`configure(configs)` and `close()`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.client import plugins
from ottla.client.accumulator import Delivery, Headers, OnDelivery
from ottla.client.errors import ClientError

log = logging.getLogger(__name__)


class ProducerRecord(NamedTuple):
    """What was given to `send`."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None


class Interceptors:
    def __init__(self, chain: Sequence[object], configs: Mapping[str, object]) -> None:
        self._chain = chain
        for each in chain:
            plugins.configure(each, configs)

    def __bool__(self) -> bool:
        return bool(self._chain)

    def _through(self, name: str, passed: Any) -> Any:
        """What the chain makes of `passed`; a link that fails is passed over."""
        for each in self._chain:
            method = getattr(each, name, None)
            if method is None:
                continue
            try:
                passed = method(passed)
            except Exception:
                log.exception("%s of interceptor %s failed", name, type(each).__name__)
        return passed

    def _tell(self, name: str, *told: object) -> None:
        for each in self._chain:
            method = getattr(each, name, None)
            if method is None:
                continue
            try:
                method(*told)
            except Exception:
                log.exception("%s of interceptor %s failed", name, type(each).__name__)

    # -- of a producer -------------------------------------------------------------------------------------

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        made = self._through("on_send", record)
        if isinstance(made, ProducerRecord):
            return made
        log.error("on_send gave %s instead of a record; the record goes as it was", type(made).__name__)
        return record

    def on_acknowledgement(self, delivery: Delivery | None, error: BaseException | None) -> None:
        self._tell("on_acknowledgement", delivery, error)

    def before(self, on_delivery: OnDelivery | None) -> OnDelivery:
        """A callback that tells the chain, then the record's own."""

        def done(delivery: Delivery | None, error: ClientError | None) -> None:
            self.on_acknowledgement(delivery, error)
            if on_delivery is not None:
                on_delivery(delivery, error)

        return done

    # -- of a consumer -------------------------------------------------------------------------------------

    def on_consume(self, records: list[Any]) -> list[Any]:
        made = self._through("on_consume", records)
        if isinstance(made, list):
            return made
        log.error("on_consume gave %s instead of a list; the records stay as they were", type(made).__name__)
        return records

    def on_commit(self, offsets: Mapping[Any, Any]) -> None:
        self._tell("on_commit", offsets)

    def close(self) -> None:
        self._tell("close")
