"""Sockets: connecting (also through TLS and proxies), sending, and receiving with stamps."""
