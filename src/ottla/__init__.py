"""Ottla: a message system in Python that any Kafka client can use unmodified."""

from ottla import compiled_modules

__version__ = "0.1.0"

compiled_modules.choose()
