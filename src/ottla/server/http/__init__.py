"""A little HTTP on the reactor for those who watch a broker: pages by path, everything bounded."""
