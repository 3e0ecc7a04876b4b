"""The cluster's metadata: topics, brokers and settings, and every change to them.

A change is decided from the image, written as one multi of znodes, applied to the image once it is durable,
and then announced. No socket, no thread, no file; time and randomness come from outside.
"""
