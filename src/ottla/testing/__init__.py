"""For tests of users and our own: real brokers in processes of their own, started in a tenth of a second."""
