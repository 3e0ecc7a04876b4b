"""A driver of its own: copies a topic exactly once, until everything that was there is there.

python copy_job.py BOOTSTRAP SOURCE SINK CHECKPOINT [MASTER]

MASTER is one of Spark's: local[2,4] unless told otherwise, spark://... or sc://...
"""

from __future__ import annotations

import sys
import time
from typing import Any

from pyspark.errors import StreamingQueryException

from ottla.spark.session import local_session
from spark.conftest import SPARK_SETTINGS

_TRIES = 20


def main(bootstrap: str, source: str, sink: str, checkpoint: str, master: str = "local[2,4]") -> None:
    spark = _session(master)
    brokers = {"kafka.bootstrap.servers": bootstrap}
    for attempt in range(_TRIES):
        reader = spark.readStream.format("ottla").options(**brokers, subscribe=source)
        reader = reader.options(startingOffsets="earliest", maxOffsetsPerTrigger="100")
        rows = reader.load().selectExpr("key", "value")
        writer = rows.writeStream.format("ottla").options(**brokers, topic=sink)
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
            return
        except StreamingQueryException as error:
            sys.stderr.write(f"try {attempt}: {error}\n")  # whoever runs drivers starts them again
            time.sleep(0.2)
    raise SystemExit("the query never came to its end")


def _session(master: str) -> Any:
    if not master.startswith("sc://"):
        return local_session(master, **SPARK_SETTINGS)
    from pyspark.sql import SparkSession

    return SparkSession.builder.remote(master).getOrCreate()


if __name__ == "__main__":
    main(*sys.argv[1:])
