"""Damaged requests of every API and version: an error or a closed connection, and no partial append."""

from __future__ import annotations

import random

import pytest

from hostile.ground import Ground
from hostile.mutations import mutated, sound_requests
from hostile.peer import framed
from hostile.volley import Fate, Shot, fire
from ottla.protocol import apis
from ottla.protocol.headers import decode_response
from ottla.protocol.messages.produce import ProduceResponse

MEMORY_PEAK_MIB_MAX = 120
TOPIC = "fuzzed"
RECORDS_PER_BATCH = 2

_FETCH_PATIENCE_SECONDS = 0.5  # a damaged Fetch may ask to wait for days


@pytest.fixture(scope="module", autouse=True)
def topics(ground_of_each_kernel: Ground) -> None:
    with ground_of_each_kernel.peer() as peer:
        peer.create_topic("decent")
        peer.create_topic(TOPIC)
        peer.create_topic("golden")  # what the recorded requests of real clients speak of


@pytest.mark.parametrize("seed", range(2))
def test_damaged_requests_never_hurt(ground_of_each_kernel: Ground, seed: int) -> None:
    _attack(ground_of_each_kernel, random.Random(seed), rounds=8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_more_damaged_requests_never_hurt(ground_of_each_kernel: Ground, seed: int) -> None:
    _attack(ground_of_each_kernel, random.Random(seed), rounds=10)


def _attack(ground: Ground, rng: random.Random, rounds: int) -> None:
    before = ground.check_log(TOPIC)
    shots = [
        Shot(
            f"{api.name} v{version} {frame.hex()}",
            framed(frame),
            _FETCH_PATIENCE_SECONDS if frame[:2] == b"\0\1" else 10,
        )
        for _ in range(rounds)
        for api, version, sound in sound_requests(rng, TOPIC)
        for frame in (mutated(rng, sound),)
    ]
    fates = fire(ground.address, shots)
    silent = [shot for shot in fates if shot.fate is Fate.SILENT]
    assert [shot.label for shot in silent if shot.patience_seconds > _FETCH_PATIENCE_SECONDS] == []
    closed = [shot.port for shot in fates if shot.fate is Fate.CLOSED]
    ground.check_closed(closed, maybe=[shot.port for shot in silent])
    acknowledged = sum(map(_records_acknowledged, fates))
    unanswered = RECORDS_PER_BATCH * sum(  # acks=0
        shot.fate is Fate.ANSWERED and not shot.answers for shot in fates
    )
    assert before + acknowledged <= ground.check_log(TOPIC) <= before + acknowledged + unanswered
    assert ground.memory_peak_mib() < MEMORY_PEAK_MIB_MAX
    ground.check_serves("decent")


def _records_acknowledged(shot: Shot) -> int:
    """How many records of ours the broker says it has taken into the topic."""
    api_key, version = int.from_bytes(shot.payload[4:6], "big"), int.from_bytes(shot.payload[6:8], "big")
    if api_key != apis.PRODUCE.key or version < 3 or shot.fate is not Fate.ANSWERED or not shot.answers:
        return 0
    _, response = decode_response(apis.PRODUCE, version, shot.answers[0])
    assert isinstance(response, ProduceResponse)
    taken = [
        partition
        for topic in response.responses
        for partition in topic.partition_responses
        if topic.name == TOPIC and partition.error_code == 0
    ]
    return RECORDS_PER_BATCH * len(taken)
