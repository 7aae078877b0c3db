"""Baselines: which failures are accepted."""
