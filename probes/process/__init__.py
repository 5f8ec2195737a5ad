"""Processes of the engines: which belong to one, and what each read, wrote and used."""
