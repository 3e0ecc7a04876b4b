"""`ottla zk`: looks at the znodes of a ZooKeeper, ours or any other, changes them, follows them live."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.options import add_confirmation, add_output, add_verb, add_verbs, confirm, count
from ottla.cli.output import Row, print_done, print_facts, print_json_lines, print_plan, print_rows, styled
from ottla.cli.sizes import counted

if TYPE_CHECKING:
    from ottla.client.zookeeper import ZooKeeperClient
    from ottla.protocol.zookeeper.records import Acl, Stat

DEFAULT_SERVER = "127.0.0.1:2181"
_SEQUENTIAL = 2
_PERMISSIONS = {"r": 1, "w": 2, "c": 4, "d": 8, "a": 16}
_EVENTS = {1: "created", 2: "deleted", 3: "changed", 4: "children"}

Action = Callable[["ZooKeeperClient", argparse.Namespace], int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)

    def verb(name: str, action: Action, summary: str) -> argparse.ArgumentParser:
        verb_parser = add_verb(verbs, name, lambda options: _run(action, options), summary)
        verb_parser.add_argument("path", metavar="PATH", help="of the znode, as /brokers/ids")
        verb_parser.add_argument(
            "-s",
            "--server",
            metavar="HOST:PORT",
            default=os.environ.get("OTTLA_ZOOKEEPER") or DEFAULT_SERVER,
            help=f"the ZooKeeper to ask (default: OTTLA_ZOOKEEPER, {DEFAULT_SERVER})",
        )
        verb_parser.add_argument("--auth", metavar="USER:PASSWORD", help="prove a digest identity first")
        add_output(verb_parser)
        return verb_parser

    verb("ls", _ls, "list the children of a node")
    verb("get", _get, "print the data of a node")
    change = verb("set", _set, "change the data of a node")
    change.add_argument("data", metavar="DATA", help="the new data; - reads it from standard input")
    change.add_argument("--version", type=int, default=-1, metavar="N", help="only if the node has it")
    create = verb("create", _create, "make a node")
    create.add_argument("data", metavar="DATA", nargs="?", default="", help="- reads it from standard input")
    create.add_argument("--sequential", action="store_true", help="let the server add a number to the name")
    create.add_argument("-p", "--parents", action="store_true", help="make the nodes above it too")
    remove = verb("rm", _rm, "delete a node")
    remove.add_argument("-r", "--recursive", action="store_true", help="and everything below it")
    remove.add_argument("--version", type=int, default=-1, metavar="N", help="only if the node has it")
    add_confirmation(remove)
    verb("tree", _tree, "show a node and everything below it")
    follow = verb("watch", _watch, "print changes of a node and below it as they happen")
    follow.add_argument("--count", type=count, metavar="N", help="end after so many")
    follow.add_argument("--only", action="store_true", help="the node itself, not what is below it")
    verb("stat", _stat, "show a node's numbers")
    access = verb("acl", _acl, "show or change who may do what with a node")
    access.add_argument(
        "--set",
        action="append",
        metavar="SCHEME:ID:PERMS",
        help="the new list, one entry each, as world:anyone:r or digest:ann:HASH:rwcda",
    )


def _run(action: Action, options: argparse.Namespace) -> int:
    from ottla.client.zookeeper import ConnectionLost, ZooKeeperClient, ZooKeeperError

    host, _, port = options.server.rpartition(":")
    if not host or not port.isdigit():
        raise CommandFailed(f"--server {options.server}", "expected HOST:PORT", ExitCode.WRONG_USE)
    try:
        with ZooKeeperClient(host.strip("[]"), int(port)) as client:
            if options.auth:
                client.add_auth("digest", options.auth.encode())
            return action(client, options)
    except ConnectionLost as error:
        raise CommandFailed(
            str(error),
            "`ottla up` or `ottla coordination up` starts one, often on port 2181; --server names another",
            ExitCode.NO_BROKER,
        ) from error
    except ZooKeeperError as error:
        code = ExitCode.NOT_FOUND if error.is_no_node else ExitCode.FAILED
        raise CommandFailed(str(error), exit_code=code) from error


# -- looking -----------------------------------------------------------------------------------------------


def _ls(client: ZooKeeperClient, options: argparse.Namespace) -> int:
    names = client.children(options.path)
    if options.output == "table":
        for name in names:
            print(name)
    else:
        print_rows(({"name": name} for name in names), options.output, ["name"])
    return ExitCode.DONE


def _get(client: ZooKeeperClient, options: argparse.Namespace) -> int:
    data, stat = client.get(options.path)
    if options.output == "table":
        sys.stdout.flush()
        sys.stdout.buffer.write((data or b"") + (b"\n" if data and sys.stdout.isatty() else b""))
    else:
        print_facts({"path": options.path, "data": _text(data), **_numbers(stat)}, options.output)
    return ExitCode.DONE


def _stat(client: ZooKeeperClient, options: argparse.Namespace) -> int:
    _, stat = client.get(options.path)
    print_facts(_numbers(stat), options.output)
    return ExitCode.DONE


def _tree(client: ZooKeeperClient, options: argparse.Namespace) -> int:
    rows = _below(client, options.path)
    if options.output == "table":
        for row in rows:
            indent = "  " * int(str(row["depth"]))
            print(f"{indent}{row['name']}  {styled(_shortened(str(row['data'] or '')), 'dim')}".rstrip())
    else:
        print_rows(rows, options.output, ["path", "data"])
    return ExitCode.DONE


def _below(client: ZooKeeperClient, root: str) -> Iterator[Row]:
    """The node and all below it, each before its children."""
    from ottla.client.zookeeper import ZooKeeperError

    waiting = [(root, 0)]
    while waiting:
        path, depth = waiting.pop()
        try:
            data, stat = client.get(path)
            children = client.children(path)
        except ZooKeeperError as error:
            if error.is_no_node and path != root:  # gone meanwhile
                continue
            raise
        name = path.rpartition("/")[2] or "/"
        yield {
            "path": path,
            "name": path if depth == 0 else name,
            "depth": depth,
            "data": _text(data),
            "ephemeral": stat.ephemeral_owner != 0,
        }
        waiting += [(f"{path.rstrip('/')}/{child}", depth + 1) for child in reversed(children)]


def _watch(client: ZooKeeperClient, options: argparse.Namespace) -> int:
    client.get(options.path) if options.only else client.children(options.path)  # says when it is not there
    client.watch(options.path, recursive=not options.only)
    for number, event in enumerate(client.events(), 1):
        row: Row = {
            "time": datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds"),
            "event": _EVENTS.get(event.type, str(event.type)),
            "path": event.path,
            "data": _data_now(client, event.path) if event.type in (1, 3) else None,
        }
        if options.output == "table":
            print(f"{styled(str(row['time']), 'dim')}  {row['event']:<8}  {row['path']}  {row['data'] or ''}")
        else:
            print_json_lines([row])
        sys.stdout.flush()
        if number == options.count:
            break
    return ExitCode.DONE


def _data_now(client: ZooKeeperClient, path: str) -> str | None:
    """It may be newer than the change we were told of, or gone."""
    from ottla.client.zookeeper import ZooKeeperError

    try:
        return _text(client.get(path)[0])
    except ZooKeeperError:
        return None


# -- changing ----------------------------------------------------------------------------------------------


def _set(client: ZooKeeperClient, options: argparse.Namespace) -> int:
    stat = client.set(options.path, _given(options.data), options.version)
    print_facts({"path": options.path, "version": stat.version}, options.output)
    return ExitCode.DONE


def _create(client: ZooKeeperClient, options: argparse.Namespace) -> int:
    if options.parents:
        names = options.path.strip("/").split("/")[:-1]
        for number in range(1, len(names) + 1):
            above = "/" + "/".join(names[:number])
            if client.exists(above) is None:
                client.create(above)
    flags = _SEQUENTIAL if options.sequential else 0
    path = client.create(options.path, _given(options.data), flags=flags)
    if options.output == "table":
        print(path)
    else:
        print_facts({"path": path}, options.output)
    return ExitCode.DONE


def _rm(client: ZooKeeperClient, options: argparse.Namespace) -> int:
    if options.recursive:
        paths = [str(row["path"]) for row in _below(client, options.path)]
    else:
        client.get(options.path)
        paths = [options.path]
    rows: list[Row] = [{"path": path} for path in paths]
    print_plan(rows, options.output)
    if not options.dry_run:
        confirm(f"Delete {counted(len(paths), 'node')}?", yes=options.yes)
        for path in reversed(paths):
            client.delete(path, options.version if path == options.path else -1)
    print_done(rows, options.output, f"{counted(len(paths), 'node')} deleted", done=not options.dry_run)
    return ExitCode.DONE


def _acl(client: ZooKeeperClient, options: argparse.Namespace) -> int:
    if options.set:
        client.set_acl(options.path, [_parsed_acl(text) for text in options.set])
    entries, _ = client.acl(options.path)
    rows = [
        {"scheme": acl.scheme, "id": acl.id, "permissions": _permission_letters(acl.perms)} for acl in entries
    ]
    print_rows(rows, options.output, ["scheme", "id", "permissions"])
    return ExitCode.DONE


def _parsed_acl(text: str) -> Acl:
    from ottla.protocol.zookeeper.records import Acl

    scheme, _, rest = text.partition(":")
    who, separator, letters = rest.rpartition(":")
    if not separator or not letters or set(letters) - set(_PERMISSIONS):
        raise CommandFailed(
            f"{text!r} is no entry of an access list",
            "expected SCHEME:ID:PERMS, as world:anyone:r; permissions are of r, w, c, d and a",
            ExitCode.WRONG_USE,
        )
    return Acl(sum(_PERMISSIONS[letter] for letter in set(letters)), scheme, who)


def _permission_letters(perms: int) -> str:
    return "".join(letter for letter, bit in _PERMISSIONS.items() if perms & bit)


def _given(data: str) -> bytes:
    return sys.stdin.buffer.read() if data == "-" else data.encode()


# -- for people --------------------------------------------------------------------------------------------


def _numbers(stat: Stat) -> dict[str, str | int]:
    return {
        **stat._asdict(),
        "ephemeral_owner": f"0x{stat.ephemeral_owner & 0xFFFF_FFFF_FFFF_FFFF:x}",
    }


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")


def _shortened(text: str, characters_max: int = 100) -> str:
    line = " ".join(text.split())
    return line if len(line) <= characters_max else line[: characters_max - 1] + "…"
