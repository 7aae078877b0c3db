"""A minimal server on fastmcp: one tool, one resource, one prompt.

Usage: fastmcp_server.py [PORT [ISSUER JWKS AUDIENCE]] (stdio, HTTP, HTTP behind a token)
"""

import sys

from fastmcp import FastMCP

server = FastMCP("minimal")


@server.tool(annotations={"readOnlyHint": True})
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.resource("note://today")
def today() -> str:
    """Return a note."""
    return "Nothing happened."


@server.prompt
def greet(name: str) -> str:
    """Greet a person."""
    return f"Say hello to {name}."


if __name__ == "__main__":
    if sys.argv[2:]:
        from fastmcp.server.auth import RemoteAuthProvider
        from fastmcp.server.auth.providers.jwt import JWTVerifier

        port, issuer, jwks, audience = sys.argv[1:]
        verifier = JWTVerifier(
            jwks_uri=jwks, issuer=issuer, audience=audience, required_scopes=["read"]
        )
        server.auth = RemoteAuthProvider(verifier, [issuer], base_url=f"http://127.0.0.1:{port}")
    if sys.argv[1:]:
        server.run("http", port=int(sys.argv[1]), show_banner=False)
    server.run(show_banner=False)
