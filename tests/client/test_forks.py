"""A client that was made before a fork stays with the parent: the child is told so, and disturbs nothing."""

from __future__ import annotations

import subprocess
import sys

from client.conftest import NewTopicName
from ottla.client import read

PROGRAM = """
import os, sys
from ottla.client import Admin, Consumer, Producer, TopicPartition
from ottla.client.errors import Misused

bootstrap, topic = sys.argv[1:]
admin, producer, consumer = Admin(bootstrap), Producer(bootstrap), Consumer(bootstrap)
consumer.assign({TopicPartition(topic, 0): "start"})
producer.send(topic, b"before").result(60)
while not consumer.poll(1):
    pass
child = os.fork()
if child == 0:
    told = []
    sends, polls = lambda: producer.send(topic, b"lost"), lambda: consumer.poll(1)
    for use in (sends, polls, producer.flush, admin.topic_names):
        try:
            use()
        except Misused as error:
            told.append("make one in each process" in str(error))
    for client in (producer, consumer, admin):
        client.close()
    with Producer(bootstrap) as own:
        own.send(topic, b"child").result(60)
    os._exit(0 if told == [True] * 4 else 1)
assert os.waitpid(child, 0)[1] == 0
producer.send(topic, b"parent").result(60)
found = []
while len(found) < 2:
    found += [record.value for record in consumer.poll(1)]
assert found == [b"child", b"parent"], found
assert topic in admin.topic_names()
for client in (producer, consumer, admin):
    client.close()
"""


def test_a_forked_child_is_told_to_make_clients_of_its_own(bootstrap: str, new_topic: NewTopicName) -> None:
    topic = new_topic(1)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, bootstrap, topic],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with read(bootstrap, topic) as reading:
        assert [record.value for record in reading] == [b"before", b"child", b"parent"]
