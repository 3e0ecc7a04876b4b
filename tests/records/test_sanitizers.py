"""The compiled kernel under gcc's address and undefined behaviour sanitizers; the load is our own tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
LOAD = [
    "test_hostile_batches.py",
    "test_content.py",
    "test_batch.py",
    "test_compaction_kernel.py",
    "test_columns.py",
    "test_rows.py",
]

RUN = """
import importlib.util, sys
import pytest
end = sys.argv.index("--")
for path in sys.argv[1:end]:
    name = path.rpartition("/")[2].partition(".")[0]
    spec = importlib.util.spec_from_file_location(f"ottla.records.{name}", path)
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
# Our pytest plugin would be rewritten, but the kernels have imported its package already.
options = ["-q", "-s", "-m", "not slow", "-p", "no:cacheprovider"]
options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
sys.exit(pytest.main([*options, *sys.argv[end + 1 :]]))
"""


def library(name: str) -> str:
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux" or shutil.which("gcc") is None, reason="needs gcc's sanitizers")
def test_the_kernel_is_clean_under_the_sanitizers(tmp_path: Path) -> None:
    into = ["--build-lib", str(tmp_path / "lib"), "--build-temp", str(tmp_path / "temp")]
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--force", *into],
        cwd=PROJECT,
        env=os.environ | {"CC": "gcc", "CFLAGS": f"-O1 -g {SANITIZE}", "LDFLAGS": SANITIZE},
        capture_output=True,
        check=True,
    )
    kernels = sorted(str(path) for path in tmp_path.glob("lib/**/_kernel*.so"))  # _kernel itself first
    assert kernels
    tests = [str(PROJECT / "tests" / "records" / name) for name in LOAD]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *kernels, "--", *tests],
        cwd=PROJECT,
        env=os.environ
        | {
            "LD_PRELOAD": f"{library('libasan.so')} {library('libstdc++.so')}",
            "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter itself leaves much to the end of the process
            "PYTHONMALLOC": "malloc",  # every bytes object is a block of its own, with a red zone behind it
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "runtime error" not in done.stderr, done.stderr
    assert "AddressSanitizer" not in done.stderr, done.stderr
    assert done.returncode == 0, done.stdout + done.stderr
