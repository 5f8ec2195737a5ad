"""From the bytes of a response to its events: HTTP, server-sent events, completion deltas."""
