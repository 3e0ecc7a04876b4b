"""A disk in memory that remembers what was synced, and a plug to pull.

`SimulatedFiles` behaves like `SystemFiles` while it runs. `cut(seed)` gives the disk after a power cut:
what was synced (file content by `sync`, names by `sync_directory`), and of the rest any random part: writes
lost, torn at sectors or pages, or kept while earlier ones are lost; names created, renamed and removed lost
or kept.

Tests can also let it fail: `capacity_bytes` fills the disk up, `fail` makes one operation raise, `stop_at`
pulls the plug in the middle of whatever runs then.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from ottla.log.files import BLOCK_BYTES, Buffer, DirectoryLocked, Files
from ottla.log.filesystem_sync import FilesystemSync

_SECTOR = 512
_PAGE = 4096
_DEVICE = 1


class PowerCut(BaseException):
    """Raised out of the operation at which the plug was pulled. Nothing may catch it but the test."""


@dataclass(slots=True)
class _Write:
    position: int
    data: bytes


@dataclass(slots=True)
class _Truncate:
    size: int


@dataclass(slots=True)
class _Inode:
    content: bytearray = field(default_factory=bytearray)  # what the running process sees
    durable: bytearray = field(default_factory=bytearray)  # what a power cut leaves for certain
    pending: list[_Write | _Truncate] = field(default_factory=list)  # what is between the two, in order
    modified_ms: int = 0

    def change(self, change: _Write | _Truncate) -> None:
        _apply(self.content, change)
        self.pending.append(change)

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.durable, change)
        self.pending.clear()

    def after_cut(self, rng: random.Random) -> _Inode:
        survivor = bytearray(self.durable)
        block = rng.choice((_SECTOR, _PAGE))
        kept_share = rng.choice((0.0, 0.5, 0.9, 1.0))
        for change in self.pending:
            if isinstance(change, _Truncate):
                if rng.random() < kept_share:
                    _apply(survivor, change)
                continue
            for start, end in _blocks(change.position, len(change.data), block):
                if rng.random() < kept_share:
                    data = change.data[start - change.position : end - change.position]
                    _apply(survivor, _Write(start, data))
        return _Inode(bytearray(survivor), survivor, modified_ms=self.modified_ms)


def _apply(content: bytearray, change: _Write | _Truncate) -> None:
    if isinstance(change, _Truncate):
        del content[change.size :]
        content.extend(bytes(change.size - len(content)))
        return
    if change.position > len(content):
        content.extend(bytes(change.position - len(content)))
    content[change.position : change.position + len(change.data)] = change.data


def _blocks(position: int, size: int, block: int) -> list[tuple[int, int]]:
    """The parts of [position, position + size) that a drive writes as one, cut at multiples of `block`."""
    edges = [position, *range((position // block + 1) * block, position + size, block), position + size]
    return list(itertools.pairwise(edges))


@dataclass(slots=True)
class _Directory:
    names: dict[str, _Inode | _Directory] = field(default_factory=dict)
    durable: dict[str, _Inode | _Directory] = field(default_factory=dict)
    # Each step sets names to what they stand for, or takes them away (None); a rename is one step of two.
    pending: list[dict[str, _Inode | _Directory | None]] = field(default_factory=list)

    def change(self, step: dict[str, _Inode | _Directory | None]) -> None:
        _rename(self.names, step)
        self.pending.append(step)

    def sync(self) -> None:
        self.durable = dict(self.names)
        self.pending.clear()

    def after_cut(self, rng: random.Random, survivors: dict[int, _Inode]) -> _Directory:
        names = dict(self.durable)
        kept_share = rng.choice((0.0, 0.5, 0.9, 1.0))
        for step in self.pending:
            if rng.random() < kept_share:
                _rename(names, step)
        result = _Directory()
        for name, entry in names.items():
            if isinstance(entry, _Directory):
                result.names[name] = entry.after_cut(rng, survivors)
            else:
                if id(entry) not in survivors:
                    survivors[id(entry)] = entry.after_cut(rng)
                result.names[name] = survivors[id(entry)]
        result.durable = dict(result.names)
        return result


def _rename(names: dict[str, _Inode | _Directory], step: dict[str, _Inode | _Directory | None]) -> None:
    for name, entry in step.items():
        if entry is None:
            names.pop(name, None)
        else:
            names[name] = entry


class SimulatedFile:
    """An open file of `SimulatedFiles`. See `FileHandle`."""

    def __init__(self, files: SimulatedFiles, name: str, inode: _Inode, writable: bool) -> None:
        self.name = name
        self.size = len(inode.content)
        self._files = files
        self._inode = inode
        self._writable = writable
        self._sync_error: OSError | None = None
        self._is_open = True
        files.open_count += 1

    def append(self, chunks: Sequence[Buffer]) -> int:
        self._step("append")
        position = self.size
        data = b"".join(chunks)
        taken = self._files.take_space(len(data))
        self._inode.change(_Write(position, data[:taken]))
        if taken < len(data):
            self.truncate(position)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.name)
        self.size = position + len(data)
        self._inode.modified_ms = self._files.now_ms
        return position

    def pread(self, size: int, position: int) -> bytes:
        assert self._is_open
        self._files.step("pread", self.name, counts=False)
        return bytes(self._inode.content[position : position + size])

    def pread_now(self, size: int, position: int) -> bytes:
        return self.pread(size, position)

    def truncate(self, size: int) -> None:
        self._step("truncate")
        self._files.give_space(len(self._inode.content) - size)
        self._inode.change(_Truncate(size))
        self.size = size

    def reserve(self, size: int) -> None:
        self._step("reserve")
        wanted = size - len(self._inode.content)
        if wanted > 0:
            if (taken := self._files.take_space(wanted)) < wanted:
                self._files.give_space(taken)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.name)
            self._inode.change(_Truncate(size))

    fill = reserve

    def sync_fd(self) -> None:
        return None  # no bare system calls here

    def sync_failed(self, error: OSError) -> None:
        self._sync_error = error

    def sync(self) -> None:
        assert self._is_open
        if self._sync_error is not None:
            raise self._sync_error
        try:
            self._files.step("sync", self.name)
        except OSError as error:
            self._sync_error = error
            raise
        self._inode.sync()

    def direct(self) -> SimulatedDirectAppend | None:
        return SimulatedDirectAppend(self._files, self, self._inode) if self._files.has_direct else None

    def fileno(self) -> int:
        raise AssertionError("a simulated file has no descriptor")

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._files.open_count -= 1

    def __del__(self) -> None:
        self.close()

    def _step(self, operation: str) -> None:
        assert self._is_open
        if not self._writable:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.name)
        self._files.step(operation, self.name)


class SimulatedDirectAppend:
    """Of a `SimulatedFile`. See `DirectAppend`: whole blocks, written over what was synced."""

    def __init__(self, files: SimulatedFiles, handle: SimulatedFile, inode: _Inode) -> None:
        self._files = files
        self._handle = handle
        self._inode = inode
        self._ready: tuple[_Write, int] | None = None

    def prepare(self, chunks: Sequence[Buffer], filled_end: int) -> bool:
        position = self._handle.size
        start = position - position % BLOCK_BYTES
        data = bytes(self._inode.content[start:position]) + b"".join(chunks)
        end = start + len(data)
        data += bytes(-len(data) % BLOCK_BYTES)
        assert not self._inode.pending, "what is written directly lies over what was synced"
        if start + len(data) > filled_end:
            return False
        assert filled_end <= len(self._inode.content)
        self._ready = _Write(start, data), end
        return True

    def run(self) -> bool:
        return self.settle(self.perform())

    def perform(self) -> int:
        assert self._ready is not None
        self._inode.change(self._ready[0])  # a plug pulled now leaves any part of it
        try:
            self._files.step("direct", self._handle.name)
        except OSError as error:
            return error.errno or errno.EIO
        self._inode.sync()
        return 0

    def settle(self, error: int) -> bool:
        assert self._ready is not None
        if error in (errno.EINVAL, errno.ENOSPC):
            self._ready = None
            return False
        if error:
            raise OSError(error, os.strerror(error), self._handle.name)
        self._handle.size = self._ready[1]
        return True

    def close(self) -> None: ...


class SimulatedLock:
    def __init__(self, files: SimulatedFiles, path: str) -> None:
        self._files = files
        self._path = path

    def release(self) -> None:
        self._files.locked.discard(self._path)


class SimulatedFilesystemSync:
    device = _DEVICE

    def __init__(self, files: SimulatedFiles) -> None:
        self._files = files

    def sync_fd(self) -> None:
        return None

    def sync(self) -> None:
        self._files.step("syncfs", "/")
        self._files.sync_everything()


class SimulatedFiles(Files):
    """A filesystem in memory, rooted at `/`. See the head of this file."""

    def __init__(self, root: _Directory | None = None) -> None:
        self._root = root or _Directory()
        self.now_ms = 1_700_000_000_000  # stamps files
        self.open_count = 0  # handles open at the moment
        self.operations = 0  # steps that changed something so far
        self.stop_at: int | None = None  # pull the plug when `operations` gets there
        self.capacity_bytes: int | None = None  # bytes that still fit
        self.has_filesystem_sync = False
        self.has_direct = True
        self.locked: set[str] = set()
        self._failures: list[tuple[str, str, int]] = []

    def cut(self, seed: int) -> SimulatedFiles:
        """The disk as the next start finds it."""
        after = SimulatedFiles(self._root.after_cut(random.Random(seed), {}))
        after.now_ms = self.now_ms
        after.has_filesystem_sync = self.has_filesystem_sync
        after.has_direct = self.has_direct
        return after

    def fail(self, operation: str, number: int, name_ends: str = "") -> None:
        """Let the next `operation` on a file whose name ends so raise OSError(number)."""
        self._failures.append((operation, name_ends, number))

    def step(self, operation: str, name: str, *, counts: bool = True) -> None:
        if counts:
            self.operations += 1
            if self.stop_at is not None and self.operations >= self.stop_at:
                raise PowerCut(f"{operation} {name}")
        for failure in self._failures:
            if failure[0] == operation and name.endswith(failure[1]):
                self._failures.remove(failure)
                raise OSError(failure[2], os.strerror(failure[2]), name)

    def take_space(self, size: int) -> int:
        if self.capacity_bytes is None:
            return size
        taken = min(size, self.capacity_bytes)
        self.capacity_bytes -= taken
        return taken

    def give_space(self, size: int) -> None:
        if self.capacity_bytes is not None:
            self.capacity_bytes += size

    def sync_everything(self) -> None:
        directories = [self._root]
        while directories:
            directory = directories.pop()
            directory.sync()
            for entry in directory.names.values():
                if isinstance(entry, _Directory):
                    directories.append(entry)
                else:
                    entry.sync()

    def create(self, path: str) -> SimulatedFile:
        self.step("create", path)
        parent, name = self._parent(path)
        if name in parent.names:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        inode = _Inode(modified_ms=self.now_ms)
        parent.change({name: inode})
        return SimulatedFile(self, path, inode, True)

    def open(self, path: str, *, writable: bool = True) -> SimulatedFile:
        return SimulatedFile(self, path, self._inode(path), writable)

    def exists(self, path: str) -> bool:
        try:
            self._entry(path)
        except FileNotFoundError:
            return False
        return True

    def size(self, path: str) -> int:
        return len(self._inode(path).content)

    def modified_ms(self, path: str) -> int:
        return self._inode(path).modified_ms

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._inode(path).modified_ms = modified_ms

    def device(self, path: str) -> int:
        return _DEVICE

    def list_directory(self, path: str) -> list[tuple[str, bool]]:
        return sorted(
            (name, isinstance(entry, _Directory)) for name, entry in self._directory(path).names.items()
        )

    def make_directory(self, path: str) -> None:
        self.step("make_directory", path)
        parent, name = self._parent(path)
        if name in parent.names:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        parent.change({name: _Directory()})

    def remove_directory(self, path: str) -> None:
        self.step("remove_directory", path)
        if self._directory(path).names:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        parent, name = self._parent(path)
        parent.change({name: None})

    def rename(self, source: str, target: str) -> None:
        self.step("rename", source)
        parent, name = self._parent(source)
        assert os.path.dirname(source) == os.path.dirname(target), "nothing is renamed across directories"
        parent.change({name: None, os.path.basename(target): self._entry(source)})

    def remove(self, path: str) -> None:
        self.step("remove", path)
        inode = self._inode(path)
        parent, name = self._parent(path)
        parent.change({name: None})
        self.give_space(len(inode.content))

    def sync_directory(self, path: str) -> None:
        self.step("sync_directory", path)
        self._directory(path).sync()

    def filesystem_sync(self, path: str) -> FilesystemSync | None:
        return SimulatedFilesystemSync(self) if self.has_filesystem_sync else None

    def lock(self, path: str) -> SimulatedLock:
        if path in self.locked:
            raise DirectoryLocked(errno.EAGAIN, "another broker uses this directory", path)
        if not self.exists(path):
            self.create(path).close()
        self.locked.add(path)
        return SimulatedLock(self, path)

    def is_locked(self, path: str) -> bool:
        return path in self.locked

    def space(self, path: str) -> tuple[int, int]:
        usable = self.capacity_bytes if self.capacity_bytes is not None else 1 << 40
        return 1 << 40, usable

    def _entry(self, path: str) -> _Inode | _Directory:
        entry: _Inode | _Directory = self._root
        for part in path.split("/"):
            if not part:
                continue
            if not isinstance(entry, _Directory) or part not in entry.names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            entry = entry.names[part]
        return entry

    def _inode(self, path: str) -> _Inode:
        entry = self._entry(path)
        if isinstance(entry, _Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return entry

    def _directory(self, path: str) -> _Directory:
        entry = self._entry(path)
        if not isinstance(entry, _Directory):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return entry

    def _parent(self, path: str) -> tuple[_Directory, str]:
        return self._directory(os.path.dirname(path)), os.path.basename(path)
