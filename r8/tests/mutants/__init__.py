"""Mutants: small faults put into the judge one at a time, to see whether its tests notice."""
