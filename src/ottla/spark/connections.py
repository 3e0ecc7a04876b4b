"""Clients that outlive a task: Spark's workers, and a stream's reader in the driver, serve many batches.

One process works on one task at a time, and so does each of these.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.client.settings import COMMON_SETTINGS
from ottla.model.limits import MIB
from ottla.spark.worker_memory import set_aside_what_stays

_CONSUMER_DEFAULTS = {
    "auto.offset.reset": "none",  # an offset that is gone is for `loss` to judge
    "max.partition.fetch.bytes": str(4 * MIB),  # one partition is read at a time
}

_Key = tuple[str, tuple[tuple[str, str], ...]]  # bootstrap and settings

_consumers: dict[_Key, Consumer] = {}
_admins: dict[_Key, Admin] = {}


def common_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Those that every client has."""
    return {name: value for name, value in settings.items() if name in COMMON_SETTINGS}


def consumer_of(bootstrap: str, settings: Mapping[str, str]) -> Consumer:
    """This process's consumer with these settings. It has no group."""
    key = _key(bootstrap, settings)
    if key not in _consumers:
        _consumers[key] = Consumer(bootstrap, strategy=(), **{**_CONSUMER_DEFAULTS, **settings})
        set_aside_what_stays()
    return _consumers[key]


def admin_of(bootstrap: str, settings: Mapping[str, str]) -> Admin:
    """This process's admin client; of the settings it takes those that every client has."""
    common = common_settings(settings)
    key = _key(bootstrap, common)
    if key not in _admins:
        _admins[key] = Admin(bootstrap, **common)
        set_aside_what_stays()
    return _admins[key]


def _key(bootstrap: str, settings: Mapping[str, str]) -> _Key:
    return bootstrap, tuple(sorted(settings.items()))
