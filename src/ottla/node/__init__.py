"""One broker process: settings, wiring, start and stop. The only room that owns threads."""
