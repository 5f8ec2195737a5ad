"""The host as a whole: CPU, memory and pressure, and a capture of its settings."""
