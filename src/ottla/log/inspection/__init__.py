"""Looking at the files of logs from outside, whoever wrote them: dump, verify, repair.

Reads without the directory's lock and changes nothing, so it may run beside a broker; only `repair` writes,
and holds the lock while it does.
"""
