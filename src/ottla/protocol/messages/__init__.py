"""One file per API: its request, its response and their structs, at all versions."""
