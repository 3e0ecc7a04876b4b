"""Coordinators: pure state machines whose whole durable state is a log of records.

A request is decided from the state, which gives records and answers; the records are applied to the state and
appended to the coordinator's own log, and the answers leave when the log is durable. After a restart the same
`apply` rebuilds the state. No sockets, files, threads or clocks here: time comes in as an argument.
"""
