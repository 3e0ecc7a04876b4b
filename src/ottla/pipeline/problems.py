"""What is wrong with a pipeline's definition: where, what, and what to write instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    file: str
    line: int  # from 1; 0: the file as a whole
    text: str
    cure: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.text}" + (f"; {self.cure}" if self.cure else "")


class PipelineError(Exception):
    """Anything that a user of a pipeline can mend."""

    def __init__(self, text: str, cure: str = "") -> None:
        super().__init__(f"{text}; {cure}" if cure else text)
        self.text = text
        self.cure = cure


class DefinitionError(PipelineError):
    """The definition does not hold; all its problems at once."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)
