"""Servers, streams and short ways that several tests use."""
