"""Forensic probes: raw counters of disks, processes, caches, hosts and engines, each with its time.

A standalone instrument: standard library only, relative imports, copyable to any Linux host. It
records and never judges: no rate, no difference, no average leaves this package.
"""

__version__ = "1"
