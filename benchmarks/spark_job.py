"""One Spark that runs the cases of `benchmarks.spark` with one connector; a line of JSON for each."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.memory import fetch_memory
from benchmarks.processes import cpu_seconds, own_resident_mib, resident_mib

from ottla.client.admin import Admin
from ottla.client.producer import Producer
from ottla.model.limits import MIB

_LATENCY_SECONDS = 20
_LATENCY_RATE = 1_000
_MEMORY_MINUTES = 10
_WRITING = ("parquet", "rewrite", "copy", "write")
_COPIES = 2  # of what is written: in files, and on its way there


class Job:
    def __init__(self, connector: str, bootstrap: str, broker_pid: int, records: int, repeats: int) -> None:
        self._connector = connector
        self._brokers = {"kafka.bootstrap.servers": bootstrap}
        self._bootstrap = bootstrap
        self._broker_pid = broker_pid
        self._records = records
        self._repeats = repeats
        self._folder = Path(tempfile.mkdtemp(prefix="ottla-spark-job-"))
        self._sinks = 0
        self._spark = _session(connector)

    def run(self, cases: list[str]) -> None:
        self._noop(1024)  # what starts once is not measured, nor what the JVM learns at first
        for size in (100, 1024):
            for case in cases:
                if case in ("latency", "memory"):
                    if size == 100:
                        self._measure_latency() if case == "latency" else self._measure_memory()
                elif case != "available_now" or size == 100:
                    self._measure(case, size, getattr(self, f"_{case}"))
        self._spark.stop()

    # -- cases ---------------------------------------------------------------------------------------------

    def _count(self, size: int) -> int:
        count: int = self._frame(size).count()
        return count

    def _noop(self, size: int) -> None:
        self._frame(size).write.format("noop").mode("overwrite").save()

    def _parquet(self, size: int) -> None:
        self._frame(size).write.mode("overwrite").parquet(str(self._folder / "parquet"))

    def _rewrite(self, size: int) -> None:
        """What `_parquet` has written, written again: nearly what the writing of it costs alone."""
        rows = self._spark.read.parquet(str(self._folder / "parquet"))
        rows.write.mode("overwrite").parquet(str(self._folder / "rewritten"))

    def _copy(self, size: int) -> None:
        self._save(self._frame(size).select("key", "value"))

    def _write(self, size: int) -> None:
        """Rows whose making costs little beside their writing."""
        rows = self._spark.range(0, self._rows(size), 1, 4)
        self._save(rows.selectExpr("cast(id as string) key", f"'{'x' * size}' value"))

    def _available_now(self, size: int) -> None:
        frame = (
            self._reader(self._spark.readStream, size)
            .option("maxOffsetsPerTrigger", self._records // 4)
            .load()
        )
        writer = frame.writeStream.format("noop").option("checkpointLocation", self._checkpoint())
        writer.trigger(availableNow=True).start().awaitTermination()

    def _measure_latency(self) -> None:
        """From a producer's clock to the function that gets the row, at a thousand records a second."""
        topic = self._new_topic(1)
        seen: list[float] = []

        def take(rows: Any, _batch: int) -> None:
            stamps = [float(row.value) for row in rows.select("value").collect()]
            now = time.time()
            seen.extend(now - stamp for stamp in stamps)

        reader = self._spark.readStream.format(self._connector).options(**self._brokers, subscribe=topic)
        writer = reader.load().writeStream.foreachBatch(take)
        query = writer.option("checkpointLocation", self._checkpoint()).start()
        time.sleep(5)
        stop = threading.Event()
        thread = threading.Thread(target=_produce_steadily, args=(self._bootstrap, topic, stop))
        thread.start()
        time.sleep(5)
        seen.clear()
        time.sleep(_LATENCY_SECONDS)
        found = sorted(seen)
        stop.set()
        thread.join()
        query.processAllAvailable()  # a function that is stopped within ends in a text that floods the log
        query.stop()
        p50, p99 = (found[int(len(found) * share)] * 1000 for share in (0.5, 0.99))
        phases = _median_phases(query.recentProgress)
        _tell(case="latency", bytes=100, result=f"p50 {p50:.0f} ms, p99 {p99:.0f} ms", phases_ms=phases)

    def _measure_memory(self) -> None:
        """Of Spark's Java and of its Python processes, minute by minute, at a million rows a minute."""
        source, sink = self._new_topic(4), self._new_topic(4)
        reader = self._spark.readStream.format(self._connector).options(**self._brokers, subscribe=source)
        writer = reader.load().select("key", "value").writeStream.format(self._connector)
        writer = writer.options(**self._brokers, topic=sink, checkpointLocation=self._checkpoint())
        query = writer.trigger(processingTime="1 second").start()
        stop = threading.Event()
        thread = threading.Thread(target=_produce_much, args=(self._bootstrap, source, stop))
        thread.start()
        java, workers = [], []
        for _ in range(_MEMORY_MINUTES):
            time.sleep(60)
            everything = resident_mib(os.getpid())
            java.append(round(own_resident_mib(self._java_pid())))
            workers.append(round(everything - java[-1] - own_resident_mib(os.getpid())))
            print(f"Java {java[-1]} MiB, workers {workers[-1]} MiB", file=sys.stderr, flush=True)
        stop.set()
        thread.join()
        query.stop()
        ends = json.loads(query.lastProgress.sources[0].endOffset)[source].values()
        _tell(case="memory", bytes=100, result=f"{sum(ends):,} rows; Java {java}, workers {workers} MiB")

    def _java_pid(self) -> int:
        pid: int = self._spark._jvm.java.lang.ProcessHandle.current().pid()
        return pid

    # -- how -----------------------------------------------------------------------------------------------

    def _measure(self, case: str, size: int, action: Callable[[int], Any]) -> None:
        records = self._rows(size)
        rates, ours, theirs = [], [], []
        for _ in range(self._repeats):
            if case in _WRITING:
                fetch_memory(_COPIES * records * size // MIB)
            before = cpu_seconds(os.getpid()), cpu_seconds(self._broker_pid)
            began = time.perf_counter()
            action(size)
            rates.append(records / (time.perf_counter() - began))
            ours.append(cpu_seconds(os.getpid()) - before[0])
            theirs.append(cpu_seconds(self._broker_pid) - before[1])
        millions = records / 1_000_000
        _tell(
            case=case,
            bytes=size,
            result=f"{statistics.median(rates) / 1_000_000:.3f} M rows/s",
            rates=[round(rate) for rate in rates],
            spark_cpu=statistics.median(ours) / millions,
            broker_cpu=statistics.median(theirs) / millions,
        )

    def _rows(self, size: int) -> int:
        return self._records if size == 100 else self._records // 10

    def _reader(self, reader: Any, size: int) -> Any:
        options = {**self._brokers, "subscribe": f"in-{size}", "startingOffsets": "earliest"}
        return reader.format(self._connector).options(**options)

    def _frame(self, size: int) -> Any:
        return self._reader(self._spark.read, size).load()

    def _save(self, rows: Any) -> None:
        rows.write.format(self._connector).mode("append").options(
            **self._brokers, topic=self._new_topic(4)
        ).save()

    def _new_topic(self, partitions: int) -> str:
        self._sinks += 1
        name = f"out-{self._connector}-{self._sinks}"
        with Admin(self._bootstrap) as admin:
            admin.create_topic(name, partitions=partitions, replication_factor=1)
        return name

    def _checkpoint(self) -> str:
        return tempfile.mkdtemp(prefix="checkpoint-", dir=self._folder)


def _session(connector: str) -> Any:
    from ottla.spark.session import local_session

    settings = {"spark__ui__enabled": "false", "spark__driver__memory": "2g", "spark__log__level": "ERROR"}
    if connector == "kafka":
        sys.path.insert(0, "tests")
        from interop.builds import spark_connector_jars

        settings["spark__jars"] = ",".join(str(path) for path in spark_connector_jars())
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return local_session("local[2]", **settings, spark__ui__showConsoleProgress="false")


def _median_phases(progress: list[Any]) -> dict[str, float]:
    """What a batch spends its time on, as Spark tells it."""
    batches = [each.durationMs for each in progress if each.numInputRows]
    names = sorted({name for batch in batches for name in batch})
    return {name: statistics.median(batch.get(name, 0) for batch in batches) for name in names}


def _produce_steadily(bootstrap: str, topic: str, stop: threading.Event) -> None:
    with Producer(bootstrap) as producer:
        began, sent = time.perf_counter(), 0
        while not stop.is_set():
            while sent < (time.perf_counter() - began) * _LATENCY_RATE and not stop.is_set():
                producer.send(topic, b"%.6f" % time.time())
                sent += 1
            time.sleep(0.002)


def _produce_much(bootstrap: str, topic: str, stop: threading.Event) -> None:
    """A million rows a minute, ten times a second, however late the machine is."""
    import pyarrow

    rows = 1_000_000 // 600
    table = pyarrow.table({"key": [b"%d" % each for each in range(rows)], "value": [b"x" * 100] * rows})
    with Producer(bootstrap) as producer:
        began, sent = time.perf_counter(), 0
        while not stop.is_set():
            while sent < (time.perf_counter() - began) * 10 and not stop.is_set():
                producer.send_arrow(table, topic)
                sent += 1
            time.sleep(0.02)


def _tell(**row: Any) -> None:
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    Job(given[0], given[1], int(given[2]), int(given[3]), int(given[4])).run(given[5].split(","))
