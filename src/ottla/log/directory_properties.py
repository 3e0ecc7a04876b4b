"""`meta.properties`: whose directory this is. Read first at a start, so that no disks get mixed up.

Version 0, as Kafka in ZooKeeper mode writes it, with a directory id (KIP-858) and the version of our layout.
Upgrade rule: a directory of an older layout is brought up to date when it is opened; one of a newer layout,
or of another cluster or node, is refused.
"""

from __future__ import annotations

import os

from ottla.log.checkpoints import PARTITION_METADATA
from ottla.log.files import Files
from ottla.model.topics import new_topic_id, topic_id_text
from ottla.model.values import dataclass

FILE_NAME = "meta.properties"
LAYOUT_VERSION = 1
_LAYOUT = "ottla.layout.version"


class WrongDirectory(ValueError):
    """The directory is not this broker's, or not of a layout it knows. The message says what to do."""


@dataclass(slots=True, frozen=True)
class DirectoryProperties:
    cluster_id: str
    node_id: int
    directory_id: str  # 22 characters, as topic ids are written
    was_ours: bool  # Ottla has used it before, and not only Kafka


def claim_directory(files: Files, path: str, cluster_id: str, node_id: int) -> DirectoryProperties:
    """Read who owns the directory; a new one becomes ours."""
    file = os.path.join(path, FILE_NAME)
    found = parse_properties(files.read_all(file)) if files.exists(file) else {}
    layout = found.get(_LAYOUT, str(LAYOUT_VERSION))
    if not layout.isdigit() or int(layout) > LAYOUT_VERSION:
        raise WrongDirectory(
            f"{path} has layout version {layout}, this Ottla knows {LAYOUT_VERSION}: "
            "start the newer Ottla that wrote it"
        )
    if "cluster.id" not in found:
        _check_holds_no_logs(files, path)
    _check(path, "cluster.id", found.get("cluster.id"), cluster_id)
    _check(path, "node.id", found.get("broker.id", found.get("node.id")), str(node_id))
    directory_id = found.get("directory.id") or topic_id_text(new_topic_id())
    wanted = {
        "version": "0",
        "broker.id": str(node_id),
        "cluster.id": cluster_id,
        "directory.id": directory_id,
        _LAYOUT: str(LAYOUT_VERSION),
    }
    if any(found.get(name) != value for name, value in wanted.items()):
        files.write_atomically(file, _encode(wanted))
    return DirectoryProperties(cluster_id, node_id, directory_id, _LAYOUT in found)


def missing_properties(data: bytes) -> list[str]:
    """What the `meta.properties` of any Kafka names, and this one does not."""
    found = parse_properties(data)
    owner = "broker.id" if found.get("version", "0") == "0" else "node.id"
    return [name for name in ("cluster.id", owner) if name not in found]


def _check_holds_no_logs(files: Files, path: str) -> None:
    """Logs of nobody knows whom must not be claimed: a start removes those whose topics it does not know."""
    for name, is_directory in files.list_directory(path):
        if is_directory and files.exists(os.path.join(path, name, PARTITION_METADATA)):
            raise WrongDirectory(
                f"{path} holds logs, as {name}, but no {FILE_NAME} says whose: restore that file, "
                "or give the broker another log.dirs"
            )


def _check(path: str, name: str, found: str | None, wanted: str) -> None:
    if found is not None and found != wanted:
        raise WrongDirectory(
            f"{path} belongs to {name} {found}, this broker is {wanted}: "
            "give the broker its own log.dirs, or start it with the coordination directory of these logs"
        )


def parse_properties(data: bytes) -> dict[str, str]:
    """Java properties, as far as ids and numbers need: comments, `name=value`, backslash escapes."""
    found = {}
    for line in data.decode("utf-8", "replace").splitlines():
        name, separator, value = line.strip().partition("=")
        if separator and not name.startswith(("#", "!")):
            found[name.strip().replace("\\", "")] = value.strip().replace("\\", "")
    return found


def _encode(properties: dict[str, str]) -> bytes:
    return "".join(f"{name}={value}\n" for name, value in properties.items()).encode("utf-8")
