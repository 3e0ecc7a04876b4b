"""Builds the optional compiled kernels; everything else about the package is in pyproject.toml.

Without Cython or a C compiler the package installs all the same and runs their sources.
OTTLA_NO_KERNEL=1 skips the build.
"""

from __future__ import annotations

import os

from setuptools import Extension, setup


def kernels() -> list[Extension]:
    if os.environ.get("OTTLA_NO_KERNEL"):
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    # Other module names than the sources', so that both can be imported beside each other.
    sources = [
        Extension(
            f"ottla.records._{name}", [f"src/ottla/records/{name}.py"], extra_compile_args=["-O3", "-g0"]
        )
        for name in ("kernel", "kernel_header", "kernel_compaction", "kernel_scan", "kernel_columns")
    ]
    extensions = cythonize(
        sources, include_path=["src"], build_dir="build/cython", language_level=3, quiet=True
    )
    for extension in extensions:
        extension.optional = True  # said here, because cythonize() forgets it
    return extensions


setup(ext_modules=kernels())
