"""What a znode's path may look like: the rules ZooKeeper's own clients and server apply."""

from __future__ import annotations

import re

# Control characters, what UTF-16 keeps for itself (surrogates, private use) and everything beyond the first
# plane are refused by ZooKeeper; "." and ".." are refused as names because paths are never relative.
_ILLEGAL = "\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff"
_LEGAL_PATH = re.compile(rf"/|(?:/(?!\.\.?(?:/|\Z))[^/{_ILLEGAL}]+)+", re.ASCII)

RESERVED = ("/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota")
"""Nodes that are always there and cannot be deleted; each behind its parent."""


def is_legal(path: str) -> bool:
    return _LEGAL_PATH.fullmatch(path) is not None


def problem(path: str) -> str:
    """Why `path` is not legal, for messages; call it when `is_legal` said no."""
    if not path.startswith("/"):
        return f"path {path!r} must start with '/'"
    if path.endswith("/"):
        return f"path {path!r} must not end with '/'"
    if "//" in path:
        return f"path {path!r} has an empty name in it"
    if any(name in (".", "..") for name in path.split("/")):
        return f"path {path!r} is relative"
    return f"path {path!r} holds a character that no znode may have"


def parent_of(path: str) -> str:
    return path[: path.rfind("/")] or "/"


def name_of(path: str) -> str:
    return path[path.rfind("/") + 1 :]
