"""Bytes that are no requests: the connection is closed with one line in the log, and nothing else happens."""

from __future__ import annotations

import random
import struct

import pytest

from hostile.ground import MIB, Ground
from hostile.mutations import broken_lengths, short_frames, unknown_requests
from hostile.peer import framed, request_bytes
from hostile.volley import Fate, Shot, fire
from ottla.protocol import apis
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.metadata import MetadataRequest


@pytest.fixture(scope="module", autouse=True)
def topic(ground: Ground) -> str:
    with ground.peer() as peer:
        peer.create_topic("decent")
    return "decent"


def test_openings_that_are_no_frames_close_the_connection_and_say_what_they_look_like(
    ground: Ground, topic: str
) -> None:
    shots = [Shot(label, payload) for label, payload in broken_lengths(random.Random(1))]
    fates = fire(ground.address, shots)
    assert [shot.label for shot in fates if shot.fate is not Fate.CLOSED] == []
    reasons = ground.check_closed([shot.port for shot in fates])
    assert sum("HTTP" in reason for reason in reasons) == 3
    assert sum("TLS" in reason for reason in reasons) == 1
    ground.check_serves(topic)


def test_frames_that_end_within_their_header_close_the_connection(ground: Ground, topic: str) -> None:
    fates = fire(ground.address, [Shot(label, payload) for label, payload in short_frames()])
    assert [shot.label for shot in fates if shot.fate is not Fate.CLOSED] == []
    ground.check_closed([shot.port for shot in fates])
    ground.check_serves(topic)


def test_apis_and_versions_that_are_not_served_close_the_connection_or_get_an_error(
    ground: Ground, topic: str
) -> None:
    cases = unknown_requests(random.Random(2))
    fates = fire(ground.address, [Shot(label, framed(frame)) for label, frame in cases])
    assert [shot.label for shot in fates if shot.fate is Fate.SILENT] == []
    ground.check_closed([shot.port for shot in fates if shot.fate is Fate.CLOSED])
    answered = {shot.label.split()[0] for shot in fates if shot.fate is Fate.ANSWERED}
    # KIP-511: the client may ask again in a version we have. Produce 0 to 2 is refused in its own format.
    assert answered <= {"ApiVersions", "Produce"}
    ground.check_serves(topic)


def test_random_bytes_behind_a_sound_length_never_hurt(ground: Ground, topic: str) -> None:
    rng = random.Random(3)
    shots = [Shot(f"random {at}", framed(rng.randbytes(rng.randint(0, 400)))) for at in range(500)]
    fates = fire(ground.address, shots)
    assert [shot.label for shot in fates if shot.fate is Fate.SILENT] == []
    ground.check_closed([shot.port for shot in fates if shot.fate is Fate.CLOSED])
    ground.check_serves(topic)


def test_random_streams_never_hurt(ground: Ground, topic: str) -> None:
    rng = random.Random(4)
    streams = [rng.randbytes(rng.randint(4, 4_000)) for _ in range(500)]
    refused = [each for each in streams if not 0 <= struct.unpack(">i", each[:4])[0] <= 100 * MIB]
    fates = fire(ground.address, [Shot(f"stream {at}", each) for at, each in enumerate(refused)])
    assert [shot.label for shot in fates if shot.fate is not Fate.CLOSED] == []
    ground.check_closed([shot.port for shot in fates])
    ground.check_serves(topic)


@pytest.mark.parametrize("count", [2**31 - 1, 2**31 - 2, 10**9, 10**6 + 1, -2, -(2**31)])
def test_counts_beyond_the_bytes_of_the_frame_cost_no_memory(ground: Ground, topic: str, count: int) -> None:
    ground.forget_memory_peak()
    before = ground.memory_peak_mib()
    shots = []
    for api, version in (
        (apis.METADATA, 1),
        (apis.FETCH, 4),
        (apis.LIST_OFFSETS, 1),
        (apis.CREATE_TOPICS, 2),
    ):
        head = struct.pack(">hhih", api.key, version, 9, -1)
        fixed = {apis.FETCH: struct.pack(">iiiib", -1, 0, 0, 1 << 20, 0), apis.LIST_OFFSETS: bytes(4)}
        body = fixed.get(api, b"") + struct.pack(">i", count) + bytes(50)
        shots.append(Shot(f"{api.name} with {count}", framed(head + body)))
    fates = fire(ground.address, shots)
    assert [shot.label for shot in fates if shot.fate is not Fate.CLOSED] == []
    ground.check_closed([shot.port for shot in fates])
    assert ground.memory_peak_mib() < before + 5
    ground.check_serves(topic)


def test_what_a_peer_says_cannot_forge_lines_of_the_log(ground: Ground, topic: str) -> None:
    forged = "me\n2000-01-01 00:00:00,000 ERROR   ottla: the disk is on fire\r\x1b[31m"
    good = request_bytes(apis.API_VERSIONS, 0, ApiVersionsRequest(), client_id=forged)
    unknown = bytearray(request_bytes(apis.METADATA, 1, MetadataRequest(topics=None), client_id=forged))
    unknown[4:6] = struct.pack(">h", 999)
    broken = request_bytes(apis.METADATA, 1, MetadataRequest(topics=None), client_id=forged)
    broken = framed(broken[4:-2])
    fates = fire(ground.address, [Shot("unknown", good + bytes(unknown)), Shot("broken", good + broken)])
    assert [shot.fate for shot in fates] == [Fate.CLOSED] * 2
    for reason in ground.check_closed([shot.port for shot in fates]):
        assert "\x1b" not in reason
    ground.check_serves(topic)
