"""The parts of a server that asks clients for access tokens: what they ask, and what is wrong."""

from typing import Any, Final

from mcp_touchstone.bridge.headers import WELL_KNOWN
from mcp_touchstone.parts.part import FORGETS, MOVES, TWICE, Json, Part, Protection, variant

ELSEWHERE: Final = "https://elsewhere.invalid"
TENANT: Final = "/tenant"


class Auth(Part):
    """Ask for a token, with the metadata and the scope in the challenge."""

    modern = both = may_fail = True
    protection = Protection(supported=("read", "write", "admin"))


class AuthMarch(Auth):
    """Ask for a token as a server of 2025-03-26 without metadata."""

    modern = both = False
    protection = Protection(scope="", defaults=True)

    def initialize(self, request: Json) -> None:
        """Answer initialize."""
        self.revision = "2025-03-26"
        self.answer(request, self.opening())


def _auth(about: str, **members: Any) -> type[Part]:
    """Return a part that differs from ``Auth`` in its protection."""
    steps = TWICE if "then" in members else Auth.steps
    return variant(Auth, about, steps=steps, protection=Protection(**members))


AUTHORIZATION: Final[dict[str, type[Part]]] = {
    "auth": Auth,
    "auth-discovery": _auth(
        "Ask for a token; the metadata is where a client looks last, and the token is renewed "
        "once.",
        place=f"{WELL_KNOWN}oauth-protected-resource",
        names_place=False,
        scope="",
        supported=("read", "write"),
        tenant=TENANT,
        places=(f"{TENANT}{WELL_KNOWN}openid-configuration",),
        then=FORGETS,
    ),
    "auth-step-up": _auth("Ask for a further scope in a call.", more="write"),
    "auth-refusals": _auth(
        "Refuse a call for want of a scope, whatever the token has.",
        scope="",
        more="write",
        never=True,
    ),
    "auth-no-pkce": _auth(
        "Ask for a token of an issuer that does not say that it has PKCE.",
        metadata={"code_challenge_methods_supported": None},
    ),
    "auth-resource": _auth(
        "Ask for a token with the metadata of another server.", resource=f"{ELSEWHERE}/mcp"
    ),
    "auth-issuer": _auth(
        "Ask for a token of an issuer whose metadata names another issuer.",
        tenant=TENANT,
        places=(f"{WELL_KNOWN}oauth-authorization-server{TENANT}",),
        metadata={"issuer": ELSEWHERE},
    ),
    "auth-iss": _auth(
        "Answer an authorization request as another issuer.", response={"iss": ELSEWHERE}
    ),
    "auth-no-iss": _auth(
        "Answer an authorization request without the issuer that was promised.",
        response={"iss": None},
    ),
    "auth-state": _auth(
        "Answer an authorization request with another state.",
        response={"state": "of-another-request"},
    ),
    "auth-moves": _auth("Ask for a token of another issuer after the first call.", then=MOVES),
    "auth-2025-03-26": AuthMarch,
}
"""Name of a scenario -> the part of our server in it."""
