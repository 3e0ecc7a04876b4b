"""A Spark that cannot be had is told of at once."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ottla.pipeline.problems import PipelineError
from ottla.pipeline.session import spark_session


@pytest.mark.parametrize(
    "master", ["spark://127.0.0.1:{0}", "spark://127.0.0.1:{0},localhost:{0}", "sc://127.0.0.1:{0}/;token=x"]
)
def test_a_master_that_is_not_there_is_named(tmp_path: Path, master: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    address = master.format(port)
    with pytest.raises(PipelineError) as raised:
        spark_session("name", address, {}, tmp_path / "spark.log")
    assert raised.value.text == f"nothing answers at {address}"
    assert raised.value.cure == "start Spark there, or check the address"
