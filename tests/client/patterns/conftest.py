"""One broker, and each database in turn: SQLite always, the servers in the slow suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from client.patterns.databases import Connect, postgres, sqlite


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Connect]:
    with postgres() as connect:
        yield connect


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Connect:
    """Connections to one database, which may hold what other tests have left."""
    if request.param == "sqlite":
        return sqlite(tmp_path)
    server: Connect = request.getfixturevalue("postgres_server")
    return server
