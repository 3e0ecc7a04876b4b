"""What a decision gives: records for the log, and answers for whoever waits."""

from __future__ import annotations

from ottla.coordinator.group_members import Reply
from ottla.coordinator.state_log import StateRecord
from ottla.model.values import dataclass, field
from ottla.protocol.fields import Message


@dataclass(slots=True)
class Outcome:
    records: list[StateRecord] = field(default_factory=list)
    answers: list[tuple[Reply, Message]] = field(default_factory=list)
    tells_the_log: bool = False
    """The answers show what was written before: they leave when that is durable, as after records of our own.
    """

    def answer(self, reply: Reply, response: Message) -> None:
        self.answers.append((reply, response))
