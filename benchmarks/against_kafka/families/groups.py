"""Groups: commits per second, and how long a rebalance of many members takes when all come at once."""

from __future__ import annotations

import time
import uuid

from benchmarks.against_kafka.bench import Bench
from benchmarks.against_kafka.rows import Row, Trial
from benchmarks.peer import Peer
from benchmarks.questions import offset_commit
from benchmarks.raw_load import Figures, Shape

from ottla.protocol import apis
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_MEMBERS = 100
_SESSION_MS = 45_000  # the default of consumers
_COORDINATOR_SECONDS_MAX = 60


def _commits(shape: Shape, target: float | None = None, *, quick: bool = False) -> Trial:
    def run(bench: Bench) -> Figures:
        group = group_of(bench.address)
        with bench.topic() as topic:
            return bench.ask(offset_commit(group), topic, shape)

    name = f"OffsetCommit, {shape.connections} x {shape.in_flight} in flight"
    return Trial((Row(name, "/s", "per_second", target=target),), run, quick)


def group_of(address: str) -> str:
    """The name of one whose coordinator is there and has read its log."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    peer = Peer(address)
    deadline = time.monotonic() + _COORDINATOR_SECONDS_MAX
    place, state = FindCoordinatorRequest(coordinator_keys=[name]), DescribeGroupsRequest([name])
    while (
        peer.call(apis.FIND_COORDINATOR, 4, place).coordinators[0].error_code
        or peer.call(apis.DESCRIBE_GROUPS, 5, state).groups[0].error_code
    ):
        assert time.monotonic() < deadline, "the group has no coordinator"
        time.sleep(0.1)
    peer.socket.close()
    return name


def _rebalance(bench: Bench) -> Figures:
    """A settled group, of which all members say that they want something else."""
    group = group_of(bench.address)
    peers = [bench.peer() for _ in range(_MEMBERS)]
    for peer in peers:
        peer.socket.settimeout(120)
    members = _generation(peers, group, [""] * _MEMBERS, b"once")
    began = time.perf_counter()
    _generation(peers, group, members, b"again")
    elapsed = time.perf_counter() - began
    leaving = LeaveGroupRequest(group, members=[MemberIdentity(each) for each in members])
    peers[0].call(apis.LEAVE_GROUP, 4, leaving)
    for peer in peers:
        peer.socket.close()
    return {"seconds": elapsed}


def _generation(peers: list[Peer], group: str, members: list[str], wanted: bytes) -> list[str]:
    """All join and are given their share. The members' ids."""
    protocols = [JoinGroupRequestProtocol("range", wanted)]
    for peer, member in zip(peers, members, strict=True):
        request = JoinGroupRequest(group, _SESSION_MS, _SESSION_MS, member, None, "consumer", protocols)
        peer.send(apis.JOIN_GROUP, 3, request)
    joined = [peer.receive(apis.JOIN_GROUP, 3) for peer in peers]
    assert len({each.generation_id for each in joined}) == 1, "not one generation"
    for peer, answer in zip(peers, joined, strict=True):
        given = [SyncGroupRequestAssignment(each.member_id, b"share") for each in answer.members]
        sync = SyncGroupRequest(group, answer.generation_id, answer.member_id, assignments=given)
        peer.send(apis.SYNC_GROUP, 3, sync)
    for peer in peers:
        answer = peer.receive(apis.SYNC_GROUP, 3)
        assert answer.error_code == 0, answer
    return [each.member_id for each in joined]


COMMITS = (_commits(Shape(16), 2, quick=True), _commits(Shape(16, 4), 2))
TRIALS = (
    *COMMITS,
    Trial((Row(f"rebalance of {_MEMBERS} members", "s", "seconds", lower_is_better=True),), _rebalance),
)
