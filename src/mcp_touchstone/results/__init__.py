"""Verdicts, runs, thresholds and comparisons of runs."""
