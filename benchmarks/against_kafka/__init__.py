"""Ottla against Apache Kafka on this machine, in one run and one table: `python -m` this package."""
