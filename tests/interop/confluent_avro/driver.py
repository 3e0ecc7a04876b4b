"""Writes and reads a topic with Confluent's client and its Avro serializer.

    python driver.py write|read <bootstrap> <registry> <topic> <count>

Records are orders with a number and a text; `read` prints each as a line of JSON.
"""

from __future__ import annotations

import json
import sys

from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "number", "type": "long"}, {"name": "text", "type": "string"}],
    }
)


def main() -> None:
    role, bootstrap, registry, topic, count = sys.argv[1:]
    client = SchemaRegistryClient({"url": registry})
    context = SerializationContext(topic, MessageField.VALUE)
    if role == "write":
        serialize = AvroSerializer(client, SCHEMA)
        producer = Producer({"bootstrap.servers": bootstrap})
        for number in range(int(count)):
            producer.produce(topic, serialize({"number": number, "text": "theirs"}, context))
        assert producer.flush(60) == 0
        return
    deserialize = AvroDeserializer(client)
    settings = {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    for _ in range(int(count)):
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        print(json.dumps(deserialize(message.value(), context)))
    consumer.close()


if __name__ == "__main__":
    main()
