"""One file per API, named like its messages. Reads a request, asks the rooms below, answers."""
