"""How a broker ends when it cannot go on, as cause and cure."""

from __future__ import annotations

from errno import EADDRINUSE

from ottla.log.directory import NotStoppedCleanly
from ottla.log.disk_errors import is_full_disk
from ottla.model.errors import Refused


class BrokerFailed(RuntimeError):
    """The broker cannot go on; what it acknowledged is safe. The message says what a person must do."""


class PortTaken(BrokerFailed):
    """Somebody else listens there."""

    def __init__(self, port: int, text: str, cure: str) -> None:
        super().__init__(f"{text}; {cure}")
        self.port = port
        self.cure = cure


def unable_to_listen(port: int, text: str, cure: str, error: OSError) -> BrokerFailed:
    text = f"{text}: {error.strerror}"
    return PortTaken(port, text, cure) if error.errno == EADDRINUSE else BrokerFailed(f"{text}; {cure}")


def require(refusal: Refused | None) -> None:
    """For what a start cannot do without."""
    if refusal is not None:
        raise BrokerFailed(refusal.text)


def ending_of(failure: BaseException) -> BrokerFailed:
    if isinstance(failure, BrokerFailed):
        return failure
    if isinstance(failure, NotStoppedCleanly):
        cause = failure.__cause__
        cure = (
            "make room" if cause is not None and is_full_disk(cause) else "see that its files can be written"
        )
        return BrokerFailed(
            f"not stopped cleanly ({failure}); {cure}, then start again: everything that was acknowledged is "
            "there, and is checked first"
        )
    return BrokerFailed(
        f"the disk did not take what was written ({failure}); check it, then start again: everything that "
        "was acknowledged is there"
    )
