"""Do the published numbers agree with each other? Rules over the ledger, without any run."""
