"""Where rows go. A table sink writes one micro-batch so that writing it again changes nothing."""
