"""Folders, clocks, secrets and other parts of the machine."""
