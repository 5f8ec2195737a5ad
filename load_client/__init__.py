"""The load client: an instrument of its own, standard library only, copyable to any host."""
