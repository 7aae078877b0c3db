"""A minimal server on the Python SDK 1.x: one tool, one resource, one prompt.

It serves HTTP on the port of its argument, if there is one.
"""

import sys

from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

server = FastMCP("minimal")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.resource("note://today")
def today() -> str:
    """Return a note."""
    return "Nothing happened."


@server.prompt()
def greet(name: str) -> str:
    """Greet a person."""
    return f"Say hello to {name}."


if __name__ == "__main__":
    if sys.argv[1:]:
        server.settings.port = int(sys.argv[1])
        server.run("streamable-http")
    server.run()
