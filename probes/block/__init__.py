"""Block devices: their counters, what they are made of, and where a path lies."""
