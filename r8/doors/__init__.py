"""Doors of the judge that touch more than files: keys and ssh-keygen, remote paths for SQL."""
