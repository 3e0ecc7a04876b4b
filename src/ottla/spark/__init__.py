"""Topics in Spark: a source and a sink for PySpark. Talks to brokers with `client`, reads files with `log`.

Spark loads it through the top-level module `pyspark_ottla`. Everything here may run in a driver, in a
planner's short-lived process or in an executor's worker, so values that travel between them are small and
picklable.
"""
