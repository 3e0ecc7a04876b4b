"""`ottla profile`: names for clusters, and which of them is meant when nothing is said."""

from __future__ import annotations

import argparse

from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.options import add_client_settings, add_output, add_verb, add_verbs
from ottla.cli.output import Row, print_done, print_facts, print_rows
from ottla.cli.profiles import Profiles, load_profiles, save_profiles
from ottla.client.access import Access


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)
    add_output(add_verb(verbs, "ls", _ls, "list the profiles"))
    showing = add_verb(verbs, "show", _show, "show a profile; passwords stay hidden")
    showing.add_argument("name", nargs="?", metavar="PROFILE", help="default: the one that is used")
    setting = add_verb(verbs, "set", _set, "make a profile, or replace it; the first one is used")
    setting.add_argument("name", metavar="PROFILE")
    setting.add_argument(
        "bootstrap", nargs="?", metavar="HOST:PORT[,…]", help="brokers to begin with, unless -X has them"
    )
    add_client_settings(setting)
    using = add_verb(verbs, "use", _use, "make a profile the one that is used when nothing is said")
    using.add_argument("name", metavar="PROFILE")
    removing = add_verb(verbs, "rm", _rm, "forget a profile")
    removing.add_argument("name", metavar="PROFILE")
    for each in (showing, setting, using, removing):
        add_output(each)


def _ls(options: argparse.Namespace) -> int:
    profiles = load_profiles()
    rows: list[Row] = [
        {"profile": name, "bootstrap": profiles.clusters[name].bootstrap, "used": name == profiles.current}
        for name in sorted(profiles.clusters)
    ]
    print_rows(rows, options.output, ("profile", "bootstrap", "used"))
    return ExitCode.DONE


def _show(options: argparse.Namespace) -> int:
    from ottla.client.settings import without_secrets

    profiles = load_profiles()
    name = options.name or profiles.current
    if name is None:
        raise CommandFailed("no profile is used", "name one; `ottla profile ls` has them", ExitCode.NOT_FOUND)
    access = profiles.access(name)
    facts: Row = {"profile": name, "bootstrap": access.bootstrap, "used": name == profiles.current}
    settings = without_secrets(access.settings)
    print_facts(
        {**facts, **(settings if options.output == "table" else {"settings": settings})}, options.output
    )
    return ExitCode.DONE


def _set(options: argparse.Namespace) -> int:
    from ottla.cli.client_settings import kept_settings
    from ottla.cli.clusters import address_among
    from ottla.client import Admin

    settings = kept_settings(dict(options.client))
    bootstrap = address_among(settings, options.bootstrap)
    if bootstrap is None:
        raise CommandFailed(
            "where the brokers are is not said",
            "name them as HOST:PORT behind the profile",
            ExitCode.WRONG_USE,
        )
    Admin(bootstrap, **settings).close()  # refuses what no client could use, and connects to nobody
    profiles = load_profiles()
    profiles.clusters[options.name] = Access(bootstrap, settings)
    profiles.current = profiles.current or options.name
    return _save(profiles, options, "is set")


def _use(options: argparse.Namespace) -> int:
    profiles = load_profiles()
    profiles.access(options.name)
    profiles.current = options.name
    return _save(profiles, options, "is used from now on")


def _rm(options: argparse.Namespace) -> int:
    profiles = load_profiles()
    profiles.access(options.name)
    del profiles.clusters[options.name]
    if profiles.current == options.name:
        profiles.current = None
    return _save(profiles, options, "is forgotten")


def _save(profiles: Profiles, options: argparse.Namespace, outcome: str) -> int:
    save_profiles(profiles)
    access = profiles.clusters.get(options.name)
    row: Row = {
        "profile": options.name,
        "bootstrap": None if access is None else access.bootstrap,
        "used": options.name == profiles.current,
    }
    print_done([row], options.output, f"profile {options.name} {outcome}")
    return ExitCode.DONE
