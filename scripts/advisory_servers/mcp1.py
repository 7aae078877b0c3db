"""A server on the Python SDK 1.x as an application writes it, right or wrong.

Usage: python mcp1.py PORT [WORD...], HTTP at /mcp of that port; PORT 0 is stdio. With the variables
ISSUER and AUDIENCE it accepts the tokens of that issuer, which it asks about each one.

audience: validate_token_resource is on          subject: a token has its user as its subject
"""

import asyncio
import json
import os
import sys
import urllib.parse
from http.client import HTTPConnection

from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

PORT, *WORDS = sys.argv[1:]


def asked(form: bytes) -> bytes:
    """Return what the issuer answers to a question about a token."""
    connection = HTTPConnection(urllib.parse.urlsplit(os.environ["ISSUER"]).netloc)
    connection.request(
        "POST", "/introspect", form, {"Content-Type": "application/x-www-form-urlencoded"}
    )
    return connection.getresponse().read()


class Introspection:
    """Asks the issuer about each token."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what the issuer knows of a token; None if it is not active."""
        form = urllib.parse.urlencode({"token": token}).encode()
        known = json.loads(await asyncio.to_thread(asked, form))
        if not known["active"]:
            return None
        audience = known.get("aud")
        listed = audience if isinstance(audience, list) else [audience]
        own = os.environ["AUDIENCE"]
        subject = {"subject": known.get("sub")} if "subject" in WORDS else {}
        return AccessToken(
            token=token,
            client_id=known.get("client_id", "client"),
            scopes=known.get("scope", "").split(),
            resource=own if own in listed else listed[0],
            **subject,
        )


def made() -> FastMCP:
    """Return the server."""
    if "ISSUER" not in os.environ:
        return FastMCP("counter", port=int(PORT))
    checks = {"validate_token_resource": True} if "audience" in WORDS else {}
    auth = AuthSettings(
        issuer_url=os.environ["ISSUER"],
        resource_server_url=os.environ["AUDIENCE"],
        required_scopes=[],
        **checks,
    )
    return FastMCP("counter", port=int(PORT), auth=auth, token_verifier=Introspection())


server = made()


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def count(items: list[str]) -> str:
    """Count the items."""
    return str(len(items))


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
async def echo(text: str) -> str:
    """Give the text back."""
    await asyncio.sleep(0.02)
    return text


if __name__ == "__main__":
    server.run("streamable-http" if int(PORT) else "stdio")
