"""Tests of the package ``tap``."""
