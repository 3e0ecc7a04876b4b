"""A benchmark's result as a picture, with matplotlib (the extra `ottla[plot]`)."""

from __future__ import annotations

from ottla.cli.bench_report import Result


def plot(result: Result, file: str) -> None:
    import matplotlib

    matplotlib.use("Agg")  # no display is needed
    from matplotlib import pyplot

    figure, (rate, latency) = pyplot.subplots(1, 2, figsize=(11, 4))
    figure.suptitle(f"{result.title}: {result.records / result.seconds:,.0f} records/s")
    rate.plot(range(1, len(result.per_second) + 1), result.per_second, marker="o")
    rate.set(xlabel="second", ylabel="records", ylim=(0, None), title="records in each second")
    values = sorted(result.latencies.values_ms())
    if values:
        shares = [(index + 1) / len(values) * 100 for index in range(len(values))]
        latency.plot(values, shares)
        latency.set(xscale="log", xlabel="ms", ylabel="% of records", title=result.latency_of)
        latency.grid(visible=True, which="both", alpha=0.3)
    else:
        latency.set_axis_off()
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    pyplot.close(figure)
