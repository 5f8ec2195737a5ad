"""GPUs and other accelerators: one module per source, listed in `sources`."""
