# mypy: disable-error-code="untyped-decorator,valid-type,name-defined,misc,no-any-return,no-redef"
"""The cleaner's loops over the records of a batch: one source, compiled or not, under the rules of `kernel`.

The map of keys is a table of slots in one buffer of unsigned 64-bit words: two words of a key's hash, and
the largest offset that the key was seen at plus one, 0 in an empty slot. Keys themselves are not kept, so two
keys of one hash would be taken for one, and a record lost. The hash is therefore SipHash-2-4 with 128 bits
under a secret of the pass: nobody can make keys that collide, and by accident it does not happen.
"""

from __future__ import annotations

from typing import Any

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if not cython.compiled:
    from ottla.records.kernel import (
        Long,
        Octets,
        Room,
        put_varint,
        record_at,
        start_of,
        sum_fits,
        varint,
        varlong,
        zigzag_size,
    )

    Word = int
    Slots = memoryview
else:
    from cython.cimports.libc.string import memcpy
    from cython.cimports.ottla.records._kernel import (
        Long,
        Octets,
        Room,
        put_varint,
        record_at,
        start_of,
        sum_fits,
        varint,
        varlong,
        zigzag_size,
    )

    Word = cython.typedef(cython.ulonglong)
    Slots = cython.typedef(cython.pointer[cython.ulonglong])

WORDS_PER_SLOT = 3
WORDS = cython.declare(cython.ulonglong, WORDS_PER_SLOT)

ALL_BITS = cython.declare(cython.ulonglong, 0xFFFF_FFFF_FFFF_FFFF)
SIP_0 = cython.declare(cython.ulonglong, 0x736F_6D65_7073_6575)  # the four constants of SipHash
SIP_1 = cython.declare(cython.ulonglong, 0x646F_7261_6E64_6F6D)
SIP_2 = cython.declare(cython.ulonglong, 0x6C79_6765_6E65_7261)
SIP_3 = cython.declare(cython.ulonglong, 0x7465_6462_7974_6573)
INT64_MAX = cython.declare(cython.longlong, 0x7FFF_FFFF_FFFF_FFFF)
INT64_MIN = cython.declare(cython.longlong, ~0x7FFF_FFFF_FFFF_FFFF)
NO_TIMESTAMP = cython.declare(cython.longlong, -1)
RECORD_GROWTH = cython.declare(cython.longlong, 15)  # a longer timestamp delta, and a longer size for it


def is_compiled() -> bool:
    return bool(cython.compiled)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _rotated(value: Word, bits: cython.int) -> Word:
    return ((value << bits) | (value >> (64 - bits))) & ALL_BITS


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _mixed(v0: Word, v1: Word, v2: Word, v3: Word, rounds: cython.int) -> tuple[Word, Word, Word, Word]:
    """SipRound, `rounds` times."""
    while rounds > 0:
        v0 = (v0 + v1) & ALL_BITS
        v1 = _rotated(v1, 13) ^ v0
        v0 = _rotated(v0, 32)
        v2 = (v2 + v3) & ALL_BITS
        v3 = _rotated(v3, 16) ^ v2
        v0 = (v0 + v3) & ALL_BITS
        v3 = _rotated(v3, 21) ^ v0
        v2 = (v2 + v1) & ALL_BITS
        v1 = _rotated(v1, 17) ^ v2
        v2 = _rotated(v2, 32)
        rounds -= 1
    return v0, v1, v2, v3


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _word(p: Octets, pos: Long, size: Long) -> Word:
    """Up to eight bytes, the first one lowest."""
    value: Word = 0
    byte: Word
    while size > 0:
        size -= 1
        byte = p[pos + size]
        value = value << 8 | byte
    return value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _hashed(p: Octets, pos: Long, size: Long, low: Word, high: Word) -> tuple[Word, Word]:
    """SipHash-2-4 of 128 bits under the key (low, high); `size` bytes from `pos` are there."""
    last: Word = size & 0xFF
    word: Word
    v0: Word = low ^ SIP_0
    v1: Word = high ^ SIP_1 ^ 0xEE
    v2: Word = low ^ SIP_2
    v3: Word = high ^ SIP_3
    first: Word
    while size >= 8:
        word = _word(p, pos, 8)
        v0, v1, v2, v3 = _mixed(v0, v1, v2, v3 ^ word, 2)
        v0 ^= word
        pos += 8
        size -= 8
    word = _word(p, pos, size) | last << 56
    v0, v1, v2, v3 = _mixed(v0, v1, v2, v3 ^ word, 2)
    v0, v1, v2, v3 = _mixed(v0 ^ word, v1, v2 ^ 0xEE, v3, 4)
    first = v0 ^ v1 ^ v2 ^ v3
    v0, v1, v2, v3 = _mixed(v0, v1 ^ 0xDD, v2, v3, 4)
    return first, v0 ^ v1 ^ v2 ^ v3


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _within(delta: Long, last_delta: Long, base_offset: Long) -> cython.bint:
    """Whether a record's offset is one of its batch: another one would count for records it does not know."""
    return 0 <= delta <= last_delta and base_offset >= 0 and sum_fits(base_offset, delta)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _slot_of(table: Slots, slots: Word, first: Word, second: Word) -> Word:
    """Where in `table` the key with this hash is, or the empty slot where it belongs; one must be empty."""
    at: Word = first % slots * WORDS
    while table[at + 2] != 0 and (table[at] != first or table[at + 1] != second):
        at += WORDS
        if at == slots * WORDS:
            at = 0
    return at


