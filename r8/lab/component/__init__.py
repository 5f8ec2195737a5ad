"""LMCache's disk backend alone, without an engine: bench and faults."""
