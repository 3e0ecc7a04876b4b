"""ZooKeeper's protocol on the reactor: what its frames mean, in calls of the coordination room."""
