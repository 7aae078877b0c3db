"""A minimal server on fastmcp.

It serves over stdio, or over HTTP: ``fastmcp_high.py [PORT [stateless] [json]]``.
"""

import sys

from fastmcp import FastMCP

server = FastMCP("witness")


@server.tool
def echo(text: str) -> str:
    """Give the text back."""
    return text


if __name__ == "__main__":
    if len(sys.argv) == 1:
        server.run()
    else:
        port, *modes = sys.argv[1:]
        server.run(
            "http",
            port=int(port),
            stateless_http="stateless" in modes,
            json_response="json" in modes,
        )
