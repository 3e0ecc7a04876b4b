"""Who may do what, as ZooKeeper decides it."""

from __future__ import annotations

import pytest

from coordination.served import Served
from ottla.coordination.acls import (
    OPEN_ACL,
    SUPER,
    Acl,
    Identity,
    Perms,
    decode_acl,
    encode_acl,
    permits,
    resolve,
)
from ottla.coordination.operations import Check, Code, Create, Delete, Multi, Operation, SetAcl, SetData
from ottla.coordination.reads import CountDescendants, Exists, GetAcl, GetChildren, GetData, Read, WhoAmI

ALICE, BOB = Identity("digest", "alice:a/1="), Identity("digest", "bob:b")


@pytest.mark.parametrize(
    ("line", "identities", "permitted"),
    [
        (Acl(31, "world", "anyone"), [], True),
        (Acl(31, *ALICE), [], False),
        (Acl(31, *ALICE), [BOB, ALICE], True),
        (Acl(30, *ALICE), [ALICE], False),
        (Acl(31, *ALICE), [SUPER], True),
        (Acl(31, "sasl", "carol"), [Identity("sasl", "carol")], True),
        (Acl(31, "sasl", "carol"), [Identity("sasl", "super")], True),
        (Acl(31, "sasl", "carol"), [Identity("digest", "carol")], False),
        (Acl(31, "ip", "10.1.0.0/16"), [Identity("ip", "10.1.200.3")], True),
        (Acl(31, "ip", "10.1.0.0/16"), [Identity("ip", "10.2.0.1")], False),
        (Acl(31, "ip", "10.1.2.3"), [Identity("ip", "10.1.2.3")], True),
        (Acl(31, "ip", "10.1.2.3/8"), [Identity("ip", "10.9.9.9")], True),
        (Acl(31, "ip", "2001:db8::/32"), [Identity("ip", "2001:db8::1")], True),
        (Acl(31, "ip", "2001:db8::/32"), [Identity("ip", "10.1.2.3")], False),
    ],
)
def test_a_line_permits_whom_it_names(line: Acl, identities: list[Identity], permitted: bool) -> None:
    assert permits((line,), Perms.READ, identities) is permitted
    assert permits((line,), Perms.READ, None)  # the process itself


@pytest.mark.parametrize(
    ("acl", "resolved"),
    [
        ([Acl(31, "world", "anyone")] * 2, OPEN_ACL),
        ([Acl(1, "auth", "whatever")], (Acl(1, *ALICE), Acl(1, "sasl", "carol"))),
        ([Acl(1, *BOB), Acl(1, *BOB)], (Acl(1, *BOB),)),
        ([], None),
        ([Acl(31, "world", "nobody")], None),
        ([Acl(31, "digest", "no-colon")], None),
        ([Acl(31, "digest", "a:b:c")], None),
        ([Acl(31, "ip", "10.0.0")], None),
        ([Acl(31, "ip", "10.0.0.1/33")], None),
        ([Acl(31, "ip", "10.0.0.0/255.0.0.0")], None),
        ([Acl(31, "sasl", "")], None),
        ([Acl(31, "kerberos", "x")], None),
        ([Acl(31, "super", "")], None),
        ([Acl(31, "sasl", "x" * 70_000)], None),
    ],
)
def test_a_list_is_resolved_or_refused(acl: list[Acl], resolved: tuple[Acl, ...] | None) -> None:
    who = [Identity("ip", "127.0.0.1"), ALICE, Identity("sasl", "carol")]
    assert resolve(acl, who) == resolved


def test_auth_without_a_proven_identity_is_refused() -> None:
    assert resolve([Acl(31, "auth", "")], [Identity("ip", "127.0.0.1")]) is None


def test_a_list_survives_its_bytes_and_equal_lists_are_one_object() -> None:
    acl = (Acl(1, "ip", "::1"), Acl(31, "digest", "ü:x"))
    assert decode_acl(encode_acl(acl)) == acl
    assert decode_acl(encode_acl(acl)) is decode_acl(encode_acl(tuple(Acl(*line) for line in acl)))
    assert decode_acl(encode_acl(OPEN_ACL)) is OPEN_ACL


