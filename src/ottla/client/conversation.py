"""What is said on one connection to a broker: versions, a login, requests and answers. Without its socket.

Requests wait until the broker has told which versions it speaks (ApiVersions) and has taken the login, if
there is one (SASL, KIP-152); each then goes out in the highest version that both sides know. Answers come in
the order of requests; each is matched by its correlation id, and another id means that the stream is lost.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from ottla.client.errors import ClientError, Unsupported
from ottla.client.sasl import Exchange, Login, LoginFailed
from ottla.model.errors import ErrorCode, Malformed
from ottla.model.limits import MIB
from ottla.model.spare_rooms import SpareRooms
from ottla.protocol.apis import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE, Api
from ottla.protocol.fields import Message
from ottla.protocol.frames import FrameCutter
from ottla.protocol.headers import decode_response, encode_request
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

Done = Callable[[Message | ClientError, int], None]
"""Takes the answer and the version it came in, or why there is none."""

SOFTWARE_NAME = "ottla"
SOFTWARE_VERSION = "0.1.0"

_VERSION_END = 32_767
_ANSWERS_KEPT = 4  # as many as a consumer holds of one broker while it reads, and one under way
_ANSWER_KEPT_BYTES_MAX = 8 * MIB
_ERROR_BEHIND_CORRELATION_ID = struct.Struct(">h")


@dataclass(slots=True, eq=False)
class Call:
    """A request on its way, and who waits for the answer."""

    api: Api
    message: Message | Callable[[int], Message]  # or how to make it, once the version is known
    done: Done
    deadline_ms: int
    version_max: int = _VERSION_END
    is_answered: bool = True  # false: a Produce with acks=0, done with an empty answer when it is sent
    version: int = -1  # set when it is sent


class Phase(Enum):
    CONNECTING = auto()
    NEGOTIATING = auto()
    LOGGING_IN = auto()
    READY = auto()
    CLOSED = auto()


class Conversation:
    def __init__(self, client_id: str, answer_bytes_max: int, login: Login | None = None) -> None:
        self.phase = Phase.CONNECTING
        self._login = login
        self._exchange: Exchange | None = None  # under way
        self.cutter = FrameCutter(answer_bytes_max, SpareRooms(_ANSWERS_KEPT, _ANSWER_KEPT_BYTES_MAX))
        self.broker: ApiVersionsResponse | None = None  # what the broker speaks
        self._client_id = client_id
        self._ranges: dict[int, tuple[int, int]] = {}
        self._waiting: deque[Call] = deque()  # for the negotiation and the login
        self._sent: deque[tuple[int, Call]] = deque()  # correlation id, call
        self._correlation_id = 0
        self._negotiated_version = API_VERSIONS.versions[1]

    @property
    def unanswered_count(self) -> int:
        return len(self._waiting) + len(self._sent)

    def next_deadline_ms(self) -> int | None:
        return min((call.deadline_ms for call in self._calls()), default=None)

    def expired(self, now_ms: int) -> list[Call]:
        return [call for call in self._calls() if call.deadline_ms <= now_ms]

    def connected(self) -> list[memoryview]:
        """What to send first."""
        self.phase = Phase.NEGOTIATING
        return self._ask_versions(API_VERSIONS.versions[1])

    def request(self, call: Call) -> list[memoryview]:
        """What to send for it now; an API that the broker does not have fails at once."""
        if self.phase is not Phase.READY:
            self._waiting.append(call)
            return []
        return self._begin(call)

    def negotiate(self, frame: memoryview) -> list[memoryview]:
        """Takes the answer to `connected`; what to send next. Raises Malformed.

        An old broker refuses a version it does not know with an answer in version 0 (KIP-511).
        """
        if len(frame) < 6:
            raise Malformed(f"an answer of {len(frame)} bytes to ApiVersions")
        (error,) = _ERROR_BEHIND_CORRELATION_ID.unpack_from(frame, 4)
        refused = error == ErrorCode.UNSUPPORTED_VERSION and self._negotiated_version > 0
        version = 0 if refused else self._negotiated_version
        correlation_id, answer = decode_response(API_VERSIONS, version, frame)
        assert isinstance(answer, ApiVersionsResponse)
        if correlation_id != self._correlation_id:
            raise Malformed(f"answer {correlation_id} came where {self._correlation_id} was due")
        ranges = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        if refused:
            _, last = ranges.get(API_VERSIONS.key, (0, 0))
            return self._ask_versions(min(last, self._negotiated_version - 1))
        if error:
            raise Malformed(f"ApiVersions was answered with error {error}")
        self.broker, self._ranges = answer, ranges
        return self._ready() if self._login is None else self._begin_login(self._login)

    def _ready(self) -> list[memoryview]:
        self.phase = Phase.READY
        waiting, self._waiting = self._waiting, deque()
        return [chunk for call in waiting for chunk in self._begin(call)]

    # -- the login -----------------------------------------------------------------------------------------

    def _begin_login(self, login: Login) -> list[memoryview]:
        from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest

        if self.version_of(SASL_HANDSHAKE) is None or self.version_of(SASL_AUTHENTICATE) is None:
            raise LoginFailed(
                "the broker takes no login here", "set security.protocol to PLAINTEXT or SSL, without SASL"
            )
        self.phase = Phase.LOGGING_IN
        return self._encode(SASL_HANDSHAKE, SASL_HANDSHAKE.versions[1], SaslHandshakeRequest(login.mechanism))

    def log_in(self, frame: memoryview) -> list[memoryview]:
        """Takes an answer of the login; what to send next. Raises LoginFailed, Malformed."""
        assert self._login is not None
        if self._exchange is None:
            self._take_handshake(self._login, frame)
            self._exchange = self._login.begin()
            return self._say(next(self._exchange))
        from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateResponse

        version = self.version_of(SASL_AUTHENTICATE)
        assert version is not None
        _, answer = decode_response(SASL_AUTHENTICATE, version, frame)
        assert isinstance(answer, SaslAuthenticateResponse)
        if answer.error_code:
            text = answer.error_message or f"the login failed with error {answer.error_code}"
            raise LoginFailed(text, "check sasl.mechanism, the user and the password")
        try:
            return self._say(self._exchange.send(bytes(answer.auth_bytes)))
        except StopIteration:
            return self._ready()

    def _take_handshake(self, login: Login, frame: memoryview) -> None:
        from ottla.protocol.messages.sasl_handshake import SaslHandshakeResponse

        _, answer = decode_response(SASL_HANDSHAKE, SASL_HANDSHAKE.versions[1], frame)
        assert isinstance(answer, SaslHandshakeResponse)
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(answer.mechanisms) or "none"
            raise LoginFailed(
                f"the broker does not take {login.mechanism}, but {offered}",
                "set sasl.mechanism to one of these",
            )
        if answer.error_code:
            raise LoginFailed(
                f"the broker takes no login here (error {answer.error_code})",
                "set security.protocol to PLAINTEXT or SSL, without SASL",
            )

    def _say(self, token: bytes) -> list[memoryview]:
        from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest

        version = self.version_of(SASL_AUTHENTICATE)
        assert version is not None
        return self._encode(SASL_AUTHENTICATE, version, SaslAuthenticateRequest(token))

    # -- requests and answers ------------------------------------------------------------------------------

    def answer(self, frame: memoryview) -> tuple[Call, Message]:
        """The call that this frame answers. Raises Malformed, and then the call is still unanswered."""
        if not self._sent:
            raise Malformed("an answer came without a request")
        expected, call = self._sent[0]
        correlation_id, message = decode_response(call.api, call.version, frame)
        if correlation_id != expected:
            raise Malformed(f"answer {correlation_id} came where {expected} was due")
        self._sent.popleft()
        return call, message

    def close(self) -> list[Call]:
        """The calls that get no answer any more."""
        self.phase = Phase.CLOSED
        calls = list(self._calls())
        self._waiting.clear()
        self._sent.clear()
        return calls

    def _calls(self) -> Iterator[Call]:
        yield from (call for _, call in self._sent)
        yield from self._waiting

    def _ask_versions(self, version: int) -> list[memoryview]:
        self._negotiated_version = version
        request = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
        )
        return self._encode(API_VERSIONS, version, request)

    def _begin(self, call: Call) -> list[memoryview]:
        version = self.version_of(call.api, call.version_max)
        if version is None:
            call.done(unsupported(call.api, self._ranges.get(call.api.key)), -1)
            return []
        call.version = version
        message = call.message if isinstance(call.message, Message) else call.message(version)
        try:
            chunks = self._encode(call.api, version, message)
        except ValueError as error:  # a value of the user's that this version cannot carry
            call.done(Unsupported(f"{call.api.name} v{version} cannot carry this: {error}"), version)
            return []
        if call.is_answered:
            self._sent.append((self._correlation_id, call))
        else:
            call.done(call.api.response(), version)
        return chunks

    def version_of(self, api: Api, version_max: int = _VERSION_END) -> int | None:
        """The highest version of `api` that both sides speak."""
        first, last = self._ranges.get(api.key, (0, -1))
        version = min(last, api.versions[1], version_max)
        return version if version >= max(first, api.versions[0]) else None

    def _encode(self, api: Api, version: int, message: Message) -> list[memoryview]:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFF_FFFF
        chunks = encode_request(api, version, self._correlation_id, self._client_id, message)
        return [memoryview(chunk) for chunk in chunks]  # type: ignore[arg-type]  # all of it is in memory


def unsupported(api: Api, offered: tuple[int, int] | None) -> Unsupported:
    if offered is None:
        return Unsupported(f"the broker does not offer {api.name}", "it may be too old, or lack this feature")
    spoken = f"{offered[0]} to {offered[1]}"
    needed = f"{api.versions[0]} to {api.versions[1]}"
    return Unsupported(
        f"the broker speaks {api.name} {spoken}, this client {needed}", "upgrade the older of them"
    )
