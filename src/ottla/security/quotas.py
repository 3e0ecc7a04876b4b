"""How much a client may use. The broker reports what was used; the answer is how long the client waits."""

from __future__ import annotations

from typing import Protocol

from ottla.security.principals import Principal


class Quotas(Protocol):
    """Each method returns the throttle in ms: the answer names it, the connection stays unread as long."""

    def produced(self, principal: Principal, client_id: str | None, size: int, now_ms: int) -> int:
        """After `size` bytes of records were taken."""
        ...

    def fetched(self, principal: Principal, client_id: str | None, size: int, now_ms: int) -> int:
        """Before an answer with `size` bytes of records is sent."""
        ...

    def requested(self, principal: Principal, client_id: str | None, busy_us: int, now_ms: int) -> int:
        """After a request that kept the owner's thread busy for `busy_us`."""
        ...


class Unlimited:
    def produced(self, principal: Principal, client_id: str | None, size: int, now_ms: int) -> int:
        return 0

    def fetched(self, principal: Principal, client_id: str | None, size: int, now_ms: int) -> int:
        return 0

    def requested(self, principal: Principal, client_id: str | None, busy_us: int, now_ms: int) -> int:
        return 0
