"""One invocation of a scenario on an engine: blocks, engine lifetimes, cells, phases."""
