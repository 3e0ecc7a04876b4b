"""For tests of users and our own: real brokers in processes of their own, started in no time."""

from ottla.testing.broker_process import BrokerDied, BrokerProcess

__all__ = ["BrokerDied", "BrokerProcess"]
