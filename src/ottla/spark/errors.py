"""What a Spark job is told when it cannot go on: cause and cure in one text, as Spark shows little else."""

from __future__ import annotations


class JobError(Exception):
    """The job must stop; somebody has to change something."""


class InvalidOption(JobError, ValueError):
    """An option of `.format("ottla")` has no such name or value, or contradicts another."""


class DataLoss(JobError):
    """Records that the query was to read are gone."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text}. Some data may have been missed. To go on with what is left, set failOnDataLoss to "
            "false; to begin anew, use a new checkpoint location"
        )


class Superseded(JobError):
    """Another run of the same query has taken over: this one must not write any more."""


class Undecidable(JobError):
    """The transactions of a batch are no longer open: nothing is committed, and the batch comes again."""


class LostTransaction(JobError):
    """A batch was decided, and one of its transactions cannot be committed any more: its records are lost."""
