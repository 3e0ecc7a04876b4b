"""docs/clients.md tells the truth: its examples run, and print what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from ottla.testing import BrokerProcess

PAGE = Path(__file__).parent.parent.parent / "docs" / "clients.md"
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n```text\n(?P<printed>.*?)```", re.DOTALL)


def test_the_examples_of_the_page_print_what_it_says() -> None:
    examples = list(EXAMPLE.finditer(PAGE.read_text()))
    assert len(examples) == PAGE.read_text().count("```python")
    names: dict[str, object] = {}
    with BrokerProcess(settings={"group.initial.rebalance.delay.ms": "0"}) as broker:
        for example in examples:
            code = example["code"].replace("localhost:9092", broker.bootstrap)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(code, str(PAGE), "exec"), names)
            assert output.getvalue() == example["printed"], code
