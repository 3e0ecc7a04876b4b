"""What an error of the file system means: trouble that passes, or files that cannot be trusted any more."""

from __future__ import annotations

import errno

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_PASSING = _FULL | {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR}


def is_full_disk(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in _FULL


def is_passing(error: BaseException) -> bool:
    """Whether the same may work later, when there is room, memory or a descriptor again."""
    return isinstance(error, OSError) and error.errno in _PASSING
