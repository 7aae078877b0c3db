"""A minimal server on the Python SDK 2.x: one tool, one resource, one prompt.

It serves HTTP on the port of its argument, if there is one.
"""

import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("minimal")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def echo(text: str, context: Context) -> str:
    """Log a line and give the text back."""
    await context.info("echo")
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
        server.run("streamable-http", port=int(sys.argv[1]))
    server.run()
