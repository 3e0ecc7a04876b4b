"""Clicks arrive late and twice; their counts by minute are right, in Parquet files, and drawn.

python -m examples.clickstream.story
"""

from __future__ import annotations

import json
import math
import random
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet
from examples.telling import HOME, stage, step, type_in, verdict
from matplotlib.figure import Figure

from ottla.client import Admin, Producer

PICTURE = HOME / "clickstream.png"
OPENING = datetime(2026, 11, 1, 10, tzinfo=UTC)
MINUTES = 30
PAGES = {"/": 10, "/shop": 6, "/cart": 3, "/help": 1}
LATE_SECONDS_MAX = 40

Visits = Counter[tuple[datetime, str]]
Click = tuple[str, str, datetime]  # id, page, event time


def main() -> None:
    with stage("clickstream") as (broker, folder):
        clicks = make_clicks()
        send(broker.bootstrap, clicks)
        type_in("pipeline", "check", folder)
        step("what is there now, through Spark:")
        type_in("pipeline", "run", "--once", folder)
        files = pyarrow.parquet.read_table(folder / "visits")
        found: Visits = Counter()
        for row in files.to_pylist():
            found[row["minute"], row["page"]] += row["visits"]
        expected = Counter((at.replace(second=0, microsecond=0), page) for _, page, at in clicks)
        step(f"the files have {files.num_rows} rows, one for each minute and page; the busiest:")
        for (minute, page), visits in found.most_common(3):
            print(f"   {minute:%H:%M}  {page:<6} {visits:>4} visits")
        verdict("every click counted once, in its own minute", found == expected)
        draw(found)
        shutil.copytree(folder / "visits", HOME / "clickstream-visits", dirs_exist_ok=True)
    step(f"{PICTURE} shows them; {HOME / 'clickstream-visits'} has the files, for any reader of Parquet")


def make_clicks() -> list[Click]:
    """In the order in which they happened; a wave goes through the half hour."""
    rng = random.Random(7)
    clicks: list[Click] = []
    for second in range(MINUTES * 60):
        rate = 6 + 4 * math.sin(second / 300)
        for _ in range(int(rng.gauss(rate, 1.5))):
            at = OPENING + timedelta(seconds=second, milliseconds=rng.randrange(1000))
            page = rng.choices(list(PAGES), list(PAGES.values()))[0]
            clicks.append((f"c{len(clicks)}", page, at))
    return clicks


def send(bootstrap: str, clicks: list[Click]) -> None:
    """As phones do: late, and some twice because the answer got lost."""
    rng = random.Random(8)
    sent = clicks + rng.sample(clicks, len(clicks) // 20)
    arriving = sorted(
        (at + timedelta(seconds=rng.uniform(0, LATE_SECONDS_MAX)), name, page, at) for name, page, at in sent
    )
    with Admin(bootstrap) as admin:
        admin.create_topic("clicks", partitions=2)
    with Producer(bootstrap, linger_ms=5) as producer:
        for _, name, page, at in arriving:
            click = {"click": name, "page": page, "at": at.isoformat()}
            producer.send("clicks", json.dumps(click).encode(), name.encode())
        closing = OPENING + timedelta(hours=2)
        for partition in range(2):  # much later clicks close the last minutes
            last = {"click": f"last{partition}", "page": "/", "at": closing.isoformat()}
            producer.send("clicks", json.dumps(last).encode(), partition=partition)
    twice = len(sent) - len(clicks)
    step(
        f"{len(clicks):,} clicks of {MINUTES} minutes, up to {LATE_SECONDS_MAX} s late, {twice} of them twice"
    )


def draw(visits: Visits) -> None:
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot()
    minutes = sorted({minute for minute, _ in visits})
    for page in PAGES:
        axes.plot([f"{each:%H:%M}" for each in minutes], [visits[each, page] for each in minutes], label=page)
    axes.set_title("Visits by minute and page")
    axes.set_xticks([f"{each:%H:%M}" for each in minutes[::5]])
    axes.set_ylabel("visits")
    axes.legend()
    Path(PICTURE).parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=120)


if __name__ == "__main__":
    main()
