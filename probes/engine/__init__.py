"""An engine's own counters: its /metrics page."""
