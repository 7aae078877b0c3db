"""Tests of mcp_touchstone.gateway."""