NEEDED: list[tuple[Operation | Read, str, int]] = [
    # what is asked, where the permission is looked for, which one it is
    (Create("/n/new"), "/n", Perms.CREATE),
    (Delete("/n/c"), "/n", Perms.DELETE),
    (SetData("/n", b""), "/n", Perms.WRITE),
    (SetAcl("/n", OPEN_ACL), "/n", Perms.ADMIN),
    (Check("/n"), "/n", Perms.READ),
    (Multi([Check("/n")]), "/n", Perms.READ),
    (Exists("/n"), "/n", Perms.READ),
    (GetData("/n"), "/n", Perms.READ),
    (GetChildren("/n"), "/n", Perms.READ),
    (CountDescendants("/n"), "/n", Perms.READ),
    (GetAcl("/n"), "/n", Perms.READ | Perms.ADMIN),
]


@pytest.mark.parametrize(("request_", "path", "permission"), NEEDED)
def test_each_request_needs_one_permission(request_: Operation | Read, path: str, permission: int) -> None:
    for perms in (permission & -permission, Perms.ALL & ~permission):
        served = Served()
        owner, other = served.client(ALICE), served.client(BOB)
        assert owner.do(Create("/n")).ok
        assert owner.do(Create("/n/c")).ok
        assert owner.do(SetAcl(path, [Acl(perms, *BOB), Acl(Perms.ALL, *ALICE)])).ok
        if isinstance(request_, Create | Delete | SetData | SetAcl | Check | Multi):
            code = other.do(request_).code
        else:
            found = other.ask(request_)
            code = found if isinstance(found, Code) else Code.OK
        assert code is (Code.OK if perms & permission else Code.NO_AUTH)


def test_digests_are_masked_for_those_who_may_only_read() -> None:
    served = Served()
    alice, bob = served.client(ALICE), served.client(BOB)
    acl = (Acl(Perms.ALL, *ALICE), Acl(Perms.READ, "world", "anyone"))
    alice.do(Create("/n", acl=acl))
    assert alice.ask(GetAcl("/n"))[0] == acl
    assert bob.ask(GetAcl("/n"))[0] == (Acl(Perms.ALL, "digest", "alice:x"), acl[1])


def test_setting_a_list_moves_aversion_only() -> None:
    served = Served()
    client = served.client(ALICE)
    before = client.do(Create("/n")).steps[0].stat
    assert before is not None
    after = client.do(SetAcl("/n", [Acl(31, "auth", "")], 0)).steps[0].stat
    assert after is not None
    assert after.aversion == 1
    assert sum(1 for old, new in zip(before, after, strict=True) if old != new) == 1
    assert after == client.ask(Exists("/n"))
    assert client.do(SetAcl("/n", OPEN_ACL, 0)).code is Code.BAD_VERSION
    assert client.ask(GetAcl("/n"))[0] == (Acl(31, *ALICE),)
    assert client.do(SetAcl("/n", [])).code is Code.INVALID_ACL
    assert client.do(SetAcl("/none", OPEN_ACL)).code is Code.NO_NODE


def test_a_multi_sees_the_lists_it_sets() -> None:
    served = Served()
    bob = served.client(BOB)
    bob.do(Create("/n"))
    result = bob.do(Multi([SetAcl("/n", [Acl(31, *ALICE)]), SetData("/n", b"x")]))
    assert [step.code for step in result.steps] == [Code.OK, Code.NO_AUTH]
    assert bob.ask(GetAcl("/n"))[0] == OPEN_ACL


def test_ephemeral_nodes_go_with_their_session_whatever_their_parent_permits() -> None:
    served = Served()
    alice, bob = served.client(ALICE), served.client(BOB)
    alice.do(Create("/n", acl=[Acl(Perms.CREATE | Perms.READ, "world", "anyone")]))
    bob.do(Create("/n/e", ephemeral=True))
    served.service.close_session(bob.client, bob.told.append)
    served.coordination.sync()
    assert alice.ask(GetChildren("/n"))[0] == []


def test_who_am_i() -> None:
    client = Served().client(ALICE, Identity("sasl", "carol"), address="10.0.0.7")
    assert client.ask(WhoAmI()) == [("ip", "10.0.0.7"), ("digest", "alice"), ("sasl", "carol")]
