"""The cold-read certificate: rules over the tables of one run, each with a stable id."""
