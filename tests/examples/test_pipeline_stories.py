"""The examples of pipelines tell true stories, and their pages show what is in them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "examples"
STORIES = {
    "clickstream": 1,
    "table_changes": 1,
    "payments": 2,
    "replay": 3,
    "declarative": 2,
}  # checks of each
LEFT = {"clickstream": ["clickstream-visits", "clickstream.png"]}
CODE = re.compile(r"```(?:toml|sql|python)\n(.*?)```", re.DOTALL)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("story", STORIES)
def test_a_story_ends_well_and_cleans_up(tmp_path: Path, story: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", f"examples.{story}.story"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=880)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("   ok   ") == STORIES[story]
    assert sorted(path.name for path in (tmp_path / ".demo").iterdir()) == LEFT.get(story, [])


@pytest.mark.parametrize("story", STORIES)
def test_a_page_shows_lines_that_are_in_the_example(story: str) -> None:
    folder = ROOT / "examples" / story
    written = {line.strip() for path in folder.rglob("*.*") if path.is_file() for line in lines(path)}
    shown = [
        line for block in CODE.findall((PAGES / f"{story}.md").read_text()) for line in block.splitlines()
    ]
    assert shown
    assert not [line for line in shown if line.partition("  --")[0].strip() not in written]


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.suffix in (".toml", ".sql", ".py") else []
