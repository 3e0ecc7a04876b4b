"""Of all that Spark says about a failed query, a person is told the cause."""

from __future__ import annotations

import pytest

from ottla.pipeline.failure_reasons import reason

IN_A_SOURCE = """\
[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming data source perform latestOffset: \
Traceback (most recent call last):
  File "/site-packages/pyspark/sql/streaming/python_streaming_source_runner.py", line 209, in main
    latest_offset_func(reader, outfile)
  File "/src/ottla/client/admin_asking.py", line 40, in ask
    raise UnknownTopic(topic)
ottla.client.errors.UnknownTopic: there is no topic 'orders'; create it, or check the name
 SQLSTATE: 38000
"""
IN_A_BATCH = """\
[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink. \
Reason: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/site-packages/py4j/clientserver.py", line 641, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
psycopg.OperationalError: connection failed: connection to server at "127.0.0.1", port 1 failed
\tat py4j.Protocol.getReturnValue(Protocol.java:476)
"""
NO_SESSION = """\
An error occurred while calling None.org.apache.spark.sql.classic.SparkSession.
: java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.
\tat org.apache.spark.SparkContext.assertNotStopped(SparkContext.scala:130)
"""
IN_A_TASK = """\
Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times
org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] expectation 'priced' does not hold: \
cents > 0 SQLSTATE: P0001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.raiseError(QueryExecutionErrors.scala:2746)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (IN_A_SOURCE, "UnknownTopic: there is no topic 'orders'; create it, or check the name"),
        (
            IN_A_BATCH,
            'OperationalError: connection failed: connection to server at "127.0.0.1", port 1 failed',
        ),
        (
            IN_A_TASK,
            "expectation 'priced' does not hold: cents > 0",
        ),
        (NO_SESSION, "IllegalStateException: Cannot call methods on a stopped SparkContext."),
        ("the driver went away", "the driver went away"),
        ("", "RuntimeError"),
    ],
)
def test_the_cause_is_told_without_traces(text: str, expected: str) -> None:
    assert reason(RuntimeError(text)) == expected
