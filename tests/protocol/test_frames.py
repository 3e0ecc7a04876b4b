"""A stream cut anywhere gives the same frames, in memory bound by what has arrived."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.errors import Malformed
from ottla.model.limits import RECEIVE_BYTES
from ottla.protocol.apis import APIS
from ottla.protocol.codec import decode
from ottla.protocol.frames import FrameCutter
from ottla.protocol.headers import decode_request_header, encode_request
from protocol.random_messages import declared_messages, random_message

FRAME_BYTES_MAX = 4 * RECEIVE_BYTES


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


def receive(cutter: FrameCutter, stream: bytes, receive_bytes: int) -> list[bytes]:
    """As a socket would: into `wanted()` where there is one."""
    frames = []
    while stream:
        wanted = cutter.wanted()
        if wanted is None:
            frames += cutter.feed(stream[:receive_bytes])
            stream = stream[receive_bytes:]
        else:
            count = min(len(wanted), len(stream), receive_bytes)
            assert count > 0
            wanted[:count] = stream[:count]
            stream = stream[count:]
            frames += cutter.received(count)
    return [bytes(frame) for frame in frames]


def test_frames_of_every_message_cut_at_every_byte_decode_the_same() -> None:
    for message_type, version in declared_messages():
        api = next(api for api in APIS.values() if message_type in (api.request, api.response))
        if message_type is api.response:
            continue
        message = random_message(random.Random(version), message_type, version)
        chunks = encode_request(api, version, version, "cut", message)
        stream = b"".join(chunk for chunk in chunks if isinstance(chunk, bytes))
        for cut in range(len(stream)):
            cutter = FrameCutter()
            frames = cutter.feed(stream[:cut]) + cutter.feed(stream[cut:])
            assert len(frames) == 1
            header, position = decode_request_header(frames[0])
            assert header.correlation_id == version
            assert decode(message_type, version, frames[0], position)[0] == message


def test_two_frames_cut_at_every_byte_are_two_frames() -> None:
    frames = [b"first", b"", b"the third one"]
    stream = framed(*frames)
    for cut in range(len(stream) + 1):
        for second_cut in range(cut, len(stream) + 1):
            cutter = FrameCutter()
            cuts = (stream[:cut], stream[cut:second_cut], stream[second_cut:])
            assert [bytes(frame) for part in cuts for frame in cutter.feed(part)] == frames
            assert cutter.pending_bytes == 0


@given(
    sizes=st.lists(
        st.one_of(st.integers(0, 300), st.integers(RECEIVE_BYTES - 8, FRAME_BYTES_MAX)), max_size=4
    ),
    receive_bytes=st.one_of(st.integers(1, 7), st.integers(1_000, 3 * RECEIVE_BYTES)),
    seed=st.integers(0, 1_000),
)
def test_any_stream_received_in_any_portions_gives_its_frames(
    sizes: list[int], receive_bytes: int, seed: int
) -> None:
    if receive_bytes < 100:
        sizes = [min(size, 300) for size in sizes]
    frames = [random.Random(seed).randbytes(size) for size in sizes]
    assert receive(FrameCutter(FRAME_BYTES_MAX), framed(*frames), receive_bytes) == frames
    fed = FrameCutter(FRAME_BYTES_MAX)
    stream = framed(*frames)
    portions = [stream[at : at + receive_bytes] for at in range(0, len(stream), receive_bytes)]
    assert [bytes(frame) for portion in portions for frame in fed.feed(portion)] == frames


def test_whole_frames_are_views_of_what_was_received() -> None:
    data = framed(b"one", b"two")
    assert [frame.obj for frame in FrameCutter().feed(data)] == [data, data]


def test_a_large_frame_is_received_into_its_own_buffer_once() -> None:
    cutter = FrameCutter()
    assert cutter.wanted() is None
    frame = random.Random(1).randbytes(10 * RECEIVE_BYTES)
    assert receive(cutter, framed(frame), RECEIVE_BYTES) == [frame]
    assert cutter.wanted() is None
    assert cutter.pending_bytes == 0


def test_a_length_alone_holds_no_memory_to_speak_of() -> None:
    cutter = FrameCutter()
    assert cutter.feed(struct.pack(">i", 100 << 20) + b"start") == []
    assert cutter.pending_bytes <= RECEIVE_BYTES + 5


def test_what_is_held_stays_below_twice_what_arrived() -> None:
    cutter = FrameCutter()
    cutter.feed(struct.pack(">i", 64 * RECEIVE_BYTES))
    arrived = 0
    while arrived < 64 * RECEIVE_BYTES - 1_000:
        wanted = cutter.wanted()
        count = 1_000 if wanted is None else min(len(wanted), 1_000)
        assert (cutter.feed(bytes(count)) if wanted is None else cutter.received(count)) == []
        arrived += count
        assert cutter.pending_bytes <= 2 * arrived + RECEIVE_BYTES


def test_the_beginning_of_a_large_frame_is_held_as_it_came() -> None:
    cutter = FrameCutter()
    cutter.feed(struct.pack(">i", 64 * RECEIVE_BYTES) + bytes(100))
    assert cutter.wanted() is None
    assert cutter.pending_bytes == 104


def test_a_frame_of_the_greatest_length_passes_and_one_byte_more_does_not() -> None:
    assert receive(FrameCutter(1_000), framed(bytes(1_000)), 4_096) == [bytes(1_000)]
    with pytest.raises(Malformed, match="a frame of 1001 bytes: 0 to 1000 are accepted"):
        FrameCutter(1_000).feed(struct.pack(">i", 1_001))


def test_the_greatest_length_can_change_between_frames() -> None:
    cutter = FrameCutter(10)
    cutter.frame_bytes_max = 20
    assert cutter.feed(framed(bytes(20))) == [bytes(20)]


def test_frames_before_a_broken_length_are_lost_with_the_connection() -> None:
    with pytest.raises(Malformed, match="a frame of -1 bytes"):
        FrameCutter().feed(framed(b"fine") + struct.pack(">i", -1))


@pytest.mark.parametrize(
    ("start", "hint"),
    [
        (b"\x16\x03\x01\x02\x00\x01", "TLS"),
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"POST /topics", "HTTP"),
        (b"PRI * HTTP/2.0", "HTTP"),
    ],
)
def test_other_protocols_are_recognised(start: bytes, hint: str) -> None:
    with pytest.raises(Malformed, match=f"seems to speak {hint}"):
        FrameCutter().feed(start)


@pytest.mark.parametrize("size", [1, 0x7F, 0x80, 0xFF, 0x100, 8 * 1024, 8 * 1024 + 1, RECEIVE_BYTES])
def test_bytes_that_are_one_whole_frame_are_taken_as_one(size: int) -> None:
    frame = random.Random(size).randbytes(size)
    for copies in (False, True):
        taken = FrameCutter(FRAME_BYTES_MAX, copies=copies).one_frame(framed(frame))
        assert taken == frame
        assert isinstance(taken, bytes) == (copies and size <= 8 * 1024)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\0", b"\0\0\0\0", framed(b""), framed(b"ab")[:-1], framed(b"a", b"b"), framed(b"ab") + b"c"),
        *(b"\x80\0\0\1a", b"\xff\xff\xff\xffabc", framed(bytes(FRAME_BYTES_MAX + 1))),
    ],
)
def test_anything_else_is_not_one_whole_frame(data: bytes) -> None:
    for copies in (False, True):
        assert FrameCutter(FRAME_BYTES_MAX, copies=copies).one_frame(data) is None
