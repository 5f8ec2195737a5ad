"""What was published, as data: claims, the ledger of figures, arithmetic over printed numbers."""
