"""Pipelines on Spark: topics as sources and sinks, and whole projects defined in a folder."""
