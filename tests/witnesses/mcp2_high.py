"""A minimal server on the official Python SDK 2.x, high-level API.

It serves over stdio, or over HTTP: ``mcp2_high.py [PORT [stateless] [json]]``.
"""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("witness")


@server.tool()
def echo(text: str) -> str:
    """Give the text back."""
    return text


if __name__ == "__main__":
    if len(sys.argv) == 1:
        server.run()
    else:
        port, *modes = sys.argv[1:]
        server.run(
            "streamable-http",
            port=int(port),
            stateless_http="stateless" in modes,
            json_response="json" in modes,
        )
