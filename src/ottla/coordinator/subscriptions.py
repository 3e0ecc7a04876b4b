"""Which topics a member of a classic consumer group reads: how its metadata begins in all versions.

The rest of the metadata is between the members, unless their group becomes a consumer group (KIP-848).
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.model.errors import Malformed
from ottla.protocol.codec import decode
from ottla.protocol.fields import Int16, Message


class _SubscribedTopics(Message, versions=(0, 0)):
    version: Int16 = 0
    topics: Sequence[str] = ()


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """None when the metadata is not what consumers send."""
    try:
        return frozenset(decode(_SubscribedTopics, 0, metadata)[0].topics)
    except Malformed:
        return None
