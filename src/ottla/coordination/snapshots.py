"""Snapshots of the tree: one moment of it, written in slices while the tree goes on changing.

The moment is kept by saving a node before its first change after the snapshot began (`Tree.before_change`).
The owner of the tree serialises a bounded slice at a time, so no request waits for the whole tree; the file
gets its name when all of it is durable. This module makes and reads bytes and touches no file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ottla.coordination.frames import (
    HEADER_BYTES,
    SNAPSHOT_MAGIC,
    Header,
    decode_header,
    encode_frame,
    encode_header,
    frame_at,
)
from ottla.coordination.operations import NO_SESSION
from ottla.coordination.paths import name_of, parent_of
from ottla.coordination.znodes import Node, Tree

SLICE_NODES = 2_000
"""Nodes serialised at a time: some 2 ms of the owner's time."""

_NO_DATA = 0xFFFF_FFFF
_COUNT = struct.Struct(">I")
_END = struct.Struct(">IQ")  # in place of a count: _END_MARK, then the number of nodes in the snapshot
_END_MARK = 0xFFFF_FFFF
# bytes of path and data; czxid, mzxid, pzxid; ctime, mtime; version, aversion; child creations; owner
_NODE = struct.Struct(">II QQQ qq ii Q Q")


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
        self._slice_nodes = 0
        self._nodes = 0  # serialised so far
        self._head = encode_header(SNAPSHOT_MAGIC, Header(self.zxid, tag))

    def next_chunk(self) -> bytes:
        """The next bytes of the file; `finished` tells whether they were the last."""
        assert not self.finished
        tree_nodes, mark = self._tree.nodes, self._mark
        for path in self._paths:
            node = tree_nodes.get(path)  # None: deleted since, and saved before that
            if node is not None and node.snapshot_mark != mark:
                self._save(path, node)
                if self._slice_nodes >= SLICE_NODES:
                    return self._take_slice()
        chunk = self._take_slice() + encode_frame(_END.pack(_END_MARK, self._nodes), self._tag)
        self.abandon()
        return chunk

    def abandon(self) -> None:
        self.finished = True
        self._tree.before_change = None

    def _save(self, path: str, node: Node) -> None:
        node.snapshot_mark = self._mark
        self._slice.append(_encode_node(path, node))
        self._slice_nodes += 1
        self._nodes += 1

    def _take_slice(self) -> bytes:
        head, self._head = self._head, b""
        chunk = head + encode_frame(_COUNT.pack(self._slice_nodes) + b"".join(self._slice), self._tag)
        self._slice, self._slice_nodes = [], 0
        return chunk


def _encode_node(path: str, node: Node) -> bytes:
    name, data = path.encode(), node.data
    numbers = _NODE.pack(
        len(name),
        _NO_DATA if data is None else len(data),
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
    return b"".join((numbers, name, data or b""))


def load_snapshot(data: bytes, name: str) -> Tree | None:
    """The tree in a snapshot file's bytes, or None when they are damaged or incomplete."""
    header = decode_header(SNAPSHOT_MAGIC, data, name)
    if header is None:
        return None
    tree = Tree()
    tree.nodes.clear()
    position = HEADER_BYTES
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
        (name_bytes, data_bytes, czxid, mzxid, pzxid, ctime, mtime, version, aversion, creations, owner) = (
            _NODE.unpack_from(payload, position)
        )
        position += _NODE.size
        path = payload[position : position + name_bytes].decode()
        position += name_bytes
        data: bytes | None = None
        if data_bytes != _NO_DATA:
            data = payload[position : position + data_bytes]
            position += data_bytes
        node = Node(data, czxid, ctime, owner, 0)
        node.mzxid, node.pzxid, node.mtime_ms = mzxid, pzxid, mtime
        node.version, node.aversion, node.child_creations = version, aversion, creations
        tree.nodes[path] = node


def _link(tree: Tree) -> bool:
    """Children and sessions follow from the paths; False when a node's parent is missing."""
    if "/" not in tree.nodes:
        return False
    for path, node in tree.nodes.items():
        if node.ephemeral_owner != NO_SESSION:
            tree.ephemerals.setdefault(node.ephemeral_owner, set()).add(path)
        if path == "/":
            continue
        parent = tree.nodes.get(parent_of(path))
        if parent is None:
            return False
        if parent.children is None:
            parent.children = set()
        parent.children.add(name_of(path))
        parent.child_count += 1
    return True
