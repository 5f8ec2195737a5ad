"""The rehearsal: the real software on a shaped storage device, on one machine."""