def key_hash(key: Any, low: Word, high: Word) -> tuple[int, int]:
    """The hash of one key, for the test against the reference vectors."""
    data: bytes = bytes(key) + b"\0"  # never empty, so that it has a first byte
    view: cython.const[cython.uchar][::1] = memoryview(data)
    p: Octets = cython.address(view[0]) if cython.compiled else view
    return _hashed(p, 0, view.shape[0] - 1, low, high)


def map_keys(
    data: Any,
    count: Long,
    base_offset: Long,
    last_delta: Long,
    start_offset: Long,
    table: Any,
    free: Long,
    low: Word,
    high: Word,
) -> tuple[int, int, int, int]:
    """Puts the keys of records from `start_offset` on into `table`, which takes `free` more of them.

    (records read, offset of the last one or -1, keys added, where a fault is or -1). Fewer records than
    `count` without a fault: the next one has a key that finds no room.
    """
    view: cython.const[cython.uchar][::1] = memoryview(data)
    words: cython.ulonglong[::1] = table
    end: Long = view.shape[0]
    slots: Word = words.shape[0] // WORDS_PER_SLOT
    index: Long = 0
    reached: Long = -1
    added: Long = 0
    pos: Long = 0
    after: Long
    fault: Long = -1
    offset: Long
    key_at: Long
    key_size: Long
    first: Word
    second: Word
    at: Word
    place: Word
    if end == 0:
        return 0, -1, 0, (0 if count > 0 else -1)
    p: Octets = cython.address(view[0]) if cython.compiled else view
    t: Slots = cython.address(words[0]) if cython.compiled else words
    with cython.nogil:
        while index < count:
            after, fault, offset, key_at, key_size, _, _, _, _ = record_at(p, pos, end)
            if after < 0 or not _within(offset, last_delta, base_offset):
                fault = fault if after < 0 else pos
                break
            fault = -1
            offset = base_offset + offset
            if key_size >= 0 and offset >= start_offset:
                first, second = _hashed(p, key_at, key_size, low, high)
                at = _slot_of(t, slots, first, second)
                if t[at + 2] == 0:
                    if added == free:
                        break
                    t[at] = first
                    t[at + 1] = second
                    added += 1
                place = offset + 1
                if place > t[at + 2]:
                    t[at + 2] = place
            reached = offset
            pos = after
            index += 1
    return index, reached, added, fault


