"""Which kernel runs, and that the package builds with and without what a kernel needs."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ottla import compiled_modules

PROJECT = Path(__file__).parents[2]
ROUND_TRIP = """
from ottla.records.content import Record, build_batch, records_of
from ottla.records import kernel_is_compiled
records = [Record(0, 5, b"k", None, (("h", b"1"),))]
assert list(records_of(build_batch(records))) == records
print(kernel_is_compiled())
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_source_runs_when_asked_for() -> None:
    assert run(ROUND_TRIP, OTTLA_KERNEL="python").stdout == "False\n"


def test_the_compiled_kernel_runs_where_it_was_built() -> None:
    built = importlib.util.find_spec("ottla.records._kernel") is not None and compiled_modules.are_usable()
    assert run(ROUND_TRIP, OTTLA_KERNEL="").stdout == f"{built}\n"
    insisted = run(ROUND_TRIP, OTTLA_KERNEL="compiled")
    assert (insisted.returncode == 0) == built


def test_an_unknown_choice_is_named() -> None:
    failed = run(ROUND_TRIP, OTTLA_KERNEL="rust")
    assert failed.returncode != 0
    assert "OTTLA_KERNEL is 'rust'" in failed.stderr


def test_the_source_runs_without_cython() -> None:
    without = "import sys; sys.modules['cython'] = None\n"
    done = run(without + ROUND_TRIP, OTTLA_KERNEL="python")
    assert done.stdout == "False\n", done.stderr
    assert "Cython" not in run(without + ROUND_TRIP + "print(*sys.modules)", OTTLA_KERNEL="python").stdout


@pytest.fixture
def project_copy(tmp_path: Path) -> Path:
    """What setup.py needs of the project, so that a build leaves nothing behind in it."""
    copy = tmp_path / "project"
    left_out = shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__")
    shutil.copytree(PROJECT / "src", copy / "src", ignore=left_out)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        if (PROJECT / name).exists():
            shutil.copy(PROJECT / name, copy)
    return copy


def build(project: Path, **environment: str) -> list[str]:
    """Builds into its own directory; the names of compiled files that came out."""
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", "out"],
        cwd=project,
        env=os.environ | environment,
        capture_output=True,
        timeout=110,
        check=True,
    )
    assert not list(project.glob("src/**/*.c")), "generated C stays out of the source tree"
    return [path.name for path in project.glob("out/**/*.so")]


def test_the_package_builds_without_a_compiler(project_copy: Path) -> None:
    assert build(project_copy, CC="false") == []


def test_the_kernel_can_be_left_out(project_copy: Path) -> None:
    assert build(project_copy, OTTLA_NO_KERNEL="1") == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_kernel_is_built_with_a_compiler(project_copy: Path) -> None:
    declared = {name.rpartition(".")[2] for name in compiled_modules.sources()}
    assert {name.split(".")[0] for name in build(project_copy)} == declared | {
        "_kernel",
        "_kernel_header",
        "_kernel_compaction",
        "_kernel_scan",
        "_kernel_columns",
        "_kernel_rows",
    }
