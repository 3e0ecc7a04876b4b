from __future__ import annotations

import pytest

from ottla.security.principals import ANONYMOUS, Principal, parse_principal
from ottla.security.quotas import Quotas, Unlimited


def test_a_principal_is_written_as_kafka_writes_it() -> None:
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert parse_principal("User:CN=a:b,O=c") == Principal("User", "CN=a:b,O=c")
    assert parse_principal(str(ANONYMOUS)) == ANONYMOUS


@pytest.mark.parametrize("text", ["", "alice", ":alice", "User:"])
def test_half_a_principal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a principal: Type:name is expected"):
        parse_principal(text)


def test_nobody_waits_without_quotas() -> None:
    quotas: Quotas = Unlimited()
    assert quotas.produced(ANONYMOUS, "client", 1 << 30, now_ms=0) == 0
    assert quotas.fetched(ANONYMOUS, None, 1 << 30, now_ms=0) == 0
    assert quotas.requested(ANONYMOUS, None, 1 << 30, now_ms=0) == 0
