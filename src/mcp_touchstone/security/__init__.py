"""The engine of the security suite."""
