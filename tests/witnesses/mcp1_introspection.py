"""A minimal server on mcp 1.x that asks its issuer about tokens: ``... PORT ISSUER AUDIENCE``."""

import sys

import httpx
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

port, issuer, audience = sys.argv[1:4]


class Introspects:
    """Accepts the tokens that the issuer calls active, for this server."""

    async def verify_token(self, token: str) -> AccessToken | None:
        async with httpx.AsyncClient() as client:
            said = (await client.post(f"{issuer}/introspect", data={"token": token})).json()
        named = said.get("aud")
        if not said["active"] or audience not in (named if isinstance(named, list) else [named]):
            return None
        return AccessToken(
            token=token,
            client_id=said["client_id"],
            scopes=said["scope"].split(),
            expires_at=said["exp"],
            resource=audience,
        )


server = FastMCP(
    "witness",
    host="127.0.0.1",
    port=int(port),
    token_verifier=Introspects(),
    auth=AuthSettings(issuer_url=issuer, required_scopes=["read"], resource_server_url=audience),
)


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def echo(text: str) -> str:
    """Give the text back."""
    return text


server.run("streamable-http")
