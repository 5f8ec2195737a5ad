"""Tests of the load client; they need nothing but pytest and hypothesis."""
