"""What a run leaves behind: journals, tables, manifests; written once, read back checked."""
