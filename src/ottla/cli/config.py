"""`ottla config`: settings of topics, brokers and the cluster, and what every setting means."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ottla.cli.clusters import connected
from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.options import add_cluster, add_output, add_verb, add_verbs, assignment
from ottla.cli.output import Row, print_done, print_facts, print_plan, print_rows
from ottla.model.values import NamedTuple

if TYPE_CHECKING:
    from ottla.client import Admin
    from ottla.client.admin_values import ConfigEntry
    from ottla.model.config_types import Setting

_TARGET_HELP = "topic:NAME, broker:ID, or cluster (what holds for all brokers)"


class Target(NamedTuple):
    kind: str  # topic, broker or cluster
    name: str

    def configs(self, admin: Admin, names: list[str] | None) -> dict[str, ConfigEntry]:
        if self.kind == "topic":
            return admin.topic_configs(self.name, names)
        return admin.broker_configs(self.broker_id, names)

    def alter(self, admin: Admin, changed: dict[str, str], unset: list[str], *, validate_only: bool) -> None:
        if self.kind == "topic":
            admin.alter_topic_configs(self.name, set=changed, delete=unset, validate_only=validate_only)
        else:
            admin.alter_broker_configs(self.broker_id, set=changed, delete=unset, validate_only=validate_only)

    @property
    def broker_id(self) -> int | None:
        return int(self.name) if self.kind == "broker" else None


def target(text: str) -> Target:
    """For argparse."""
    kind, _, name = text.partition(":")
    if (kind == "topic" and name) or (kind == "broker" and name.isdigit()) or text == "cluster":
        return Target(kind, name)
    raise argparse.ArgumentTypeError(f"{text!r} names nothing with settings, expected {_TARGET_HELP}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)
    get = add_verb(verbs, "get", _get, "show settings and where their values come from")
    get.add_argument("target", type=target, metavar="TARGET", help=_TARGET_HELP)
    get.add_argument("names", nargs="*", metavar="SETTING", help="only these (default: all)")
    get.add_argument("--changed", action="store_true", help="only what is not at its default")
    add_cluster(get)
    add_output(get)
    change = add_verb(verbs, "set", _set, "change settings while brokers run")
    change.add_argument("target", type=target, metavar="TARGET", help=_TARGET_HELP)
    change.add_argument("changes", nargs="*", type=assignment, metavar="NAME=VALUE")
    change.add_argument(
        "--unset", action="append", default=[], metavar="SETTING", help="back to the default; may be repeated"
    )
    change.add_argument("--dry-run", action="store_true", help="let the broker check it, and change nothing")
    add_cluster(change)
    add_output(change)
    explain = add_verb(verbs, "explain", _explain, "explain settings: type, default, scope, meaning")
    explain.add_argument("name", nargs="?", metavar="SETTING", help="a name or a part of one (default: all)")
    explain.add_argument("--scope", choices=("topic", "broker"), help="only settings of topics or of brokers")
    add_output(explain)


# -- of a cluster ------------------------------------------------------------------------------------------


def _get(options: argparse.Namespace) -> int:
    with connected(options) as admin:
        entries = options.target.configs(admin, options.names or None)
    missing = [name for name in options.names if name not in entries]
    if missing:
        raise _unknown(missing[0], list(entries) or _known_names())
    rows: list[Row] = [
        {
            "setting": entry.name,
            "value": "(secret)" if entry.sensitive else entry.value,
            "source": entry.source.name.removesuffix("_CONFIG").lower().replace("_", " ")
            if entry.source
            else None,
            "changeable": not entry.read_only,
        }
        for entry in sorted(entries.values(), key=lambda entry: entry.name)
        if not (options.changed and entry.is_default)
    ]
    print_rows(rows, options.output, ("setting", "value", "source", "changeable"))
    return ExitCode.DONE


def _set(options: argparse.Namespace) -> int:
    changed = dict(options.changes)
    if not changed and not options.unset:
        raise CommandFailed("nothing to change", "give NAME=VALUE, or --unset NAME", ExitCode.WRONG_USE)
    with connected(options) as admin:
        before = options.target.configs(admin, [*changed, *options.unset])
        options.target.alter(admin, changed, options.unset, validate_only=options.dry_run)
        after = {} if options.dry_run else options.target.configs(admin, [*changed, *options.unset])
    rows: list[Row] = [
        {
            "setting": name,
            "before": before[name].value if name in before else None,
            "after": after[name].value if name in after else changed.get(name, "its default"),
        }
        for name in (*changed, *options.unset)
    ]
    print_plan(rows, options.output)
    print_done(rows, options.output, "changed", done=not options.dry_run)
    return ExitCode.DONE


# -- of the program ----------------------------------------------------------------------------------------


def _explain(options: argparse.Namespace) -> int:
    settings = [setting for setting in _settings() if options.scope in (None, setting.scope)]
    if options.name:
        exact = [setting for setting in settings if setting.name == options.name]
        settings = exact or [setting for setting in settings if options.name.lower() in setting.name]
        if not settings:
            raise _unknown(options.name, [setting.name for setting in _settings()])
        if len(exact) == 1 or (exact and options.output == "table"):
            for number, setting in enumerate(exact):  # a topic's and a broker's may have one name
                print("\n" * bool(number), end="")
                print_facts(_explained(setting), options.output)
            return ExitCode.DONE
    rows = [_explained(setting) for setting in settings]
    columns = ("setting", "scope", "type", "default") if options.output == "table" else ()
    print_rows(rows, options.output, columns)
    return ExitCode.DONE


def _explained(setting: Setting) -> Row:
    from ottla.model.config_types import format_value

    change = {
        "read-only": "only at the start",
        "per-broker": "while it runs, for each broker",
        "cluster-wide": "while it runs, also for all brokers",
    }
    return {
        "setting": setting.name,
        "scope": setting.scope,
        "type": setting.type.name.lower(),
        "default": format_value(setting.default),
        "valid": setting.expectation,
        "changed": "while it runs" if setting.scope == "topic" else change[setting.update_mode],
        "broker_setting": [synonym.name for synonym in setting.synonyms] or None,
        "effect": setting.unsupported or setting.inert or "yes",
        "meaning": setting.described,
    }


def _settings() -> list[Setting]:
    from ottla.model.configs import BROKER_SETTINGS, TOPIC_SETTINGS

    every = [*TOPIC_SETTINGS.values(), *BROKER_SETTINGS.values()]
    return sorted((each for each in every if not each.internal), key=lambda setting: setting.name)


def _known_names() -> list[str]:
    return [setting.name for setting in _settings()]


def _unknown(name: str, known: list[str]) -> CommandFailed:
    from ottla.model.config_types import nearest

    near = nearest(name, known)
    cure = f"did you mean {near}?" if near else "`ottla config explain` lists every setting"
    return CommandFailed(f"there is no setting {name!r}", cure, ExitCode.NOT_FOUND)
