"""A partition's replica: its offsets, epochs and who may read how far. Pure over a log."""
