"""Jobs without a KV engine: model loads, switches, checkpoints."""
