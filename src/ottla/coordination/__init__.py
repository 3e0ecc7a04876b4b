"""ZooKeeper's state as a pure machine: the tree of znodes, its watches, its transaction log.

Nothing here opens a socket, starts a thread or reads a clock; files are written through the log room's file
layer only.
"""
