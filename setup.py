"""Builds what is compiled where there is a compiler; everything else about the package is in pyproject.toml.

Without Cython or a C compiler the package installs all the same and runs their sources.
OTTLA_NO_KERNEL=1 skips the build.
"""

from __future__ import annotations

import os
from pathlib import Path

from setuptools import Extension, setup

SOURCE = Path("src")
KERNELS = ("kernel", "kernel_header", "kernel_compaction", "kernel_scan", "kernel_columns", "kernel_rows")


def extension(name: str, source: Path, level: str) -> Extension:
    return Extension(name, [str(source)], extra_compile_args=[level, "-g0"])


def compiled() -> list[Extension]:
    if os.environ.get("OTTLA_NO_KERNEL"):
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    # Kernels of records have other module names than their sources, so that both can be imported.
    kernels = [
        extension(f"ottla.records._{name}", SOURCE / "ottla" / "records" / f"{name}.py", "-O3")
        for name in KERNELS
    ]
    # A module with a .pxd beside it keeps its name (src/ottla/compiled_modules.py). Its annotations are for
    # readers; C types stand in the .pxd alone. They call more than they compute: -O3 takes twice as long to
    # compile and was not faster (benchmarks/hot_path.py).
    declared = [path for path in sorted(SOURCE.rglob("*.pxd")) if path.with_suffix(".py").exists()]
    modules = [
        extension(".".join(path.relative_to(SOURCE).with_suffix("").parts), path.with_suffix(".py"), "-O1")
        for path in declared
    ]
    options = {"include_path": ["src"], "build_dir": "build/cython", "language_level": 3, "quiet": True}
    extensions = [
        *cythonize(kernels, **options),
        *cythonize(modules, **options, compiler_directives={"annotation_typing": False}),
    ]
    for each in extensions:
        each.optional = True  # said here, because cythonize() forgets it
    return extensions


setup(ext_modules=compiled(), options={"build_ext": {"parallel": True}})  # a compiler on each core
