"""For tests of users and our own: real brokers, started in no time, whose wire breaks on request.

`BrokerProcess` is a broker in a process of its own, `BrokerThread` one on a thread of the test's. Fixtures
for pytest are in `pytest_plugin`, which pytest finds by itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.testing.broker_process import BrokerProcess as BrokerProcess
    from ottla.testing.broker_thread import BrokerThread as BrokerThread
    from ottla.testing.coordination_process import CoordinationProcess as CoordinationProcess
    from ottla.testing.nursery import warm as warm
    from ottla.testing.service_process import BrokerDied as BrokerDied

# Loaded when they are asked for: a broker on a thread needs all of the broker's modules, a process none.
_HOMES = {
    "BrokerDied": "service_process",
    "BrokerProcess": "broker_process",
    "BrokerThread": "broker_thread",
    "CoordinationProcess": "coordination_process",
    "warm": "nursery",
}

__all__ = ["BrokerDied", "BrokerProcess", "BrokerThread", "CoordinationProcess", "warm"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
