"""Which cluster a command means, how to come to it, and the admin client to talk to it."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.profiles import load_profiles
from ottla.client.access import Access

if TYPE_CHECKING:
    from ottla.client import Admin

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"


def access_of(options: argparse.Namespace, otherwise: str | None = None) -> Access:
    """The first of --bootstrap, --profile, `otherwise`, OTTLA_BOOTSTRAP, OTTLA_PROFILE, the used profile, the
    default.

    The settings are those of the profile, if it is what names the cluster or is named itself, and over them
    those of -X: a password goes to no address that it was not given for.
    """
    settings = dict(options.client)
    bootstrap = address_among(settings, options.bootstrap)
    profile = options.profile
    if bootstrap is None and profile is None:
        bootstrap = otherwise or os.environ.get("OTTLA_BOOTSTRAP") or None
        if bootstrap is None:
            profile = os.environ.get("OTTLA_PROFILE") or load_profiles().current
    if profile is None:
        return Access(bootstrap or DEFAULT_BOOTSTRAP, settings)
    known = load_profiles().access(profile)
    return Access(bootstrap or known.bootstrap, {**known.settings, **settings})


def address_among(settings: dict[str, str], given: str | None) -> str | None:
    """bootstrap.servers, which a file of client settings may have, is taken out and means --bootstrap."""
    named = settings.pop("bootstrap.servers", None)
    if given and named:
        raise CommandFailed(
            "the address of the cluster and bootstrap.servers are given",
            "leave one of them out",
            ExitCode.WRONG_USE,
        )
    return given or named


def connected(options: argparse.Namespace, *, beside_client: bool = False, **defaults: object) -> Admin:
    """To be used with `with`; nothing is sent before the first call.

    `beside_client`: the command has a producer or consumer too, which takes what of -X no admin client has.
    """
    from ottla.cli.waiting_cluster import show_waiting
    from ottla.client import Admin
    from ottla.client.settings import common_of

    show_waiting()
    access = access_of(options)
    settings = common_of(access.settings) if beside_client else access.settings
    return Admin(access.bootstrap, **{**defaults, **settings})
