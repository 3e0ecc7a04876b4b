"""Builds the optional compiled kernel; everything else about the package is in pyproject.toml.

Without Cython or a C compiler the package installs all the same and runs the kernel's source.
OTTLA_NO_KERNEL=1 skips the build.
"""

from __future__ import annotations

import os

from setuptools import Extension, setup


def kernel() -> list[Extension]:
    if os.environ.get("OTTLA_NO_KERNEL"):
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    # Another module name than the source's, so that both can be imported beside each other.
    source = Extension(
        "ottla.records._kernel", ["src/ottla/records/kernel.py"], extra_compile_args=["-O3", "-g0"]
    )
    extensions = cythonize([source], build_dir="build/cython", language_level=3, quiet=True)
    for extension in extensions:
        extension.optional = True  # said here, because cythonize() forgets it
    return extensions


setup(ext_modules=kernel())
