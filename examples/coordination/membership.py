"""Who is there: every process has an ephemeral node, and all of them follow the list.

membership.py NAME    joins, and prints the members whenever they change
"""

from __future__ import annotations

import sys
import threading

from connection import connect, say

MEMBERS = "/examples/members"

if __name__ == "__main__":
    me = sys.argv[1]
    zookeeper = connect()
    zookeeper.create(f"{MEMBERS}/{me}", ephemeral=True, makepath=True)

    @zookeeper.ChildrenWatch(MEMBERS)
    def changed(names: list[str]) -> None:
        say(f"{me} sees {', '.join(sorted(names))}")

    threading.Event().wait()
