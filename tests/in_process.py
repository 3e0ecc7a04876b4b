"""A broker in a thread of the test's process, for tests that put something of their own below or into it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from ottla.log.files import Files
from ottla.node.broker import Broker
from ottla.node.failures import BrokerFailed
from ottla.node.settings import BrokerSettings, load_settings
from ottla.security.authorizer import Authorizer

T = TypeVar("T")

JOIN_SECONDS = 30


class InProcessBroker:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.failure: BaseException | None = None  # what `run` raised
        broker.start()
        self._thread = threading.Thread(target=self._run, name="owner")
        self._thread.start()

    def _run(self) -> None:
        try:
            self.broker.run()
        except BaseException as error:
            self.failure = error

    @property
    def bootstrap(self) -> str:
        return self.address(self.broker.listeners[0].name)

    def address(self, listener_name: str) -> str:
        (listener,) = (each for each in self.broker.listeners if each.name == listener_name)
        return f"{listener.host}:{listener.port}"

    def on_owner(self, action: Callable[[], T]) -> T:
        """Runs `action` on the thread that owns the broker's state and returns what it returned."""
        results: SimpleQueue[T] = SimpleQueue()
        self.broker._reactor.post(lambda: results.put(action()))
        return results.get(timeout=JOIN_SECONDS)

    def metric(self, name: str) -> float:
        return self.on_owner(self.broker.metrics.snapshot)[name]

    def wait(self) -> BaseException | None:
        """Until the broker has ended; what it ended with."""
        self._thread.join(JOIN_SECONDS)
        assert not self._thread.is_alive()
        return self.failure

    def stop(self) -> None:
        self.broker.ask_to_stop()
        failure = self.wait()
        if failure is not None:
            raise failure


def settings_for(data_dir: Path, settings: Mapping[str, str] | None = None) -> BrokerSettings:
    given = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(data_dir / "log"),
        "ottla.coordination.dir": str(data_dir / "coordination"),
        "ottla.http.port": "-1",
        "clientPort": "0",
        **(settings or {}),
    }
    return load_settings(None, [f"{name}={value}" for name, value in given.items()])


@contextmanager
def running_broker(
    data_dir: Path,
    settings: Mapping[str, str] | None = None,
    *,
    authorizer: Authorizer | None = None,
    files: Files | None = None,
) -> Iterator[InProcessBroker]:
    """Stops it at the end, unless it has failed by itself, which is the test's business then."""
    running = InProcessBroker(Broker(settings_for(data_dir, settings), authorizer=authorizer, files=files))
    try:
        yield running
    finally:
        if not isinstance(running.failure, BrokerFailed):
            running.stop()
