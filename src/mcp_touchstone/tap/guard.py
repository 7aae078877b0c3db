"""Our HTTP server as a protected resource: it asks for tokens of our issuer, and notes what it saw.

Sources: basic/authorization of each revision, RFC 9728 (metadata), RFC 6750 (challenges).
"""

import json
import socket
from collections.abc import Callable, Mapping, Sequence
from email.message import Message
from functools import partial
from http.client import HTTPConnection
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

from mcp_touchstone.http_server.hosts import Headers, value_of
from mcp_touchstone.http_server.refusals import NO_SESSION, Refusal
from mcp_touchstone.issuer.mint import ELSEWHERE
from mcp_touchstone.issuer.proofs import ALGORITHMS, SCHEME, Proof, Proofs
from mcp_touchstone.issuer.server import BEARER, DOCUMENTS, Issuer
from mcp_touchstone.parts.part import ISSUER, MOVES, NONCES, WORKLOAD, Json, Protection
from mcp_touchstone.wire.events import Happened
from mcp_touchstone.wire.http_headers import VERSION

ENDPOINTS: Final = ("/authorize", "/token", "/register")
"""Default endpoints of 2025-03-26."""

PLATFORM: Final = "https://platform.invalid"
"""The issuer of the JWT of a workload; nobody looks for its keys."""

PATIENCE: Final = 10.0
"""Seconds for an answer of our own issuer."""

MOST_REFUSED: Final = 8
"""Calls that are refused for want of a scope; the next one gets a status that is no challenge."""


