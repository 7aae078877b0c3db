"""How the minimal servers on the Python SDK read the tokens of an issuer."""

import asyncio

import jwt
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings


class Verifier:
    """Accepts the JWTs of an issuer for one audience."""

    def __init__(self, issuer: str, jwks: str, audience: str) -> None:
        """Name the issuer, the URL of its keys, and the URL of the server."""
        self.keys = jwt.PyJWKClient(jwks)
        self.expected = {"issuer": issuer, "audience": audience, "algorithms": ["RS256"]}

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what a token grants; None if it is not accepted."""
        return await asyncio.to_thread(self._read, token)

    def _read(self, token: str) -> AccessToken | None:
        try:
            key = self.keys.get_signing_key_from_jwt(token).key
            claims = jwt.decode(token, key, **self.expected)
        except jwt.PyJWTError:
            return None
        return AccessToken(
            token=token,
            client_id=claims.get("client_id", "unknown"),
            scopes=claims.get("scope", "").split(),
            expires_at=claims["exp"],
            resource=self.expected["audience"],
        )


def settings(issuer: str, audience: str) -> AuthSettings:
    """Return the settings of a server that wants the scope ``read``."""
    return AuthSettings(issuer_url=issuer, resource_server_url=audience, required_scopes=["read"])
