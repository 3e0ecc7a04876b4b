"""DIGEST-MD5 as RFC 2831 has it."""

from __future__ import annotations

import random

import pytest

from ottla.security.digest_md5 import DigestMd5

# The example of RFC 2831, chapter 4.
EXAMPLE = DigestMd5("imap", "elwood.innosoft.com", "OA6MG9tEQGm2hh")
RESPONSE = (
    b'charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",nc=00000001,'
    b'cnonce="OA6MHXh6VqTrRk",digest-uri="imap/elwood.innosoft.com",'
    b"response=d388dad90d4bbd760a152321f2143af7,qop=auth"
)


def test_the_example_of_the_rfc() -> None:
    proven = EXAMPLE.verify(RESPONSE, {"chris": "secret"})
    assert proven is not None
    assert proven == ("chris", b"rspauth=ea40f60335c427b5527b84dbabcdfffd")


def test_the_challenge_names_what_we_take() -> None:
    assert DigestMd5("zookeeper", "zk-sasl-md5", "n").challenge() == (
        b'realm="zk-sasl-md5",nonce="n",qop="auth",charset=utf-8,algorithm=md5-sess'
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"d388", b"d389"),
        (b'"chris"', b'"chriz"'),
        (b'nonce="OA6MG9', b'nonce="XA6MG9'),
        (b"nc=00000001", b"nc=00000002"),
        (b"imap/elwood", b"imap/another"),
        (b"qop=auth", b"qop=auth-int"),
        (b'cnonce="OA6MHXh6VqTrRk"', b'cnonce=""'),
        (b"charset", b"char set"),
    ],
)
def test_anything_else_proves_nothing(old: bytes, new: bytes) -> None:
    assert old in RESPONSE
    assert EXAMPLE.verify(RESPONSE.replace(old, new), {"chris": "secret"}) is None


def test_a_wrong_password_proves_nothing() -> None:
    assert EXAMPLE.verify(RESPONSE, {"chris": "other"}) is None
    assert EXAMPLE.verify(RESPONSE, {}) is None


@pytest.mark.parametrize("seed", range(100))
def test_random_bytes_prove_nothing(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(RESPONSE)
    for _ in range(5):
        data[chance.randrange(len(data))] = chance.randrange(256)
    mutilated = bytes(data)
    assert mutilated == RESPONSE or EXAMPLE.verify(mutilated, {"chris": "secret"}) is None
    assert EXAMPLE.verify(chance.randbytes(200), {"chris": "secret"}) is None
