"""Evidence that travels: bundles, signatures, redaction, and their verification."""
