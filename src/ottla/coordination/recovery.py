"""Rebuilding the tree from a directory: the newest good snapshot, then every transaction behind it.

A tail that a power cut left half-written is cut off: nothing in it was ever acknowledged. Damage to what was
durable is never papered over: each record says how far its writer knew the log to be durable, so a whole
record behind the damage proves that acknowledged changes are gone, and that is a loud error.
"""

from __future__ import annotations

import logging
import os

from ottla.coordination.frames import (
    HEADER_BYTES,
    LOG_MAGIC,
    decode_header,
    frame_at,
    frames_behind,
)
from ottla.coordination.snapshots import load_snapshot
from ottla.coordination.txns import DURABLE_ZXID, Txn, decode_txn
from ottla.coordination.znodes import Tree
from ottla.log.files import Files
from ottla.model.problems import CorruptData
from ottla.model.values import NamedTuple

logger = logging.getLogger(__name__)

TEMPORARY_SUFFIX = ".tmp"
_LOG, _SNAPSHOT = "log", "snapshot"
_ZXID_DIGITS = 16


def log_name(first_zxid: int) -> str:
    return f"{_LOG}.{first_zxid:016x}"


def snapshot_name(zxid: int) -> str:
    return f"{_SNAPSHOT}.{zxid:016x}"


class Recovered:
    def __init__(self, tree: Tree, logs: list[int], snapshots: list[int]) -> None:
        self.tree = tree
        self.logs = logs  # first zxid of every log file that is there, in order
        self.snapshots = snapshots  # zxid of every snapshot that is there, in order
        self.last_log_tag: int | None = None  # the last log ends with the newest transaction, so it can go on
        self.last_log_end = 0  # where its last transaction ends; zeros may follow
        self.log_bytes = 0  # read behind the snapshot
        self.snapshot_bytes = 0


class _Damage(NamedTuple):
    path: str
    position: int
    data: bytes  # of the whole file
    tag: int | None  # of the file; None when its header is damaged


def recover(files: Files, directory: str) -> Recovered:
    """The state in `directory`, its files made ready to be appended to. CorruptData when it is not whole."""
    found = Recovered(Tree(), *_list(files, directory))
    _load_newest_snapshot(files, directory, found)
    _replay(files, directory, found)
    _make_durable(files, directory, found)
    return found


def _list(files: Files, directory: str) -> tuple[list[int], list[int]]:
    logs: list[int] = []
    snapshots: list[int] = []
    for name, is_directory in files.list_directory(directory):
        whole_name = name.removesuffix(TEMPORARY_SUFFIX)
        kind, _, digits = whole_name.partition(".")
        zxid = None if is_directory or kind not in (_LOG, _SNAPSHOT) else _zxid(digits)
        if zxid is None:
            continue  # not ours: a copy that somebody made, say
        if whole_name != name:
            files.remove(os.path.join(directory, name))
        else:
            (logs if kind == _LOG else snapshots).append(zxid)
    return sorted(logs), sorted(snapshots)


def _zxid(digits: str) -> int | None:
    """As names of files have it; None: it is none."""
    if len(digits) != _ZXID_DIGITS or not set(digits) <= set("0123456789abcdef"):
        return None
    return int(digits, 16)


def _load_newest_snapshot(files: Files, directory: str, found: Recovered) -> None:
    for zxid in reversed(found.snapshots):
        path = os.path.join(directory, snapshot_name(zxid))
        data = files.read_all(path)
        tree = load_snapshot(data, path)
        if tree is not None:
            found.tree, found.snapshot_bytes = tree, len(data)
            return
        logger.warning("%s is damaged; going back to the snapshot before it and a longer log", path)


def _replay(files: Files, directory: str, found: Recovered) -> None:
    tree = found.tree
    needed = [zxid for zxid in found.logs if zxid > tree.last_zxid + 1]
    older = [zxid for zxid in found.logs if zxid <= tree.last_zxid + 1]
    needed = older[-1:] + needed
    for index, first_zxid in enumerate(needed):
        path = os.path.join(directory, log_name(first_zxid))
        if first_zxid > tree.last_zxid + 1:
            raise CorruptData(
                f"{path} begins with transaction {first_zxid}, but the files before it end with "
                f"{tree.last_zxid}: a file is missing; restore the directory from a backup"
            )
        last_zxid, tag, damage = _replay_file(files, path, first_zxid, found)
        found.last_log_tag = tag if damage is None and last_zxid == tree.last_zxid else None
        if damage is not None:
            later = needed[index + 1 :]
            _require_a_torn_tail(files, directory, tree.last_zxid, damage, later)
            for zxid in later:
                files.remove(os.path.join(directory, log_name(zxid)))
                found.logs.remove(zxid)
            _cut(files, first_zxid, last_zxid, damage, found)
            return


