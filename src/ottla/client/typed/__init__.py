"""Topics that know what their keys and values are.

    from ottla.client.typed import Topic, json

    orders = Topic("orders", key=str, value=json(Order))
    producer.send(orders, key="customer-7", value=Order(...))
    consumer.subscribe([orders])        # record.value is an Order

A `Topic` is its name, usable wherever a topic's name is.
"""

from ottla.client.typed.avro import avro
from ottla.client.typed.fields import WrongField
from ottla.client.typed.json_codec import json
from ottla.client.typed.topic import Topic

__all__ = ["Topic", "WrongField", "avro", "json"]
