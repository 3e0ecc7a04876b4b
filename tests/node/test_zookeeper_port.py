"""The ZooKeeper port of a broker: there by default, left out or refused when its port is taken."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from in_process import InProcessBroker, running_broker, settings_for
from ottla.model.configs import BrokerConfig, InvalidSetting
from ottla.model.zookeeper_config import ZooKeeperConfig, zookeeper_config
from ottla.node.broker import Broker
from ottla.node.failures import BrokerFailed
from ottla.node.settings import load_settings


def config(**texts: str) -> ZooKeeperConfig:
    names = {"words": "4lw.commands.whitelist"}
    given = {names.get(name, name): text for name, text in texts.items()}
    return zookeeper_config(BrokerConfig(given), Path("/data"))


def test_it_is_loopback_2181_by_default() -> None:
    settings = config()
    assert str(settings.listener) == "ZOOKEEPER://127.0.0.1:2181"
    assert (settings.session_timeout_ms_min, settings.session_timeout_ms_max) == (4_000, 40_000)
    assert settings.connections_per_address_max == 60
    assert "ruok" in settings.words
    assert "dump" not in settings.words


def test_minus_one_switches_it_off(tmp_path: Path) -> None:
    assert config(clientPort="-1").listener is None
    with running_broker(tmp_path, {"clientPort": "-1"}) as running:
        assert running.broker.zookeeper is None


def test_settings_that_contradict_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="minSessionTimeout=9000: is more than maxSessionTimeout"):
        config(minSessionTimeout="9000", maxSessionTimeout="8000")
    with pytest.raises(InvalidSetting, match=r"4lw\.commands\.whitelist: nope not known"):
        config(words="ruok,nope")


def test_a_port_that_was_asked_for_and_is_taken_ends_the_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        broker = Broker(settings_for(tmp_path, {"clientPort": str(port)}))
        with pytest.raises(BrokerFailed, match=rf"{port}: Address already in use; set clientPort to another"):
            broker.start()


def test_a_default_port_that_is_taken_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 2181))
            taken.listen()
        except OSError:
            pass  # somebody else has it, which is as good
        settings = [f"log.dirs={tmp_path / 'log'}", "listeners=PLAINTEXT://127.0.0.1:0", "ottla.http.port=-1"]
        running = InProcessBroker(Broker(load_settings(None, settings)))
        assert running.broker.zookeeper is None
        running.stop()
    assert "no ZooKeeper port: cannot listen on ZOOKEEPER://127.0.0.1:2181" in caplog.text
    assert "-1 to go without" in caplog.text
