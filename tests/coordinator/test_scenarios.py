"""Stories of groups, one per file in scenarios/: what is asked (`> …`), below it what is answered and logged.

With OTTLA_REWRITE=1 the answers in the files are replaced by those of today, to be read before they are kept.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.bench import Bench, subscription
from ottla.coordinator.group_config import GroupConfig
from ottla.coordinator.group_records import GroupRecord, OffsetRecord, read_record
from ottla.coordinator.state_log import StateRecord
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.fields import Message
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupResponse

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=[path.stem for path in SCENARIOS])
def test_scenario(path: Path) -> None:
    told = path.read_text()
    played = Story().play(told)
    if os.environ.get("OTTLA_REWRITE"):
        path.write_text(played)
    assert played == told


class Story:
    """Plays a file's commands; its other words are `name=value`."""

    def __init__(self) -> None:
        self.bench = Bench()

    def play(self, text: str) -> str:
        """The same text, with the answers that were really given."""
        lines = []
        for line in text.splitlines():
            if line.startswith(">"):
                lines += [line, *(f"    {each}" for each in self._run(line[1:]))]
            elif not line.startswith("    "):
                lines.append(line)
        return "\n".join(lines) + "\n"

    def _run(self, line: str) -> list[str]:
        logged = len(self.bench.log)
        self.bench.answers.clear()
        command, *words = shlex.split(line)
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        run: Callable[[list[str], dict[str, str]], list[str]] = getattr(self, f"_{command}")
        told = run(names, options)
        told += [f"log: {_logged(record)}" for record in self.bench.log[logged:]]
        return told + [f"{name}: {_told(response)}" for name, response in self.bench.answers]

    # -- commands ------------------------------------------------------------------------------------------

    def _settings(self, names: list[str], options: dict[str, str]) -> list[str]:
        self.bench = Bench(GroupConfig(**{name: int(value) for name, value in options.items()}))
        return []

    def _join(self, names: list[str], options: dict[str, str]) -> list[str]:
        """join NAME [MEMBER-ID] [protocols=a,b] [topics=t] [instance=…] [version=…] [type=…] [session=…]"""
        metadata = subscription(*options.get("topics", "t").split(","))
        self.bench.join(
            *names,
            version=int(options.get("version", 9)),
            protocols=dict.fromkeys(options.get("protocols", "range").split(","), metadata),
            protocol_type=options.get("type", "consumer"),
            instance_id=options.get("instance"),
            session_timeout_ms=int(options.get("session", 10_000)),
            rebalance_timeout_ms=int(options.get("rebalance", 60_000)),
        )
        return []

    def _sync(self, names: list[str], options: dict[str, str]) -> list[str]:
        """sync NAME MEMBER-ID generation=N [MEMBER-ID=ASSIGNMENT …]"""
        name, member_id = names
        generation = int(options.pop("generation"))
        instance_id, protocol = options.pop("instance", None), options.pop("protocol", None)
        assignments = {member: given.encode() for member, given in options.items()}
        self.bench.sync(name, member_id, generation, assignments, instance_id=instance_id, protocol=protocol)
        return []

    def _heartbeat(self, names: list[str], options: dict[str, str]) -> list[str]:
        code = self.bench.heartbeat(names[0], int(options["generation"]), options.get("instance"))
        return [ErrorCode(code).name]

    def _leave(self, names: list[str], options: dict[str, str]) -> list[str]:
        """leave NAME [MEMBER-ID …] [instance=…]"""
        name, *member_ids = names
        leaving = [MemberIdentity(member_id, options.get("instance")) for member_id in member_ids]
        self.bench.leave(name, *(leaving or [MemberIdentity("", options["instance"])]))
        return []

    def _commit(self, names: list[str], options: dict[str, str]) -> list[str]:
        """commit [MEMBER-ID] generation=N topic/partition=OFFSET …"""
        generation = int(options.pop("generation", -1))
        version, retention_ms = int(options.pop("version", 9)), int(options.pop("retention", -1))
        offsets = {}
        for place, offset in options.items():
            topic, partition = place.split("/")
            offsets[topic, int(partition)] = int(offset)
        code = self.bench.commit(
            offsets, *names, generation=generation, version=version, retention_ms=retention_ms
        )
        return [code.name]

    def _delete(self, names: list[str], options: dict[str, str]) -> list[str]:
        try:
            self.bench.write(self.bench.machine.delete_group(names[0]))
        except Refused as refusal:
            return [refusal.code.name]
        return []

    def _forget(self, names: list[str], options: dict[str, str]) -> list[str]:
        """A topic was deleted."""
        for records in self.bench.machine.forget_topic(names[0]):
            self.bench.write(records)
        return []

    def _time(self, names: list[str], options: dict[str, str]) -> list[str]:
        """time MS: that much of it passes."""
        self.bench.advance(int(names[0].replace("_", "")))
        return []

    def _expire(self, names: list[str], options: dict[str, str]) -> list[str]:
        self.bench.expire()
        return []

    def _restart(self, names: list[str], options: dict[str, str]) -> list[str]:
        self.bench.restart()
        return []

    def _show(self, names: list[str], options: dict[str, str]) -> list[str]:
        group = self.bench.group()
        if group is None:
            return ["no group"]
        told = [
            f"{group.state.value}, generation {group.generation}, protocol {group.protocol_name}, "
            f"leader {group.leader_id}"
        ]
        for member in group.members.values():
            instance = f" instance {member.instance_id}" if member.instance_id else ""
            told.append(f"member {member.id}{instance} has {member.assignment.decode() or 'nothing'}")
        told += [f"offset {topic}/{index} = {at}" for (topic, index), at in self.bench.committed().items()]
        return told


def _told(response: Message) -> str:
    match response:
        case LeaveGroupResponse():
            return ", ".join(
                f"{each.member_id or each.group_instance_id} {ErrorCode(each.error_code).name}"
                for each in response.members
            )
        case JoinGroupResponse() | SyncGroupResponse() if response.error_code != ErrorCode.NONE:
            member_id = getattr(response, "member_id", "")
            return ErrorCode(response.error_code).name + (f" {member_id}" if member_id else "")
        case JoinGroupResponse():
            members = ", ".join(each.member_id for each in response.members)
            return (
                f"{response.member_id} joined generation {response.generation_id}, "
                f"{response.protocol_name}, led by {response.leader}"
                + (f", members {members}" if members else "")
                + (", assignment stays" if response.skip_assignment else "")
            )
        case SyncGroupResponse():
            return f"assigned {bytes(response.assignment).decode() or 'nothing'}"
    raise AssertionError(response)


def _logged(record: StateRecord) -> str:
    read: Any = read_record(record)
    match read:
        case OffsetRecord(key, None):
            return f"no offset {key.topic}/{key.partition} of {key.group}"
        case OffsetRecord(key, value):
            return f"offset {key.topic}/{key.partition} of {key.group} = {value.offset}"
        case GroupRecord(key, None):
            return f"no group {key.group}"
        case GroupRecord(key, value):
            members = ", ".join(f"{each.member_id}={each.assignment.decode()}" for each in value.members)
            return f"group {key.group} generation {value.generation} members {members or 'none'}"
    raise AssertionError(read)