def _replay_file(
    files: Files, path: str, first_zxid: int, found: Recovered
) -> tuple[int, int | None, _Damage | None]:
    """Apply what is new in a log file: the last zxid in it, its tag, and where it stops making sense."""
    data = files.read_all(path)
    last_zxid = first_zxid - 1
    header = decode_header(LOG_MAGIC, data, path)
    if header is None or header.zxid != first_zxid:
        return last_zxid, None, _Damage(path, 0, data, None)
    tag, position = header.tag, HEADER_BYTES
    while position < len(data):
        frame = frame_at(data, position, tag)
        if frame is None:
            if _is_filling(data, position):
                break
            return last_zxid, tag, _Damage(path, position, data, tag)
        txn = _decode(frame.payload, path, position)
        if txn.zxid != last_zxid + 1:
            return last_zxid, tag, _Damage(path, position, data, tag)
        last_zxid = txn.zxid
        if txn.zxid > found.tree.last_zxid:
            _apply(found.tree, txn, path, position)
            found.log_bytes += frame.end - position
        position = frame.end
    found.last_log_end = position
    return last_zxid, tag, None


def _is_filling(data: bytes, position: int) -> bool:
    """Whether there are only the zeros left that a log is filled with ahead of its end."""
    return not data[position:].strip(b"\0")


def _decode(payload: bytes, path: str, position: int) -> Txn:
    try:
        return decode_txn(payload[DURABLE_ZXID.size :])
    except ValueError as error:
        raise CorruptData(
            f"{path} at position {position}: the checksum is right, the content is not ({error}); "
            "it was written by something else; restore the directory from a backup"
        ) from error


def _apply(tree: Tree, txn: Txn, path: str, position: int) -> None:
    try:
        tree.apply(txn)
    except AssertionError as error:
        raise CorruptData(
            f"{path} at position {position}: transaction {txn.zxid} does not fit the state before it "
            f"({error}); restore the directory from a backup"
        ) from error


def _require_a_torn_tail(
    files: Files, directory: str, good_zxid: int, damage: _Damage, later: list[int]
) -> None:
    """CorruptData when a record behind the damage knows of a newer durable transaction than the good ones."""
    rest = [(damage.data, damage.position, damage.tag)]
    for zxid in later:
        path = os.path.join(directory, log_name(zxid))
        data = files.read_all(path)
        header = decode_header(LOG_MAGIC, data, path)
        rest.append((data, 0, None if header is None else header.tag))
    for data, position, tag in rest:
        for frame in frames_behind(data, position, tag):
            if len(frame.payload) < DURABLE_ZXID.size:
                continue
            (durable_zxid,) = DURABLE_ZXID.unpack_from(frame.payload)
            if durable_zxid > good_zxid:
                raise CorruptData(
                    f"{damage.path} is damaged at position {damage.position}: transactions {good_zxid + 1}-"
                    f"{durable_zxid} were acknowledged and cannot be read. Restore the directory from a "
                    f"backup; or, to go on from transaction {good_zxid} and lose what came after, cut this "
                    f"file to {damage.position} bytes and move every log file behind it away"
                )


def _cut(files: Files, first_zxid: int, last_zxid: int, damage: _Damage, found: Recovered) -> None:
    lost = len(damage.data) - damage.position
    if last_zxid < found.tree.last_zxid:
        # A snapshot holds what this log lost, so nobody reads the file again.
        logger.warning("%s is damaged at position %d; a snapshot covers it", damage.path, damage.position)
        return
    logger.warning("cut %d half-written bytes off %s (position %d)", lost, damage.path, damage.position)
    if damage.position < HEADER_BYTES:
        files.remove(damage.path)
        found.logs.remove(first_zxid)
        return
    handle = files.open(damage.path)
    handle.truncate(damage.position)
    handle.close()
    found.last_log_tag, found.last_log_end = damage.tag, damage.position


def _make_durable(files: Files, directory: str, found: Recovered) -> None:
    """What was read may still be in the page cache of a process that was killed; from here on it counts."""
    if found.logs:
        handle = files.open(os.path.join(directory, log_name(found.logs[-1])))
        handle.sync()
        handle.close()
    files.sync_directory(directory)
    # The process that made the directory may have been killed before its name was durable.
    files.sync_directory(os.path.dirname(directory))
