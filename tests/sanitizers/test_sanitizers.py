"""All that is compiled, under gcc's address and undefined behaviour sanitizers; the load is our own tests.

The package is copied with modules that were compiled anew, and the tests of a room run on that copy, in a
process of their own. Brokers that they start run it too. Whatever a sanitizer finds, in whichever process, is
in a file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
# Of rooms with many tests those that reach the compiled modules; with processes that are killed, only where
# they matter.
LOADS = {
    "records": ("records",),
    "protocol": ("protocol",),
    "log": ("log",),
    "replica": ("replica",),
    "server": ("server",),
    "hostile": ("hostile",),
    "coordination": ("coordination",),
    "client": (
        "client/test_producer.py",
        "client/test_producer_faults.py",
        "client/test_consumer.py",
        "client/test_columns.py",
        "client/test_send_arrow.py",
        "client/test_transactions.py",
        "client/test_aio.py",
    ),
}
USED = """
from ottla import compiled_modules
from ottla.records import _kernel
assert compiled_modules.are_compiled()
print(_kernel.__file__)
"""


def library(name: str) -> str:
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a copy of the package, compiled with the sanitizers."""
    place = tmp_path_factory.mktemp("sanitized")
    unbuilt = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(PROJECT / "src" / "ottla", place / "lib" / "ottla", ignore=unbuilt)
    into = ["--build-lib", str(place / "lib"), "--build-temp", str(place / "temp")]
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--force", *into],
        cwd=PROJECT,
        env=os.environ | {"CC": "gcc", "CFLAGS": f"-O1 -g {SANITIZE}", "LDFLAGS": SANITIZE},
        capture_output=True,
        check=True,
    )
    return place / "lib"


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(sys.platform != "linux" or shutil.which("gcc") is None, reason="needs gcc's sanitizers")
@pytest.mark.parametrize("room", LOADS)
def test_compiled_modules_are_clean_under_the_sanitizers(room: str, package: Path, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    options = f"log_path={reports}/report"
    environment = os.environ | {
        "LD_PRELOAD": f"{library('libasan.so')} {library('libstdc++.so')}",
        "ASAN_OPTIONS": f"detect_leaks=0:{options}",  # the interpreter leaves much to the end of the process
        "UBSAN_OPTIONS": f"print_stacktrace=1:{options}",
        "PYTHONMALLOC": "malloc",  # every bytes object is a block of its own, with a red zone behind it
        "PYTHONPATH": str(package),
        "OTTLA_KERNEL": "compiled",
    }
    environment.pop("PYTEST_XDIST_WORKER", None)
    used = subprocess.run(
        [sys.executable, "-c", USED], env=environment, capture_output=True, text=True, check=False
    )
    assert used.stdout.startswith(str(package)), used.stderr
    tests = [str(PROJECT / "tests" / path) for path in LOADS[room]]
    settings = ["-q", "-s", "-m", "not slow and not interop", "-p", "no:cacheprovider", "-o", "timeout=900"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *settings, *tests],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    found = "\n".join(path.read_text(errors="replace") for path in sorted(reports.iterdir()))
    assert not found, found
    assert "runtime error" not in done.stderr, done.stderr  # which gcc's puts there in any case
    assert done.returncode == 0, done.stdout + done.stderr
