"""Ottla: a message system in Python that any Kafka client can use unmodified."""

__version__ = "0.1.0"
