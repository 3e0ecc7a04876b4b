"""The `ottla` command. Parses, calls a room below, prints; start-up time is part of its promise."""
