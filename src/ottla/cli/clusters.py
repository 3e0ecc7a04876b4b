"""Which cluster a command means, and the admin client to talk to it."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from ottla.cli.profiles import load_profiles

if TYPE_CHECKING:
    from ottla.client import Admin

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"


def bootstrap_of(options: argparse.Namespace) -> str:
    """The first of --bootstrap, --profile, OTTLA_BOOTSTRAP, OTTLA_PROFILE, the used profile, the default."""
    if options.bootstrap:
        return str(options.bootstrap)
    if options.profile:
        return load_profiles().bootstrap(options.profile)
    if given := os.environ.get("OTTLA_BOOTSTRAP"):
        return given
    profiles = load_profiles()
    name = os.environ.get("OTTLA_PROFILE") or profiles.current
    return profiles.bootstrap(name) if name else DEFAULT_BOOTSTRAP


def connected(options: argparse.Namespace, **settings: object) -> Admin:
    """To be used with `with`; nothing is sent before the first call."""
    from ottla.cli.waiting_cluster import show_waiting
    from ottla.client import Admin

    show_waiting()
    return Admin(bootstrap_of(options), **settings)
