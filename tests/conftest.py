"""The order of the tests: files of few tests come first.

These tell long stories (kills, groups, Spark), which would otherwise begin when there is nothing left to run
beside them. Files of hundreds of quick tests fill the gaps at the end. It needs `--no-loadscope-reorder`:
pytest-xdist's own order is the opposite.
"""

from __future__ import annotations

from collections import Counter

import pytest


@pytest.hookimpl(trylast=True)  # after those that are not run have been taken out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    counts = Counter(item.path for item in items)
    items.sort(key=lambda item: (counts[item.path], item.path))
