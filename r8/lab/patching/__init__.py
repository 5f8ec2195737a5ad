"""The LMCache patch: found by digest, applied, and taken back."""
