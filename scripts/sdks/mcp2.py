"""A minimal server on the Python SDK 2.x: one tool, one resource, one prompt.

Usage: mcp2.py [PORT [ISSUER JWKS AUDIENCE]] (stdio, HTTP, HTTP behind a token)
"""

import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations

options = {}
if sys.argv[2:]:
    import tokens

    _, issuer, jwks, audience = sys.argv[1:]
    options["token_verifier"] = tokens.Verifier(issuer, jwks, audience)
    options["auth"] = tokens.settings(issuer, audience)
server = MCPServer("minimal", **options)


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
