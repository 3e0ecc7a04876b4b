"""Where data of this user's brokers and services is kept unless another place is given."""

from __future__ import annotations

import os


def data_home() -> str:
    """OTTLA_DATA, else a folder of the user's (XDG), so that `down` finds what `up` started elsewhere."""
    given = os.environ.get("OTTLA_DATA")
    if given:
        return given
    share = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(share, "ottla")
