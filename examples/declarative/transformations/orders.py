"""Orders out of a topic into a table, their totals by city, and the dear ones into another topic."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

spark = SparkSession.active()
BROKERS = os.environ["OTTLA_BOOTSTRAP"]
DEAR_CENTS = 90_000


@dp.table
def orders() -> DataFrame:
    records = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", BROKERS)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    order = sql.from_json(sql.col("value").cast("string"), "id BIGINT, city STRING, cents BIGINT")
    return records.select(order.alias("order")).select("order.*")


@dp.materialized_view
def totals() -> DataFrame:
    return (
        spark.read.table("orders")
        .groupBy("city")
        .agg(sql.count("*").alias("orders"), sql.sum("cents").alias("cents"))
    )


dp.create_sink(
    "dear_orders",
    "ottla",
    {"kafka.bootstrap.servers": BROKERS, "topic": "dear-orders", "delivery": "exactly-once"},
)


@dp.append_flow(target="dear_orders")
def dear() -> DataFrame:
    chosen = spark.readStream.table("orders").filter(sql.col("cents") >= DEAR_CENTS)
    return chosen.select(sql.col("city").alias("key"), sql.to_json(sql.struct("*")).alias("value"))
