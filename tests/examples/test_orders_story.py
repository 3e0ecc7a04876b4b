"""`make demo` tells a true story: it ends well only when every order counted once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_demo_ends_well_and_cleans_up(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "examples.orders_story"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=380)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("   ok   ") == 2
    assert sorted(path.name for path in (tmp_path / ".demo").iterdir()) == ["orders.png"]
