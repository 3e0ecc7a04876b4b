"""The rows of the table, one file for each family."""

from benchmarks.against_kafka.families import (
    fetches,
    groups,
    latencies,
    librdkafka,
    life,
    partitions,
    produces,
    requests,
    transactions,
)

TRIALS = (
    *requests.TRIALS,
    *produces.TRIALS,
    *fetches.TRIALS,
    *latencies.TRIALS,
    *librdkafka.TRIALS,
    *groups.TRIALS,
    *transactions.TRIALS,
    *life.TRIALS,
    *partitions.TRIALS,
)
