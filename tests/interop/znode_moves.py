"""The znodes of a cluster, carried between our coordination directory and an Apache ZooKeeper."""

from __future__ import annotations

from pathlib import Path

from kazoo.client import KazooClient

from ottla.coordination.client import LocalCoordination
from ottla.coordination.operations import Code, Create, Result, SetData
from ottla.log.system_files import SystemFiles
from ottla.model.clock import SystemClock

Znodes = dict[str, bytes]
"""What lasts: no ephemeral nodes. Parents come before their children."""


def of_ottla(coordination: Path) -> Znodes:
    local = LocalCoordination(SystemFiles(), str(coordination), SystemClock())
    try:
        found: Znodes = {}
        for path in sorted(local.tree.nodes):
            node = local.read(path)
            assert node is not None
            data, stat = node
            if not stat.ephemeral_owner and _is_carried(path):
                found[path] = data or b""
        return found
    finally:
        local.close()


def into_ottla(coordination: Path, znodes: Znodes) -> None:
    coordination.mkdir(parents=True, exist_ok=True)
    local = LocalCoordination(SystemFiles(), str(coordination), SystemClock())
    codes: list[Code] = []

    def done(result: Result) -> None:
        codes.append(result.code)

    for path, data in znodes.items():
        is_there = local.exists(path) is not None
        local.submit(SetData(path, data) if is_there else Create(path, data), done)
    local.sync()
    local.close()
    assert set(codes) <= {Code.OK}, codes


def of_zookeeper(address: str) -> Znodes:
    client = KazooClient(address)
    client.start(timeout=60)
    try:
        found: Znodes = {}
        paths = ["/"]
        while paths:
            path = paths.pop()
            data, stat = client.get(path)
            if stat.ephemeralOwner:
                continue
            if _is_carried(path):
                found[path] = data
            paths += [f"{path.rstrip('/')}/{name}" for name in client.get_children(path)]
        return dict(sorted(found.items()))
    finally:
        client.stop()
        client.close()


def into_zookeeper(address: str, znodes: Znodes) -> None:
    client = KazooClient(address)
    client.start(timeout=60)
    try:
        for path, data in znodes.items():
            if client.exists(path):
                client.set(path, data)
            else:
                client.create(path, data)
    finally:
        client.stop()
        client.close()


def _is_carried(path: str) -> bool:
    return path != "/" and path.split("/")[1] != "zookeeper"
