"""Sockets, frames and requests: the reactor, the routes, the parking and one handler per API."""
