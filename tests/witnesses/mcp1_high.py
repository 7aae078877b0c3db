"""A minimal server on the official Python SDK 1.x, high-level API.

It serves over stdio, or over HTTP: ``mcp1_high.py [PORT [stateless] [json]]``.
"""

import sys

from mcp.server.fastmcp import FastMCP

port, *modes = sys.argv[1:] or ["0"]
server = FastMCP(
    "witness", port=int(port), stateless_http="stateless" in modes, json_response="json" in modes
)


@server.tool()
def echo(text: str) -> str:
    """Give the text back."""
    return text


if __name__ == "__main__":
    server.run("streamable-http" if int(port) else "stdio")
