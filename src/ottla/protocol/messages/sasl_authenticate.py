"""SaslAuthenticate: a message of the mechanism that SaslHandshake has named, and the server's answer to it.

1 tells how long the login lasts (KIP-368); 2 is flexible.
"""

from __future__ import annotations

from typing import Annotated

from ottla.protocol.fields import Int16, Int64, Message, ignorable, since


class SaslAuthenticateRequest(Message, versions=(0, 2), flexible_since=2):
    auth_bytes: bytes = b""


class SaslAuthenticateResponse(Message, versions=(0, 2), flexible_since=2):
    error_code: Int16 = 0
    error_message: str | None = None
    auth_bytes: bytes = b""
    session_lifetime_ms: Annotated[Int64, since(1), ignorable] = 0  # 0: it does not end
