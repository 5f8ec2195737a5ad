"""Hosts, commands, processes: everything the lab starts is stopped again."""
