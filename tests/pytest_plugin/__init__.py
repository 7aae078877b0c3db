"""Tests of the pytest plugin."""

from mcp_touchstone.api import live_server
from mcp_touchstone.catalog import loader
from mcp_touchstone.pytest_plugin import collect

KEPT = (live_server, collect, loader.load(), loader.load("security"))
"""Loaded before any in-process run, as pytester removes the modules that a run has imported."""
