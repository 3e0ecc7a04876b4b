"""Commands against a cluster that is encrypted and asks who they are: settings by option, file, profile."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.program import Program
from client.certificates import Authority
from client.tls_front import TlsFront, encrypted_broker
from compat.broker import unique_name
from ottla.testing import BrokerProcess

PASSWORD = "open-sesame"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def front(authority: Authority) -> Iterator[TlsFront]:
    with encrypted_broker(authority, asks_who=True) as front:
        yield front


@pytest.fixture(scope="module")
def settings(authority: Authority) -> dict[str, str]:
    mine = authority.locked(authority.sign("client"), PASSWORD)
    return {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(authority.certificate),
        "ssl.keystore.location": str(mine),
        "ssl.key.password": PASSWORD,
    }


def properties(folder: Path, settings: dict[str, str]) -> Path:
    """A file as Kafka's own tools take it with --command-config."""
    file = folder / "client.properties"
    file.write_text(
        "# how to come there\n" + "".join(f"{name} = {text}\n" for name, text in settings.items())
    )
    return file


def options(settings: dict[str, str]) -> list[str]:
    return [word for name, text in settings.items() for word in ("-X", f"{name}={text}")]


def test_every_command_comes_to_an_encrypted_cluster(
    ottla: Program, front: TlsFront, settings: dict[str, str]
) -> None:
    topic = unique_name("secured")
    file = properties(ottla.home, {"bootstrap.servers": front.bootstrap, **settings})
    ottla.ok("profile", "set", "there", "-X", f"@{file}")
    ottla.ok("topic", "create", topic)
    ottla.ok("produce", topic, "-X", "linger.ms=0", stdin="one\ntwo\n")
    assert ottla.ok("consume", topic, "-X", "max.poll.records=1").out == "one\ntwo\n"
    assert ottla.ok("topic", "tail", topic, "--no-follow", "-n", "1").out == "two\n"
    assert ottla.ok("topic", "ls", "-l", "-o", "jsonl").json_lines[0]["records"] == 2
    assert ottla.ok("group", "reset", "g", "--topic", topic, "--to", "1", "--yes", "-o", "json").json
    (row,) = ottla.ok("group", "show", "g", "-o", "json").json["partitions"]
    assert row["lag"] == 1
    assert ottla.ok("config", "get", f"topic:{topic}", "segment.ms", "-o", "json").json
    assert ottla.ok("cluster", "show", "-o", "json").json["brokers"]
    assert ottla.ok("txn", "ls", "-o", "json").json == []
    assert ottla.ok("__complete", "topic", "show", "secured").out.splitlines() == [topic]
    for kind in ("produce", "consume", "e2e"):
        assert ottla.ok("bench", kind, "-n", "20", "-o", "json").json["records"] == 20
    ottla.ok("topic", "rm", topic, "--yes")


def test_settings_are_given_one_by_one_or_as_a_file(
    ottla: Program, front: TlsFront, settings: dict[str, str]
) -> None:
    ottla.ok("topic", "ls", "-b", front.bootstrap, *options(settings))
    file = properties(ottla.home, settings)
    ottla.ok("topic", "ls", "-b", front.bootstrap, "-X", f"@{file}")
    ottla.ok("topic", "ls", "-X", f"@{file}", OTTLA_BOOTSTRAP=front.bootstrap)
    wrong = ("-X", "ssl.key.password=wrong")  # the later one counts
    assert "ssl.key.password" in ottla.fails(
        2, "topic", "ls", "-b", front.bootstrap, "-X", f"@{file}", *wrong
    )


def test_a_profile_keeps_settings_and_tells_no_password(
    ottla: Program, front: TlsFront, settings: dict[str, str], authority: Authority
) -> None:
    near = {**settings, "ssl.truststore.location": os.path.relpath(authority.certificate, ottla.home)}
    ottla.ok("profile", "set", "there", front.bootstrap, *options(near))
    kept = ottla.home / "config" / "ottla" / "profiles.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    ottla.ok("topic", "ls", "--profile", "there")
    shown = ottla.ok("profile", "show", "-o", "json").json
    assert shown == {
        "profile": "there",
        "bootstrap": front.bootstrap,
        "used": True,
        "settings": {**settings, "ssl.key.password": "(hidden)"},  # the file's place is absolute
    }
    for told in (ottla.ok("profile", "show", "there"), ottla.ok("profile", "ls"), ottla.ok("topic", "ls")):
        assert PASSWORD not in told.out + told.err
    assert "ssl.key.password" in ottla.ok("profile", "show", "there").out


def test_settings_of_a_profile_go_to_no_other_address_unless_it_is_named(
    ottla: Program, front: TlsFront, settings: dict[str, str], broker: BrokerProcess
) -> None:
    ottla.ok("profile", "set", "there", "localhost:1", *options(settings))
    ottla.ok("topic", "ls", "-b", broker.bootstrap)  # in plain
    ottla.ok("topic", "ls", OTTLA_BOOTSTRAP=broker.bootstrap)
    ottla.ok("topic", "ls", "-b", front.bootstrap, "--profile", "there")
    ottla.fails(3, "topic", "ls", "-b", broker.bootstrap, "--profile", "there")


def test_profiles_of_addresses_alone_are_still_read(ottla: Program, broker: BrokerProcess) -> None:
    kept = ottla.home / "config" / "ottla" / "profiles.json"
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({"current": "old", "profiles": {"old": broker.bootstrap}}))
    ottla.ok("topic", "ls")
    assert ottla.ok("profile", "show", "-o", "json").json["settings"] == {}


def test_a_password_is_in_no_error(ottla: Program, broker: BrokerProcess) -> None:
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": PASSWORD,
    }
    for debug in ((), ("--debug",)):
        done = ottla(*debug, "topic", "ls", "-b", broker.bootstrap, *options(login))
        assert done.code != 0
        assert "SASL" in done.err
        assert PASSWORD not in done.out + done.err


@pytest.mark.parametrize(
    ("arguments", "code", "cause"),
    [
        (("topic", "ls", "-X", "security.protocol"), 2, "expected NAME=VALUE"),
        (("topic", "ls", "-X", "security.protokol=SSL"), 2, "did you mean security.protocol?"),
        (("topic", "ls", "-X", "linger.ms=1"), 2, "there is no client setting 'linger.ms'"),
        (("topic", "ls", "-X", "@nowhere"), 4, "nowhere: No such file"),
        (("topic", "ls", "-b", "h:1", "-X", "bootstrap.servers=h:2"), 2, "leave one of them out"),
        (("topic", "ls", "-X", "security.protocol=SASL_SSL"), 2, "sasl.mechanism is not set"),
        (("bench", "e2e", "-X", "linger.mss=1"), 2, "did you mean linger.ms?"),
        (("profile", "set", "x", "h:1", "-X", "linger.ms=1"), 2, "there is no client setting 'linger.ms'"),
        (("profile", "set", "x"), 2, "where the brokers are is not said"),
        (("profile", "show"), 4, "no profile is used"),
    ],
)
def test_wrong_settings_are_refused_by_name(
    ottla: Program, broker: BrokerProcess, arguments: tuple[str, ...], code: int, cause: str
) -> None:
    named = "-b" in arguments or arguments[0] == "profile"
    where = {} if named else {"OTTLA_BOOTSTRAP": broker.bootstrap}
    assert cause in ottla.fails(code, *arguments, **where)
