"""A minimal server on fastmcp that wants JWTs: ``fastmcp_jwt.py PORT ISSUER JWKS AUDIENCE``."""

import sys

from fastmcp import FastMCP
from fastmcp.server.auth import RemoteAuthProvider
from fastmcp.server.auth.providers.jwt import JWTVerifier

port, issuer, jwks, audience = sys.argv[1:5]
verifier = JWTVerifier(jwks_uri=jwks, issuer=issuer, audience=audience, required_scopes=["read"])
auth = RemoteAuthProvider(verifier, [issuer], base_url=f"http://127.0.0.1:{port}")
server = FastMCP("witness", auth=auth)


@server.tool(annotations={"readOnlyHint": True})
def echo(text: str) -> str:
    """Give the text back."""
    return text


server.run("http", host="127.0.0.1", port=int(port))
