"""Running one phase of load: its shape, its processes, its progress and its summary."""
