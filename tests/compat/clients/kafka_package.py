"""kafka-python's package, imported once with its own warnings silenced.

It reads its schemas with a function that Python 3.11 and 3.12 call deprecated, and our warnings are errors.
Every test module takes the package from here.
"""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, errors
    from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType, OffsetSpec
    from kafka.consumer.fetcher import ConsumerRecord
    from kafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder

__all__ = [
    "AlterConfigOp",
    "ConfigResource",
    "ConfigResourceType",
    "ConsumerRecord",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaProducer",
    "LegacyRecordBatch",
    "LegacyRecordBatchBuilder",
    "OffsetSpec",
    "TopicPartition",
    "errors",
    "kafka",
]
