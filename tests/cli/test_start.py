"""What a start loads: only what it needs. The memory of an idle service and its start consist of that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_LOOK = """
import sys
from ottla.cli.main import parser_for
words = ["coordination", "up", "--port", "0", "--set", "tickTime=100"]
options = parser_for(words).parse_args(words)
from ottla.cli import coordination
config = coordination._config(options)
import ottla.node.coordination_node
loaded = sorted(sys.modules)
import json
print(json.dumps([config.tick_ms, config.listener.port, loaded]))
"""

_DEAR = {
    "asyncio", "dataclasses", "datetime", "inspect", "ipaddress", "json", "pathlib", "shutil", "ssl",
    "tomllib",
    "ottla.model.broker_config", "ottla.model.broker_settings", "ottla.model.errors", "ottla.node.settings",
    "ottla.protocol.codec", "ottla.protocol.fields", "ottla.server.kafka",
}  # fmt: skip


def test_the_coordination_service_loads_nothing_dear_that_it_does_not_need() -> None:
    looked = subprocess.run([sys.executable, "-c", _LOOK], capture_output=True, text=True, check=True)
    tick_ms, port, loaded = json.loads(looked.stdout)
    assert (tick_ms, port) == (100, 0)
    assert "ottla.node.coordination_node" in loaded
    assert not _DEAR & set(loaded)


_LOOK_AT_A_BROKER = """
import sys
import ottla.node.broker
from ottla.cli.main import main
from ottla.node.broker import Broker

def look(broker, on_serving):
    broker.ask_to_stop()
    on_serving()
    run(broker)
    of_the_library = [
        f"{name}.{kind.__name__}"
        for name, module in list(sys.modules.items()) if name.startswith("ottla.")
        for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == name
        if hasattr(kind, "_field_defaults") and kind.__mro__[1] is tuple
    ]
    loaded = sorted(sys.modules)
    import json
    print(json.dumps([of_the_library, loaded]), file=sys.stderr)

run, Broker.run = Broker.run, look
main()
"""

_DEAR_TO_A_BROKER = {
    "asyncio", "ast", "dataclasses", "inspect", "shutil", "ssl", "subprocess", "tomllib",
    "datetime", "encodings.idna",
    "ottla.coordination.ensemble",
}  # fmt: skip


def test_a_broker_loads_nothing_dear_that_it_does_not_need(tmp_path: Path) -> None:
    arguments = ["up", "--data", str(tmp_path), "--set", "listeners=PLAINTEXT://127.0.0.1:0"]
    arguments += ["--set", "ottla.http.port=0", "--set", "clientPort=0"]
    looked = subprocess.run(
        [sys.executable, "-c", _LOOK_AT_A_BROKER, *arguments], capture_output=True, text=True, check=True
    )
    of_the_library, loaded = json.loads(looked.stderr.splitlines()[-1])
    assert "ottla.node.broker" in loaded
    assert not _DEAR_TO_A_BROKER & set(loaded)
    assert not of_the_library, "named tuples come from ottla.model.values"


@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        ("nonsense=1", "--set: broker setting nonsense does not exist"),
        ("tickTime=x", "--set: tickTime=x: not valid, expected a whole number"),
        ("tickTime", "--set tickTime: not valid, expected name=value"),
        ("clientPort=-1", "a service without a port is of no use"),
    ],
)
def test_a_wrong_setting_is_told_as_a_broker_tells_it(assignment: str, complaint: str) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "ottla", "coordination", "up", "--set", assignment],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 2
    assert complaint in told.stderr