class Guard:
    """The tokens of one scenario.

    Attributes:
        known: what a client knows before: its credentials, and the issuer that gave them.
        moved: path of our server or of the issuer -> the URL to which it is redirected.

    Args:
        about: what it asks for.
        note: gets each fact as a sentence without secrets.
        listen: returns a socket for an issuer, where the client is.
        elsewhere: a URL of another origin, for what the issuer redirects.
    """

    def __init__(
        self,
        about: Protection,
        note: Callable[[str], None],
        listen: Callable[[], socket.socket],
        elsewhere: str = "",
    ) -> None:
        self._about, self._note, self._listen = about, note, listen
        self.moved = {path: f"{elsewhere}{path[1:]}" for path in about.moved}
        self._proofs = self._new_proofs()
        self._issuers: list[Issuer] = []
        for number in range(2 if about.stranger or about.then == MOVES else 1):
            self._issuers.append(self._issuer(number))
        self._spent: set[str] = set()
        self._called = False
        self._refused = 0
        self._url = ""
        self.known: dict[str, str] = {}
        if about.grant == WORKLOAD:
            self.known = self._run_by_a_platform()
        elif about.grant:
            first = self._issuers[0]
            self.known = {**first.register(), "issuer": first.url, "grant_type": about.grant}
        if about.grant == BEARER:
            self._provide(self._issuers[0])

    def _run_by_a_platform(self) -> dict[str, str]:
        """Return what the platform of a client gives it: JWTs, one of which is for the issuer."""
        first, own = self._issuers[0], "touchstone-workload"
        make = partial(first.mint.token, user=own, kind="JWT", iss=PLATFORM)
        known = {
            "valid_jwt": make(f"{first.url}/token"),
            "wrong_audience_jwt": make(ELSEWHERE),
            "expired_jwt": make(f"{first.url}/token", flaw="expired"),
        }
        for issuer in self._issuers:
            wrong = ("" if issuer is first else "another aud", "another aud", "expired")
            issuer.assertions = dict(zip(known.values(), wrong, strict=True))
            issuer.clients[own] = {"client_id": own}
        return {**known, "client_id": own, "issuer": first.url, "grant_type": BEARER}

    def _provide(self, issuer: Issuer) -> None:
        """Begin an identity provider that the issuer trusts, and at which a user has logged in."""

        def hear(place: str, facts: dict[str, Any]) -> None:
            if place == "token":
                self._say("exchange", facts)

        provider = Issuer("", hear, self._listen())
        issuer.provider, own = provider, "touchstone-at-provider"
        provider.partners[own] = self.known["client_id"]
        self._issuers.append(provider)
        self.known |= {
            "idp_client_id": own,
            "idp_id_token": provider.mint.token(own, kind="JWT"),
            "idp_issuer": provider.url,
            "idp_token_endpoint": f"{provider.url}/token",
        }

    def close(self) -> None:
        """End the issuers."""
        for issuer in self._issuers:
            issuer.close()

    def protect(self, url: str) -> None:
        """Say what it protects: the URL of our server, as clients know it."""
        self._url, about = url, self._about
        metadata = self._current.metadata
        offers: Json = {
            "resource": url,
            "place": about.place if about.names_place else "",
            "scope": about.scope or " ".join(about.supported),
            "more": about.more,
            "foreign": bool(about.resource),
            "stranger": about.stranger,
            "defaults": about.defaults,
            "tenant": about.tenant,
            "places": self._current.places,
            "audience": self._current.url,
            "client_id": self.known.get("client_id", ""),
            "documents": metadata.get(DOCUMENTS, False),
            "methods": metadata["token_endpoint_auth_methods_supported"],
            "scopes": metadata.get("scopes_supported", []),
        }
        for name, changed in (("metadata", about.metadata), ("response", about.response)):
            offers[name] = sorted(changed)
        self._say("server", offers)

    def document(self, headers: Headers, path: str) -> Json | None:
        """Return the metadata at a path of our server; None if there is none."""
        about = self._about
        self._say("document", {"path": path[:300], "version": value_of(headers, VERSION) or ""})
        if path != about.place or about.defaults:
            return None
        scopes = {"scopes_supported": list(about.supported)} if about.supported else {}
        issuer = self._current.url
        found = {"resource": about.resource or self._url, "authorization_servers": [issuer]}
        return {
            **found,
            **scopes,
            **({"dpop_bound_access_tokens_required": True} if about.proofs else {}),
        }

    def serves(self, path: str) -> bool:
        """Whether the path is one of the endpoints of our issuer on our own server."""
        return self._about.defaults and path in ENDPOINTS

    def relay(self, verb: str, target: str, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        """Return the answer of our issuer: status, body, headers."""
        connection = HTTPConnection(urlsplit(self._current.url).netloc, timeout=PATIENCE)
        connection.request(verb, target, body)
        answer = connection.getresponse()
        kept = {"Location": answer.headers["Location"]} if "Location" in answer.headers else {}
        found = answer.status, answer.read(), kept
        connection.close()
        return found

    def admit(self, headers: Message, verb: str, messages: Sequence[Mapping[str, Any]]) -> None:
        """Serve a request only with a token.

        Raises:
            Refusal: it has none, or one for another server; or a scope is missing, or a proof.
        """
        methods = [str(message.get("method", "")) for message in messages]
        scheme, _, token = (value_of(headers, "Authorization") or "").partition(" ")
        schemes = {"bearer", *([SCHEME.lower()] if self._proofs else [])}
        token = token.strip() if scheme.lower() in schemes else ""
        minted = [issuer.mint.read(token) for issuer in self._issuers] if token else []
        claims = None if token in self._spent else self._current.mint.read(token)
        if claims and not self._is_for_us(claims.get("aud")):
            claims = None
        known = "old" if any(minted) else "foreign"
        known = "valid" if claims else known if token else "none"
        facts = {"request": " ".join([verb, *methods])[:300], "token": known}
        if self._about.defaults and not {*methods} - {"initialize", "server/discover"} and methods:
            self._say("request", facts)
            return
        about = self._about
        granted = str((claims or {}).get("scope", "")).split()
        lacks = about.more if about.never or about.more not in granted else ""
        if claims is None:
            self._refuse(401, facts, self._challenge())
        if self._proofs:
            self._prove(self._proofs, headers, (verb, scheme, token), claims, facts)
        if lacks and {*methods} & ({"tools/list", "tools/call"} if about.never else {"tools/call"}):
            self._refused += 1
            over = self._refused > MOST_REFUSED
            self._refuse(400 if over else 403, facts, {} if over else self._challenge(lacks))
        self._say("request", facts)
        if about.then and "tools/call" in methods and not self._called:
            self._called = True
            self._spent.add(token)

    def _prove(
        self,
        proofs: Proofs,
        headers: Message,
        request: tuple[str, str, str],
        claims: Json,
        facts: Json,
    ) -> None:
        """Judge the proof in a request, which is its verb, the scheme, and the token.

        Raises:
            Refusal: the token is bound to no key, or the proof is not good.
        """
        verb, scheme, token = request
        bound = claims.get("cnf", {}).get("jkt", "")
        by_key, sent = scheme.lower() == SCHEME.lower(), headers.get_all(SCHEME, [])
        if not bound and not by_key and not sent:
            self._refuse(401, facts, self._challenge(error="invalid_token"))  # it knows no proofs
        proof = Proof()
        if by_key or sent:
            proof = proofs.read(sent, verb, self._url, token=token, bound=bound)
        proof.check("scheme", by_key, scheme)
        self._say("proof", proof.facts("server"))
        error = proof.error or ("" if bound and by_key else "invalid_token")
        if error:
            self._refuse(401, facts, self._challenge(error=error) | proofs.answer(error))

    def _is_for_us(self, audience: object) -> bool:
        """Whether a token is for this server, or for none: a client may have named no resource."""
        ours = urlsplit(self._url)
        for one in audience if isinstance(audience, list) else [audience]:
            named = urlsplit(one if isinstance(one, str) else "")
            same = (named.scheme, named.netloc.lower()) == (ours.scheme, ours.netloc.lower())
            if one is None or (same and f"{ours.path}/".startswith(f"{named.path.rstrip('/')}/")):
                return True
        return False

    @property
    def _current(self) -> Issuer:
        about = self._about
        return self._issuers[about.stranger or (self._called and about.then == MOVES)]

    def _issuer(self, number: int) -> Issuer:
        about = self._about
        hear = partial(self._say, issuer=number)
        beside = self._issuers[0] if number and about.renamed else None
        listening = None if about.defaults or beside else self._listen()
        made = Issuer(about.tenant, hear, listening, beside)
        made.places = () if about.defaults else about.places or made.places
        first = self._issuers[0].url if number else made.url
        made.response = {k: v and v.replace(ISSUER, first) for k, v in about.response.items()}
        made.moved = self.moved
        made.proofs = self._new_proofs()
        for name, value in about.metadata.items():
            made.metadata[name] = value.replace(ISSUER, first) if isinstance(value, str) else value
        for name in [name for name, value in made.metadata.items() if value is None]:
            del made.metadata[name]
        return made

    def _new_proofs(self) -> Proofs | None:
        about = self._about
        return Proofs(nonces=about.proofs == NONCES) if about.proofs else None

    def _refuse(self, status: int, facts: Json, challenge: Mapping[str, str]) -> NoReturn:
        self._say("request", {**facts, "status": status})
        raise Refusal(status, NO_SESSION, "a token with all scopes is needed", **challenge)

    def _challenge(self, scope: str = "", error: str = "") -> dict[str, str]:
        about, parts = self._about, urlsplit(self._url)
        error = "insufficient_scope" if scope else error
        said = [f'algs="{" ".join(ALGORITHMS)}"'] if about.proofs else []
        said += [f'error="{error}"'] if error else []
        if about.names_place:
            said.append(f'resource_metadata="{parts.scheme}://{parts.netloc}{about.place}"')
        scope = scope or about.scope
        said += [f'scope="{scope}"'] if scope else []
        kind = SCHEME if about.proofs else "Bearer"
        return {"WWW-Authenticate": f"{kind} {', '.join(said)}"} if not about.defaults else {}

    def _say(self, place: str, facts: Mapping[str, Any], issuer: int = 0) -> None:
        more = {"issuer": issuer} if issuer else {}
        self._note(f"{Happened.AUTHORIZATION}{place} {json.dumps({**facts, **more})}")
