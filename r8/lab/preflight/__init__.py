"""What is looked at before anything starts, and what would be run."""
