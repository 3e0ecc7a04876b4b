"""A real broker on a thread of the test's process, for as long as a `with` block lasts.

    with BrokerThread() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

For tests that want to look into it with a debugger, or that may not start processes. It shares the test's
interpreter: while a test computes, each request waits for its turn (`BrokerProcess` does not have that).
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from ottla.node.broker import Broker
from ottla.node.settings import load_settings
from ottla.testing.fault_injection import FaultControl, FaultInjection
from ottla.testing.faults import Faults
from ottla.testing.faulty_application import FaultyApplication

_JOIN_SECONDS = 30


class BrokerThread(FaultInjection):
    def __init__(
        self,
        data_dir: Path | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._temporary = data_dir is None
        self.data_dir = data_dir or Path(tempfile.mkdtemp(prefix="ottla-"))
        self.settings = dict(settings or {})
        self.failure: BaseException | None = None  # what the broker ended with
        self._faults = Faults()
        self._thread: threading.Thread | None = None
        self._addresses: dict[str, str] = {}  # host:port by listener; the same after a restart

    @property
    def fault_control(self) -> FaultControl:
        return self._faults

    @property
    def bootstrap(self) -> str:
        """host:port of the first listener."""
        return next(iter(self._addresses.values()))

    def address(self, listener: str) -> str:
        """host:port of a listener by its name."""
        return self._addresses[listener]

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    # -- its life ------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Returns when it answers."""
        assert not self.running, "it is running already"
        self.failure = None
        self.broker = Broker(
            load_settings(None, [f"{name}={value}" for name, value in self._all_settings().items()]),
            surround=partial(FaultyApplication, faults=self._faults),
        )
        self.broker.start()
        self._addresses = {each.name: f"{each.host}:{each.port}" for each in self.broker.listeners}
        self._thread = threading.Thread(target=self._run, name="owner", daemon=True)
        self._thread.start()
        return self

    def _all_settings(self) -> dict[str, str]:
        address = self.bootstrap if self._addresses else "127.0.0.1:0"
        return {
            "listeners": f"PLAINTEXT://{address}",
            "log.dirs": str(self.data_dir / "log"),
            "ottla.coordination.dir": str(self.data_dir / "coordination"),
            "ottla.http.port": "-1",
            "clientPort": "0",
            **self.settings,
        }

    def _run(self) -> None:
        try:
            self.broker.run()
        except BaseException as error:
            self.failure = error

    def wait(self) -> BaseException | None:
        """Until the broker has ended; what it ended with."""
        assert self._thread is not None
        self._thread.join(_JOIN_SECONDS)
        assert not self._thread.is_alive(), "the broker did not stop"
        return self.failure

    def stop(self) -> None:
        """A clean stop. Raises what the broker failed with."""
        self.broker.ask_to_stop()
        failure = self.wait()
        if failure is not None:
            raise failure

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.running:
            self.stop()
        if self._temporary and error is None:
            shutil.rmtree(self.data_dir, ignore_errors=True)
