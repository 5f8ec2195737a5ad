"""The load client beside its peers, on one null server: `python -m load_client.bench`."""
