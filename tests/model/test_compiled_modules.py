"""Modules that every request passes through: compiled or as written, all of them or none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from ottla import compiled_modules

PROJECT = Path(__file__).parents[2]
LOADED = """
import importlib
from ottla import compiled_modules
forms = {importlib.import_module(name).__file__.endswith(".py") for name in compiled_modules.sources()}
print(forms, compiled_modules.are_compiled())
"""
AS_WRITTEN = "{True} False\n"
COMPILED = "{False} True\n"

needs_compiled = pytest.mark.skipif(
    not compiled_modules.are_usable(), reason="nothing is compiled here, or not of what the sources are now"
)


def run(
    source: Path = PROJECT / "src", *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *(arguments or ("-c", LOADED))],
        env=os.environ | {"PYTHONPATH": str(source)} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def compiled_files(source: Path) -> list[Path]:
    return [
        path
        for path in source.rglob(f"*{EXTENSION_SUFFIXES[0]}")
        if (path.parent / f"{path.name.partition('.')[0]}.pxd").exists() and not path.name.startswith("_")
    ]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(PROJECT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "setup.py", tmp_path)
    return tmp_path / "src"


def test_there_are_such_modules() -> None:
    assert "ottla.server.connection" in compiled_modules.sources()


def test_sources_run_when_asked_for() -> None:
    assert run(OTTLA_KERNEL="python").stdout == AS_WRITTEN


@needs_compiled
def test_compiled_ones_run_where_they_were_built() -> None:
    assert run(OTTLA_KERNEL="").stdout == COMPILED


@needs_compiled
def test_none_runs_compiled_when_the_source_of_one_is_newer(checkout: Path) -> None:
    assert run(checkout, OTTLA_KERNEL="").stdout == COMPILED
    os.utime(checkout / "ottla" / "server" / "connection.py")
    assert run(checkout, OTTLA_KERNEL="").stdout == AS_WRITTEN
    insisted = run(checkout, OTTLA_KERNEL="compiled")
    assert "install the package anew" in insisted.stderr


def test_bytecode_counts_as_long_as_its_source_is_the_same_and_where_it_was(checkout: Path) -> None:
    told = "getattr(topics, 'NEW', None), topics.new_topic_id.__code__.co_filename"
    look = ("-c", f"from ottla.model import topics; print({told})")
    module = checkout / "ottla" / "model" / "topics.py"
    for _ in range(2):  # the second reads what the first has written
        assert run(checkout, *look, PYTHONDONTWRITEBYTECODE="").stdout == f"None {module}\n"
    assert list(module.parent.glob("__pycache__/topics.*.pyc"))
    module.write_text(f"{module.read_text()}\nNEW = 1\n")
    for _ in range(2):
        assert run(checkout, *look, PYTHONDONTWRITEBYTECODE="").stdout == f"1 {module}\n"
    moved = checkout.rename(checkout.with_name("moved"))
    there = moved / "ottla" / "model" / "topics.py"
    assert run(moved, *look, PYTHONDONTWRITEBYTECODE="").stdout == f"1 {there}\n"
    for bytecode in there.parent.glob("__pycache__/topics.*.pyc"):
        bytecode.write_bytes(b"")
    assert run(moved, *look, PYTHONDONTWRITEBYTECODE="").stdout == f"1 {there}\n"


@needs_compiled
def test_the_doctor_tells_sources_that_have_changed_from_a_missing_compiler(checkout: Path) -> None:
    doctor = ("-m", "ottla", "doctor", "-o", "json", "--data", str(checkout.parent / "data"))
    assert "since they were compiled" not in run(checkout, *doctor, OTTLA_KERNEL="").stdout
    os.utime(checkout / "ottla" / "server" / "connection.py")
    assert "since they were compiled: `make setup`" in run(checkout, *doctor, OTTLA_KERNEL="").stdout
    for path in compiled_files(checkout):
        path.unlink()
    assert "install a C compiler" in run(checkout, *doctor, OTTLA_KERNEL="").stdout


@needs_compiled
def test_none_runs_compiled_when_one_is_missing(checkout: Path) -> None:
    compiled_files(checkout)[0].unlink()
    assert run(checkout, OTTLA_KERNEL="").stdout == AS_WRITTEN


@needs_compiled
def test_in_an_installed_package_times_of_files_say_nothing(checkout: Path) -> None:
    (checkout.parent / "setup.py").unlink()
    os.utime(checkout / "ottla" / "server" / "connection.py")
    assert run(checkout, OTTLA_KERNEL="").stdout == COMPILED
