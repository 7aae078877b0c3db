"""Baselines: which failures are accepted."""

from typing import Final

FILE: Final = "touchstone-baseline.toml"
