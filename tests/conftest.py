"""The order of the tests: files of few tests come first, and Spark beside what mostly waits.

Files of few tests tell long stories (kills, groups, Spark), which would otherwise begin when nothing is left
to run beside them; files of hundreds of quick tests fill the gaps at the end. Spark keeps both cores busy by
itself, so its files are strewn among the others. All this needs `--no-loadscope-reorder`: the own order of
pytest-xdist is the opposite.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

_TESTS = Path(__file__).parent
_WITH_SPARK = (_TESTS / "spark", _TESTS / "pipeline")
_STRIDE = 7  # one file of so many has Spark: about one of three workers is at one then


@pytest.hookimpl(trylast=True)  # after those that are not run have been taken out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    counts = Counter(item.path for item in items)
    places: dict[Path, int] = {}
    of_spark = others = 0
    for path in sorted(counts, key=lambda path: (counts[path], path)):
        if any(map(path.is_relative_to, _WITH_SPARK)):
            places[path] = of_spark * _STRIDE
            of_spark += 1
        else:
            places[path] = others + others // (_STRIDE - 1) + 1
            others += 1
    items.sort(key=lambda item: (places[item.path], item.path))
