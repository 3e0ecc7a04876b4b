"""The `ottla` program as tests start it: with a line to the test, for a broker whose wire can be made faulty.

Run as `python -m ottla.testing.service_main FD ARGUMENTS...`, FD being the broker's end of the line.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from functools import partial

from ottla.cli.main import main
from ottla.testing.control_channel import listen
from ottla.testing.faults import Faults
from ottla.testing.faulty_application import FaultyApplication


def run(control_fd: int, arguments: Sequence[str]) -> int:
    faults = Faults()
    listen(socket.socket(fileno=control_fd), faults)
    return main(arguments, {"surround": partial(FaultyApplication, faults=faults)})


if __name__ == "__main__":
    sys.exit(run(int(sys.argv[1]), sys.argv[2:]))
