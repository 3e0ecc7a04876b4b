"""What monitors ask without a client."""

from __future__ import annotations

import socket

import pytest
from kazoo.client import KazooClient

from ottla.testing import CoordinationProcess


def ask(address: str, word: str) -> str:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as peer, peer.makefile() as answer:
        peer.sendall(word.encode())
        return answer.read()


def test_ruok_and_isro(service: CoordinationProcess) -> None:
    assert ask(service.zookeeper, "ruok") == "imok"
    assert ask(service.zookeeper, "ruok\n") == "imok"
    assert ask(service.zookeeper, "isro") == "rw"


def test_a_word_may_come_byte_by_byte(service: CoordinationProcess) -> None:
    host, _, port = service.zookeeper.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as peer, peer.makefile() as answer:
        for letter in b"ruok":
            peer.sendall(bytes((letter,)))
        assert answer.read() == "imok"


def test_srvr_and_stat_tell_what_monitors_look_for(service: CoordinationProcess, client: KazooClient) -> None:
    for word in ("srvr", "stat"):
        answer = ask(service.zookeeper, word)
        assert answer.startswith("Zookeeper version: 3.")
        facts = dict(line.split(": ", 1) for line in answer.splitlines() if ": " in line)
        assert facts["Mode"] == "standalone"
        assert int(facts["Node count"]) >= 3
        assert int(facts["Received"]) > 0
        assert int(facts["Zxid"], 16) > 0
    assert "Clients:\n /127.0.0.1:" in ask(service.zookeeper, "stat")


def test_mntr_has_the_names_that_exporters_read(service: CoordinationProcess, client: KazooClient) -> None:
    client.create("/e", b"123", ephemeral=True)
    client.get("/e", watch=lambda _: None)
    values = dict(line.split("\t") for line in ask(service.zookeeper, "mntr").splitlines())
    assert values["zk_server_state"] == "standalone"
    for name in ("zk_znode_count", "zk_ephemerals_count", "zk_watch_count", "zk_num_alive_connections"):
        assert int(values[name]) >= 1, name
    assert int(values["zk_approximate_data_size"]) > 0
    assert int(values["zk_packets_received"]) >= int(values["zk_outstanding_requests"])


def test_conf_and_envi_are_lists_of_facts(service: CoordinationProcess) -> None:
    conf = dict(line.split("=", 1) for line in ask(service.zookeeper, "conf").splitlines())
    assert conf["clientPort"] == service.zookeeper.rpartition(":")[2]
    assert (conf["tickTime"], conf["minSessionTimeout"], conf["maxSessionTimeout"]) == ("200", "400", "4000")
    assert "zookeeper.version=3." in ask(service.zookeeper, "envi")


def test_sessions_ephemerals_and_watches_are_listed(
    service: CoordinationProcess, client: KazooClient
) -> None:
    path = f"{client.chroot}/mine"
    client.create("/mine", ephemeral=True)
    client.get("/mine", watch=lambda _: None)
    session = f"0x{client.client_id[0]:x}"
    dump = ask(service.zookeeper, "dump")
    assert session in dump
    assert f"\t{path}\n" in dump
    assert f"sid={session}" in ask(service.zookeeper, "cons")
    assert f"{path}\n\t{session}\n" in ask(service.zookeeper, "wchp")
    assert f"{session}\n" in ask(service.zookeeper, "wchc")
    assert "Total watches:" in ask(service.zookeeper, "wchs")


def test_statistics_can_be_set_back(service: CoordinationProcess) -> None:
    assert ask(service.zookeeper, "crst") == "Connection stats reset.\n"
    assert ask(service.zookeeper, "srst") == "Server stats reset.\n"
    assert "Received: 1\n" in ask(service.zookeeper, "srvr")


@pytest.mark.parametrize("word", ["kill", "abcd"])
def test_what_is_not_on_the_list_is_refused(service: CoordinationProcess, word: str) -> None:
    assert ask(service.zookeeper, word) == f"{word} is not executed because it is not in the whitelist.\n"
