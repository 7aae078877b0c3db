"""``python -m mcp_touchstone``: the same program, by an interpreter of one's choice."""

from mcp_touchstone.cli import program

program()
