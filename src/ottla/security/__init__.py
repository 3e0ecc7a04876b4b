"""Who asks, what they may do, and how much of it. Pure: no sockets, no clock, no files."""
