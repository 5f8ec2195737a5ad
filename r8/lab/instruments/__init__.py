"""Probes, load client, fio and journals: what writes evidence during a run."""
