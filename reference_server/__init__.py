"""A small MCP server that keeps every clause: the right answer to compare other servers with.

It speaks all five revisions of the Model Context Protocol over stdio, both eras in one process,
on the standard library alone. It shares no code with the harness that judges it.

Start it with ``python -m reference_server --root DIR``; embed it with ``server.serve``.
"""
