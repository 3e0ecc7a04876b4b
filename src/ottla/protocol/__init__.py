"""The wire: messages as declared values, their bytes, and the frames they travel in. No sockets, no state."""
