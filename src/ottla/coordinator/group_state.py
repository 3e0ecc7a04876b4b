"""What groups of both protocols have in common: their states by name, and when nothing is due."""

from __future__ import annotations

from enum import Enum

NEVER_MS = 2**63 - 1
AT_ONCE_MS = -1
"""As `wake_ms` of groups: the next thing that happens to it is its own."""


class GroupState(Enum):
    """By the names that clients know."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    ASSIGNING = "Assigning"  # of consumer groups: the assignor has not seen the latest change
    RECONCILING = "Reconciling"  # members have not all arrived at what the assignor wants
    STABLE = "Stable"
    DEAD = "Dead"  # told of groups that do not exist
