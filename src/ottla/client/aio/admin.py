"""The admin client for asyncio."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from ottla.client.admin_calls import AdminCalls
from ottla.client.aio.network import AioCluster
from ottla.client.settings import COMMON_SETTINGS, bootstrap_of, load


class Admin(AdminCalls):
    """Every call of the blocking `Admin`, to be awaited. Several may be under way at once."""

    def __init__(self, bootstrap: str | Sequence[str] = "", **settings: object) -> None:
        bootstrap = bootstrap_of(bootstrap, settings)
        loaded = load(settings, COMMON_SETTINGS)
        super().__init__(AioCluster(bootstrap, loaded), loaded.integer("default.api.timeout.ms"))

    async def close(self) -> None:
        self._cluster.close()

    async def __aenter__(self) -> Admin:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
