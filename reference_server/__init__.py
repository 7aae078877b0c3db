"""A small MCP server that follows every clause, as a reference for other servers.

It supports all five revisions of the Model Context Protocol over stdio, in one process, with the
standard library only. It shares no code with the test harness.

Start it with ``python -m reference_server --root DIR``, or embed it with ``server.serve``.
"""
