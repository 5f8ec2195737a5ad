"""Metrics of checked runs: the SQL of data/queries, run here, and what each column means."""
