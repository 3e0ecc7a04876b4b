"""For tests of users and our own: real brokers in processes of their own, started in no time."""

from ottla.testing.broker_process import BrokerDied, BrokerProcess
from ottla.testing.coordination_process import CoordinationProcess

__all__ = ["BrokerDied", "BrokerProcess", "CoordinationProcess"]