def choose_records(
    data: Any,
    count: Long,
    base_offset: Long,
    last_delta: Long,
    table: Any,
    latest_offset: Long,
    keep_tombstones: cython.bint,
    low: Word,
    high: Word,
    keep: Any,
) -> tuple[int, int, int, int]:
    """Which records stay: `keep` gets a 1 or 0 for each; records behind `latest_offset` all stay.

    (kept, tombstones among them, records that go because they have no key, where a fault is or -1).
    """
    view: cython.const[cython.uchar][::1] = memoryview(data)
    words: cython.ulonglong[::1] = table
    chosen: cython.uchar[::1] = memoryview(keep)
    end: Long = view.shape[0]
    slots: Word = words.shape[0] // WORDS_PER_SLOT
    index: Long = 0
    kept: Long = 0
    tombstones: Long = 0
    keyless: Long = 0
    pos: Long = 0
    after: Long
    fault: Long = -1
    offset: Long
    key_at: Long
    key_size: Long
    value_size: Long
    first: Word
    second: Word
    place: Word
    stays: cython.bint
    if end == 0 or count <= 0 or chosen.shape[0] < count:
        return 0, 0, 0, (0 if count > 0 or end > 0 else -1)
    p: Octets = cython.address(view[0]) if cython.compiled else view
    c: Room = cython.address(chosen[0]) if cython.compiled else chosen
    t: Slots = cython.address(words[0]) if cython.compiled else words
    with cython.nogil:
        while index < count:
            after, fault, offset, key_at, key_size, _, value_size, _, _ = record_at(p, pos, end)
            if after < 0 or not _within(offset, last_delta, base_offset):
                fault = fault if after < 0 else pos
                break
            fault = -1
            offset = base_offset + offset
            if offset > latest_offset:
                stays = True
            elif key_size < 0:
                stays = False
                keyless += 1
            else:
                first, second = _hashed(p, key_at, key_size, low, high)
                place = offset + 1
                stays = place >= t[_slot_of(t, slots, first, second) + 2]
                stays = stays and (value_size >= 0 or keep_tombstones)
            c[index] = stays
            if stays:
                kept += 1
                tombstones += value_size < 0
            pos = after
            index += 1
    if fault < 0 and pos != end:
        fault = pos
    return kept, tombstones, keyless, fault


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _difference_fits(value: Long, base: Long) -> cython.bint:
    """Whether value - base is an int64 (compiled, the difference itself must not be tried)."""
    if base >= 0:
        return value >= INT64_MIN + base
    return value <= INT64_MAX + base


def copy_records(
    data: Any, count: Long, keep: Any, kept: Long, base_timestamp: Long, new_base: Any
) -> tuple[bytearray, int, int, int]:
    """The records that `choose_records` kept, with their timestamps counted from `new_base`.

    None stands for the timestamp of the first of them. Everything but the timestamp delta stays as it is.
    (bytes, base timestamp, largest timestamp, where a fault is or -1).
    """
    view: cython.const[cython.uchar][::1] = memoryview(data)
    chosen: cython.const[cython.uchar][::1] = memoryview(keep)
    end: Long = view.shape[0]
    index: Long = 0
    pos: Long = 0
    written: Long = 0
    largest: Long = NO_TIMESTAMP
    base: Long = NO_TIMESTAMP if new_base is None else new_base
    has_base: cython.bint = new_base is not None
    body_at: Long
    rest_at: Long
    after: Long
    size: Long
    timestamp: Long
    if end == 0 or chosen.shape[0] < count:
        return bytearray(), base, largest, 0
    out: bytearray = bytearray(end + kept * RECORD_GROWTH)
    p: Octets = cython.address(view[0]) if cython.compiled else view
    room: Room = start_of(out)
    while index < count:
        size, body_at = varint(p, pos, end)
        if body_at < 0 or size < 1 or size > end - body_at:
            return out, base, largest, pos
        after = body_at + size
        timestamp, rest_at = varlong(p, body_at + 1, after)
        if rest_at < 0 or not sum_fits(base_timestamp, timestamp):
            return out, base, largest, pos
        if chosen[index]:
            timestamp += base_timestamp
            if not has_base:
                base = timestamp
                has_base = True
            if not _difference_fits(timestamp, base):
                return out, base, largest, pos
            largest = timestamp if timestamp > largest else largest
            timestamp -= base
            size = 1 + zigzag_size(timestamp) + after - rest_at
            written = put_varint(room, written, size)
            room[written] = p[body_at]
            written = put_varint(room, written + 1, timestamp)
            size = after - rest_at
            if cython.compiled:
                memcpy(room + written, p + rest_at, size)  # type: ignore[operator]
            else:
                room[written : written + size] = p[rest_at:after]
            written += size
        pos = after
        index += 1
    del out[written:]
    return out, base, largest, -1
