"""The page cache: residency of files, eviction, and reads that pass it by."""
