"""Fixtures for pytest, which finds this module by its entry point.

    def test_orders(ottla_broker, ottla_topic):
        producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
        producer.produce(ottla_topic, b"first")

Nothing of ours is imported, and nothing started, before a test asks for a fixture. Under xdist each worker
has a broker of its own.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.testing.broker_process import BrokerProcess
    from ottla.testing.broker_thread import BrokerThread

_KIND = "ottla_broker"
_KINDS = ("process", "thread")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        _KIND, "where the broker of the fixture runs: process (default) or thread", default=_KINDS[0]
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """The broker's modules are imported while pytest still collects."""
    if (
        "ottla_broker" in getattr(item, "fixturenames", ())
        and item.config.getini(_KIND) == "process"
        and not item.config.option.collectonly
    ):
        from ottla.testing.nursery import warm

        warm()


@pytest.fixture(scope="session")
def ottla_settings() -> dict[str, str]:
    """The broker's settings; a test suite that wants others has a fixture of this name."""
    return {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="session")
def ottla_broker(
    request: pytest.FixtureRequest, ottla_settings: dict[str, str]
) -> Iterator[BrokerProcess | BrokerThread]:
    """A real broker for all tests of the session (of the worker, under xdist), on a port that was free."""
    kind = request.config.getini(_KIND)
    if kind not in _KINDS:
        raise pytest.UsageError(f"{_KIND} is {kind!r}; expected {' or '.join(_KINDS)}")
    if kind == "process":
        from ottla.testing.broker_process import BrokerProcess

        with BrokerProcess(settings=ottla_settings) as process:
            yield process
    else:
        from ottla.testing.broker_thread import BrokerThread

        with BrokerThread(settings=ottla_settings) as thread:
            yield thread


@pytest.fixture(scope="session")
def ottla_admin(ottla_broker: BrokerProcess | BrokerThread) -> Iterator[Admin]:
    """Our own admin client, connected to it."""
    from ottla.client.admin import Admin

    with Admin(ottla_broker.bootstrap) as admin:
        yield admin


@pytest.fixture
def ottla_new_topic(ottla_admin: Admin) -> Iterator[Callable[..., str]]:
    """Creates topics under names nobody has used, `ottla_new_topic(partitions=3, cleanup_policy="compact")`.

    They are deleted after the test.
    """
    created: list[str] = []

    def create(partitions: int = 1, **configs: str) -> str:
        name = f"topic-{uuid.uuid4().hex[:12]}"
        named = {key.replace("_", "."): value for key, value in configs.items()}
        ottla_admin.create_topic(name, partitions=partitions, configs=named)
        created.append(name)
        return name

    yield create
    ottla_admin.delete_topics(created)  # one that the test has deleted itself is no failure


@pytest.fixture
def ottla_topic(ottla_new_topic: Callable[..., str]) -> str:
    """The name of a fresh topic with one partition; deleted after the test."""
    return ottla_new_topic()


@pytest.fixture
def ottla_faults(
    ottla_broker: BrokerProcess | BrokerThread,
) -> Iterator[BrokerProcess | BrokerThread]:
    """The broker, for a test that has it fail: what has not happened by its end is forgotten."""
    yield ottla_broker
    ottla_broker.heal()
