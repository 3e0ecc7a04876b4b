"""Snapshots of the tree: one moment of it, written in slices while the tree goes on changing.

The moment is kept by saving a node before its first change after the snapshot began (`Tree.before_change`).
The owner of the tree serialises a bounded slice at a time, so no request waits for the whole tree; the file
gets its name when all of it is durable. This module makes and reads bytes and touches no file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ottla.coordination.acls import decode_acl, encode_acl
from ottla.coordination.frames import (
    HEADER_BYTES,
    SNAPSHOT_MAGIC,
    Header,
    decode_header,
    encode_frame,
    encode_header,
    frame_at,
)
from ottla.coordination.nodes import Node
from ottla.coordination.paths import RESERVED, parent_of
from ottla.coordination.znodes import SessionTerms, Tree
from ottla.model.limits import MIB

SLICE_NODES = 500
"""Nodes serialised at a time: about a millisecond of the owner's time."""

SLICE_BYTES = 1 * MIB
"""The same for nodes with much data: no round has to write much more."""

_NO_DATA = 0xFFFF_FFFF
_COUNT = struct.Struct(">I")
_END = struct.Struct(">IQ")  # in place of a count: _END_MARK, then the number of nodes in the snapshot
_END_MARK = 0xFFFF_FFFF
# bytes of path, data and access list; czxid, mzxid, pzxid; ctime, mtime; version, aversion; child creations;
# owner
_NODE = struct.Struct(">III QQQ qq iii q")
_SESSION = struct.Struct(">qI16s")  # number, timeout in ms, password


class SnapshotWriter:
    """Turns the tree, as it is now, into the chunks of a snapshot file."""

    def __init__(self, tree: Tree, tag: int) -> None:
        assert tree.before_change is None, "one snapshot at a time"
        self.zxid = tree.last_zxid
        self.finished = False
        self._tree = tree
        self._tag = tag
        tree.snapshot_mark += 1
        tree.before_change = self._save
        self._mark = tree.snapshot_mark
        self._paths: Iterator[str] = iter(list(tree.nodes))
        self._slice: list[bytes] = []
        self._slice_bytes = 0
        self._nodes = 0  # serialised so far
        self._head = encode_header(SNAPSHOT_MAGIC, Header(self.zxid, tag))
        self._head += encode_frame(_encode_sessions(tree), tag)

    def next_chunk(self) -> bytes:
        """The next bytes of the file; `finished` tells whether they were the last."""
        assert not self.finished
        tree_nodes, mark = self._tree.nodes, self._mark
        for path in self._paths:
            node = tree_nodes.get(path)  # None: deleted since, and saved before that
            if node is not None and node.snapshot_mark != mark:
                self._save(path, node)
                if len(self._slice) >= SLICE_NODES or self._slice_bytes >= SLICE_BYTES:
                    return self._take_slice()
        chunk = self._take_slice() + encode_frame(_END.pack(_END_MARK, self._nodes), self._tag)
        self.abandon()
        return chunk

    def abandon(self) -> None:
        self.finished = True
        self._tree.before_change = None

    def _save(self, path: str, node: Node) -> None:
        node.snapshot_mark = self._mark
        encoded = _encode_node(path, node)
        self._slice.append(encoded)
        self._slice_bytes += len(encoded)
        self._nodes += 1

    def _take_slice(self) -> bytes:
        head, self._head = self._head, b""
        chunk = head + encode_frame(_COUNT.pack(len(self._slice)) + b"".join(self._slice), self._tag)
        self._slice, self._slice_bytes = [], 0
        return chunk


def _encode_sessions(tree: Tree) -> bytes:
    return b"".join(_SESSION.pack(number, *terms) for number, terms in tree.sessions.items())


def _encode_node(path: str, node: Node) -> bytes:
    name, data, acl = path.encode(), node.data, encode_acl(node.acl)
    numbers = _NODE.pack(
        len(name),
        _NO_DATA if data is None else len(data),
        len(acl),
        node.czxid,
        node.mzxid,
        node.pzxid,
        node.ctime_ms,
        node.mtime_ms,
        node.version,
        node.aversion,
        node.child_creations,
        node.ephemeral_owner,
    )
    return b"".join((numbers, name, data or b"", acl))


def load_snapshot(data: bytes, name: str) -> Tree | None:
    """The tree in a snapshot file's bytes, or None when they are damaged or incomplete."""
    header = decode_header(SNAPSHOT_MAGIC, data, name)
    if header is None:
        return None
    tree = Tree()
    tree.nodes.clear()
    tree.data_bytes = 0
    sessions = frame_at(data, HEADER_BYTES, header.tag)
    if sessions is None:
        return None
    for number, timeout_ms, password in _SESSION.iter_unpack(sessions.payload):
        tree.sessions[number] = SessionTerms(timeout_ms, password)
    position = sessions.end
    while (frame := frame_at(data, position, header.tag)) is not None:
        payload, position = frame.payload, frame.end
        if payload[:4] == _COUNT.pack(_END_MARK):
            _, nodes = _END.unpack(payload)
            if position != len(data) or nodes != len(tree.nodes):
                return None
            tree.last_zxid = header.zxid
            return tree if _link(tree) else None
        _load_slice(tree, payload)
    return None


def _load_slice(tree: Tree, payload: bytes) -> None:
    (count,) = _COUNT.unpack_from(payload)
    position = _COUNT.size
    for _ in range(count):
        name_bytes, data_bytes, acl_bytes, *numbers = _NODE.unpack_from(payload, position)
        czxid, mzxid, pzxid, ctime, mtime, version, aversion, creations, owner = numbers
        position += _NODE.size
        path = payload[position : position + name_bytes].decode()
        position += name_bytes
        data: bytes | None = None
        if data_bytes != _NO_DATA:
            data = payload[position : position + data_bytes]
            position += data_bytes
        acl = decode_acl(payload[position : position + acl_bytes])
        position += acl_bytes
        node = Node(data, czxid, ctime, owner, acl)
        node.mzxid, node.pzxid, node.mtime_ms = mzxid, pzxid, mtime
        node.version, node.aversion, node.child_creations = version, aversion, creations
        tree.nodes[path] = node


def _link(tree: Tree) -> bool:
    """Children, sessions and quotas follow from the nodes; False when one is missing."""
    nodes = tree.nodes
    if any(path not in nodes for path in RESERVED) or any(parent_of(path) not in nodes for path in nodes):
        return False
    for path, node in nodes.items():
        tree.link(path, node)
    return True
