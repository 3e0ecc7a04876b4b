"""SaslHandshake: how a client will log in on this connection.

After version 0 the mechanism's own messages follow without headers, after 1 in SaslAuthenticate (KIP-152).
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.fields import Int16, Message


class SaslHandshakeRequest(Message, versions=(0, 1)):
    mechanism: str = ""


class SaslHandshakeResponse(Message, versions=(0, 1)):
    error_code: Int16 = 0
    mechanisms: Sequence[str] = ()  # those that the broker takes
