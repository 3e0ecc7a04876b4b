"""`ottla profile`: names for clusters, and which of them is meant when nothing is said."""

from __future__ import annotations

import argparse

from ottla.cli.failures import ExitCode
from ottla.cli.options import add_output, add_verb, add_verbs
from ottla.cli.output import Row, print_done, print_rows
from ottla.cli.profiles import Profiles, load_profiles, save_profiles


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)
    add_output(add_verb(verbs, "ls", _ls, "list the profiles"))
    setting = add_verb(verbs, "set", _set, "make a profile, or change its address; the first one is used")
    setting.add_argument("name", metavar="PROFILE")
    setting.add_argument("bootstrap", metavar="HOST:PORT[,…]", help="brokers to begin with")
    using = add_verb(verbs, "use", _use, "make a profile the one that is used when nothing is said")
    using.add_argument("name", metavar="PROFILE")
    removing = add_verb(verbs, "rm", _rm, "forget a profile")
    removing.add_argument("name", metavar="PROFILE")
    for each in (setting, using, removing):
        add_output(each)


def _ls(options: argparse.Namespace) -> int:
    profiles = load_profiles()
    rows: list[Row] = [
        {"profile": name, "bootstrap": profiles.bootstraps[name], "used": name == profiles.current}
        for name in sorted(profiles.bootstraps)
    ]
    print_rows(rows, options.output, ("profile", "bootstrap", "used"))
    return ExitCode.DONE


def _set(options: argparse.Namespace) -> int:
    from ottla.client.addresses import parse_bootstrap

    parse_bootstrap(options.bootstrap)
    profiles = load_profiles()
    profiles.bootstraps[options.name] = options.bootstrap
    profiles.current = profiles.current or options.name
    return _save(profiles, options, "is set")


def _use(options: argparse.Namespace) -> int:
    profiles = load_profiles()
    profiles.bootstrap(options.name)
    profiles.current = options.name
    return _save(profiles, options, "is used from now on")


def _rm(options: argparse.Namespace) -> int:
    profiles = load_profiles()
    profiles.bootstrap(options.name)
    del profiles.bootstraps[options.name]
    if profiles.current == options.name:
        profiles.current = None
    return _save(profiles, options, "is forgotten")


def _save(profiles: Profiles, options: argparse.Namespace, outcome: str) -> int:
    save_profiles(profiles)
    row: Row = {
        "profile": options.name,
        "bootstrap": profiles.bootstraps.get(options.name),
        "used": options.name == profiles.current,
    }
    print_done([row], options.output, f"profile {options.name} {outcome}")
    return ExitCode.DONE
