"""A minimal server on the Python SDK 1.x: one tool, one resource, one prompt.

Usage: mcp1.py [PORT [ISSUER JWKS AUDIENCE]] (stdio, HTTP, HTTP behind a token)
"""

import sys

from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

options = {}
if sys.argv[2:]:
    import tokens

    _, issuer, jwks, audience = sys.argv[1:]
    options["token_verifier"] = tokens.Verifier(issuer, jwks, audience)
    options["auth"] = tokens.settings(issuer, audience)
server = FastMCP("minimal", **options)


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
