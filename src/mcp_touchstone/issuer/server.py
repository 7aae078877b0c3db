"""The authorization server over HTTP: it consents by itself, and knows two users.

Sources: RFC 8414 and OpenID Connect Discovery 1.0 (metadata), RFC 7517 (keys), RFC 7662
(introspection), RFC 7591 (registration), OAuth 2.1 (grants, PKCE).
"""

import base64
import hashlib
import json
import re
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

from mcp_touchstone.http_server.hosts import guard, value_of
from mcp_touchstone.http_server.refusals import Refusal
from mcp_touchstone.http_server.responses import Responses
from mcp_touchstone.http_server.server import HOST, BoundedServer
from mcp_touchstone.issuer.mint import (
    CLIENTS,
    FLAWS,
    ID_JAG,
    LONG,
    USERS,
    Mint,
    assertion_fault,
    client_key,
)
from mcp_touchstone.issuer.proofs import ALGORITHMS, SCHEME, Proofs

MOST_BODY: Final = 1 << 16
KEPT: Final = 100
"""Greatest number of authorization codes, of used ones, and of clients, in memory."""

ASKED: Final = 5000
LONGEST: Final = 4096
"""Greatest number of introspected tokens in memory, and of characters of one: ours are shorter."""

OTHER_NAME: Final = "localhost"
"""A name of loopback for a second authorization server on the port of another one."""

UPSTREAM: Final = "/upstream/"
"""Path of a service for servers that pass requests on; the rest of the path names the server."""

_TOKEN: Final = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+")
_TOOL: Final = {
    "name": "upstream",
    "inputSchema": {"type": "object", "properties": {}},
    "annotations": {"readOnlyHint": True},
}

METADATA: Final = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")

Hear = Callable[[str, dict[str, Any]], None]
"""Gets what a client asked, without secrets: the last part of the path, and what is known of it."""

PLAIN: Final = ("client_id", "grant_type", "redirect_uri", "resource", "scope")
"""Parameters of requests that are no secrets."""

SECRETS: Final = ("client_assertion", "client_secret", "code", "code_verifier", "refresh_token")
"""Parameters of token requests of which only the names are noted."""

REPEATED: Final = frozenset({"audience", "resource"})
"""Parameters that a request may have twice (RFC 8707, section 2, and RFC 8693, section 2.1)."""

FORM: Final = "application/x-www-form-urlencoded"

BASIC, POST, JWT = "client_secret_basic", "client_secret_post", "private_key_jwt"
PUBLIC: Final = "none"
"""Methods by which a client authenticates at the token endpoint (RFC 7591, section 2)."""

EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
"""Grants of RFC 8693 and RFC 7523, by which an identity provider manages authorization."""

DOCUMENTS: Final = "client_id_metadata_document_supported"
"""Member of metadata: a client may be named by the URL of its own metadata."""

THUMBPRINT: Final = "dpop_jkt"
"""Parameter of an authorization request: the key to which its code is bound (RFC 9449, 10)."""

NO_PROOF: Final[dict[str, Any]] = {
    "at": "token",
    "checked": ["token-request"],
    "faults": ["token-request: no proof"],
    "nonce": "",
    "error": "",
}
"""What is noted of a token request without a proof."""

ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
EXCHANGED: Final = ("audience", "requested_token_type", "subject_token_type")
"""Parameters of a token exchange whose values are noted."""

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-\"$-~]{1,2000}")
"""A URI without a fragment (OAuth 2.1, section 2.3)."""

RUN_BY_BROWSERS: Final = frozenset({"about", "blob", "data", "file", "javascript", "vbscript"})
"""Schemes to which no browser may be sent."""

LONGEST_SHOWN: Final = 300
MOST_SHOWN: Final = 8
"""Characters of a parameter that are passed to ``Hear``, and members of a list."""


class Issuer:
    """An authorization server on a free port of loopback, until the process ends.

    Args:
        path: the path of its URL; its endpoints are below it.
        hear: called for each request of a client.
        listening: the socket to use in place of a new one.
        beside: another one, whose port it shares under ``OTHER_NAME``.

    Attributes:
        server: the HTTP server that it may share.
        url: its URL, which is the ``iss`` of its tokens.
        places: the paths of its metadata.
        response: members of the authorization response to replace; None removes one.
        moved: path of an endpoint or of metadata -> the URL to which it is redirected.
        mint: its keys.
        introspected: token about which a server asked -> whether it was called active.
        upstream: requests to the upstream service: its path, and the tokens of ours in it.
        codes, refreshes: code or refresh token -> the request that it is for.
        spent: the codes that were redeemed.
        clients: client id -> its registration.
        keys: client id -> the key of its assertions.
        provider: the identity provider whose assertions it takes.
        partners: client id at this identity provider -> that of the client elsewhere.
        assertions: JWT of the platform of a client -> what is wrong with it as a grant here.
        proofs: the proofs that clients send for tokens that are bound to a key; None for none.

    Raises:
        OSError: it cannot listen.
    """

    def __init__(
        self,
        path: str = "",
        hear: Hear = lambda _place, _facts: None,
        listening: socket.socket | None = None,
        beside: "Issuer | None" = None,
    ) -> None:
        self.server: _Server = beside.server if beside else _Server(listening)
        own = self.server.url
        self.url = (own.replace(HOST, OTHER_NAME) if beside else own) + path
        self.server.issuers[urlsplit(self.url).hostname or ""] = self
        self.path, self.hear = path, hear
        self.places: tuple[str, ...] = METADATA
        self.response: Mapping[str, str | None] = {}
        self.moved: Mapping[str, str] = {}
        self.mint = Mint(self.url)
        self.introspected: dict[str, bool] = {}
        self.upstream: list[tuple[str, frozenset[str]]] = []
        self.codes: dict[str, dict[str, str]] = {}
        self.spent: set[str] = set()
        self.refreshes: dict[str, dict[str, str]] = {}
        self.clients: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, Any] = {}
        self.provider: Issuer | None = None
        self.partners: dict[str, str] = {}
        self.assertions: Mapping[str, str] = {}
        self.proofs: Proofs | None = None
        if not beside:
            self.server.start()

    @property
    def jwks(self) -> str:
        """The URL of its keys."""
        return f"{self.url}/jwks"

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """Its metadata; http is of loopback only, see OAuth 2.1, section 1.5."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": self.jwks,
            "introspection_endpoint": f"{self.url}/introspect",
            "registration_endpoint": f"{self.url}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "client_credentials", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": [PUBLIC, POST],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "authorization_response_iss_parameter_supported": True,
            **({"dpop_signing_alg_values_supported": [*ALGORITHMS]} if self.proofs else {}),
        }

    def register(self) -> dict[str, str]:
        """Register a confidential client, which may be sent back to any address.

        It has a secret, or a key where the metadata has assertions only.
        """
        known = {"client_id": secrets.token_urlsafe(12)}
        if self.metadata["token_endpoint_auth_methods_supported"] == [JWT]:
            self.keys[known["client_id"]] = key = client_key()
            known |= {"private_key_pem": key.as_pem(private=True).decode()}
            known |= {"signing_algorithm": CLIENTS}
        else:
            known["client_secret"] = secrets.token_urlsafe(24)
        self.clients[known["client_id"]] = {**known, "redirect_uris": None}
        return known

    def close(self) -> None:
        """End it."""
        self.server.stop()


@cache
def shared() -> Issuer:
    """Return the one authorization server of this process; start it at the first call.

    Raises:
        OSError: it cannot listen.
    """
    return Issuer()


class _Server(BoundedServer):
    def __init__(self, listening: socket.socket | None) -> None:
        super().__init__(_Handler, listening=listening)
        self.issuers: dict[str, Issuer] = {}


class _Handler(Responses):
    server: _Server

    def serve(self) -> None:
        """Refuse a request to another host: a foreign page that reaches loopback under its name."""
        guard(self.headers)
        super().serve()

    @property
    def issuer(self) -> Issuer:
        """The issuer that a request names; the first one under every other name of loopback."""
        name = (value_of(self.headers, "Host") or "").partition(":")[0].lower()
        issuers = self.server.issuers
        return issuers.get(name) or next(iter(issuers.values()))

    def refusal_body(self, refusal: Refusal) -> bytes:
        """Return an error of OAuth (RFC 6749 section 5.2)."""
        error = {"error": "invalid_request", "error_description": refusal.message}
        return json.dumps(error).encode()

    def do_GET(self) -> None:  # noqa: N802  (the name of the base class)
        issuer = self.issuer
        asked = urlsplit(self.path).path
        if "/.well-known/" in asked:
            issuer.hear("metadata", {"path": asked[:LONGEST_SHOWN], **self._bearer()})
        path = self._below(asked)
        if asked in issuer.moved:
            self.answer(307, extra={"Location": issuer.moved[asked]})
        elif asked in issuer.places:
            self._json(issuer.metadata)
        elif path == "/jwks":
            self._json(issuer.mint.jwks())
        elif path == "/stranger/jwks":
            self._json(issuer.mint.jwks(stranger=True))
        elif path == "/stranger/certificate":
            self._answer(200, issuer.mint.certificate(), "application/pem-certificate-chain")
        elif path.startswith(UPSTREAM):
            self._upstream(b"")
        elif path == "/authorize":
            asked_for = parse_qs(urlsplit(self.path).query)
            known = {*SECRETS, "access_token"} & asked_for.keys()
            self._misused("authorize", f"{min(known)} in the URL" if known else "", asked_for)
            self._authorize({k: v[0] for k, v in asked_for.items()})
        elif path == "/token":
            self._misused("token", "a GET")
            self._json({"error": "invalid_request"}, 405)
        else:
            self._json({"error": "not_found"}, 404)

    def do_POST(self) -> None:  # noqa: N802  (as above)
        body = self.read_body(MOST_BODY)
        path = self._below(urlsplit(self.path).path)
        if path in self.issuer.moved:
            self.answer(307, extra={"Location": self.issuer.moved[path]})
            return
        if path == "/register":
            self._register(body)
            return
        if path.startswith(UPSTREAM):
            self._upstream(body)
            return
        sent = parse_qs(body.decode("utf-8", "replace"))
        form = {k: v[0] for k, v in sent.items()}
        if path == "/token":
            self._misused("token", self._form_fault(form), sent)
            basic = self._basic()
            shown = {BASIC: basic, POST: "client_secret" in form, JWT: "client_assertion" in form}
            methods = [name for name, is_used in shown.items() if is_used] or [PUBLIC]
            self._token({**basic, **form}, methods)
        elif path == "/introspect":
            token = form.get("token", "")
            claims = self.issuer.mint.read(token)
            if len(self.issuer.introspected) < ASKED and len(token) <= LONGEST:
                self.issuer.introspected[token] = claims is not None
            self._json({"active": claims is not None, **(claims or {})})
        else:
            self._json({"error": "not_found"}, 404)

    def _basic(self) -> dict[str, str]:
        """Return the credentials of a client in a header (RFC 6749, section 2.3.1)."""
        scheme, _, text = self.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return {}
        try:
            known, _, secret = base64.b64decode(text).decode().partition(":")
        except ValueError:
            return {}
        return {"client_id": unquote_plus(known), "client_secret": unquote_plus(secret)}

    def _below(self, path: str) -> str:
        """Return the path below that of the issuer; empty if it is not there."""
        own = self.issuer.path
        return path.removeprefix(own) if path.startswith(own) else ""

    def _hear(self, place: str, asked: Mapping[str, str], **more: Any) -> None:
        plain = {k: asked[k][:LONGEST_SHOWN] for k in PLAIN if k in asked}
        self.issuer.hear(place, {**plain, **more, **self._bearer()})

    def _form_fault(self, form: Mapping[str, str]) -> str:
        """Return what is wrong with the form of a token request; empty if nothing."""
        kind = (value_of(self.headers, "Content-Type") or FORM).partition(";")[0].strip()
        if urlsplit(self.path).query:
            return "parameters in the URL"
        if kind.lower() != FORM:
            return f"a body that is {kind[:LONGEST_SHOWN]}"
        wrong = {"": "no grant_type", "password": "the password of a user"}
        return wrong.get(form.get("grant_type", ""), "")

    def _misused(
        self, at: str, fault: str, sent: Mapping[str, Sequence[str]] = MappingProxyType({})
    ) -> None:
        """Note how a request passes its parameters against OAuth 2.1, sections 2.4 and 3."""
        twice = [name for name, values in sent.items() if values[1:] and name not in REPEATED]
        fault = fault or (f"{twice[0][:LONGEST_SHOWN]} twice" if twice else "")
        if fault:
            self.issuer.hear("parameters", {"at": at, "fault": fault})

    def _bearer(self) -> dict[str, bool]:
        """Return whether a request has an access token of ours in its header."""
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        schemes = {"bearer", SCHEME.lower()}
        known = scheme.lower() in schemes and self.issuer.mint.read(token.strip())
        return {"bearer": True} if known else {}

    def _upstream(self, body: bytes) -> None:
        """Answer as a service that wants no token: as an MCP server with one tool, or with {}."""
        issuer = self.issuer
        text = f"{self.path}\n{self.headers}\n{body.decode('utf-8', 'replace')}"
        named = {one for one in _TOKEN.findall(text) if len(one) <= LONGEST}
        if len(issuer.upstream) < ASKED:
            known = frozenset(one for one in named if issuer.mint.read(one))
            issuer.upstream.append((urlsplit(self.path).path, known))
        if "text/event-stream" in self.headers.get("Accept", "") and not body:
            self._json({}, 405)
            return
        try:
            message = json.loads(body)
        except ValueError:
            message = None
        if not isinstance(message, dict) or "method" not in message:
            self._json({})
        elif "id" not in message:
            self._answer(202, b"", "application/json")
        else:
            params = message.get("params")
            self._json({"jsonrpc": "2.0", "id": message["id"], **_mcp(message["method"], params)})

    def _register(self, body: bytes) -> None:
        try:
            wanted = json.loads(body)
        except (ValueError, RecursionError):
            wanted = None
        if not isinstance(wanted, dict) or len(self.issuer.clients) >= KEPT:
            self._json({"error": "invalid_client_metadata"}, 400)
            return
        given = wanted.get("redirect_uris")
        urls = given if isinstance(given, list) else []
        fits = bool(urls) and all(map(_may_be_sent_to, urls))
        known, offered = {}, "registration_endpoint" in self.issuer.metadata
        if offered and fits:
            known["client_id"] = secrets.token_urlsafe(12)
        supported = self.issuer.metadata["token_endpoint_auth_methods_supported"]
        method = wanted.get("token_endpoint_auth_method", BASIC)
        method = method if method in supported else supported[0]
        grants = wanted.get("grant_types")
        self._hear(
            "register",
            known,
            application_type=wanted.get("application_type"),
            redirect_uris=[str(url)[:LONGEST_SHOWN] for url in urls[:MOST_SHOWN]],
            method=method,
            offered=offered,
            refreshes=isinstance(grants, list) and "refresh_token" in grants,
            redirects=not isinstance(grants, list) or "authorization_code" in grants,
        )
        if not offered:
            self._json({"error": "not_found"}, 404)
            return
        if not fits:
            self._json({"error": "invalid_redirect_uri"}, 400)
            return
        if method != PUBLIC:
            known["client_secret"] = secrets.token_urlsafe(24)
        answer = {**wanted, **known, "token_endpoint_auth_method": method}
        self.issuer.clients[known["client_id"]] = answer
        self._json(answer, 201)

    def _authorize(self, asked: dict[str, str]) -> None:
        """Send the user's browser back with a code, without a question."""
        own = asked.get("client_id", "")
        client = self.issuer.clients.get(own, {})
        if own.startswith("https://") and self.issuer.metadata.get(DOCUMENTS):
            client = {"redirect_uris": None}  # nobody fetches the document: it may be anywhere
        allowed = client.get("redirect_uris", ())
        if allowed is not None and len(allowed) == 1:  # it need not be named then
            asked.setdefault("redirect_uri", allowed[0])
        back = asked.get("redirect_uri", "")
        fits = _may_be_sent_to(back) if allowed is None else back in allowed
        challenge = re.fullmatch(r"[\w-]{43}", asked.get("code_challenge", ""), re.ASCII)
        self._hear(
            "authorize",
            asked,
            known=bool(client),
            registered=fits,
            challenge=asked.get("code_challenge_method", "plain") if challenge else "none",
            state="state" in asked,
            response_type=asked.get("response_type", "")[:LONGEST_SHOWN],
        )
        if not fits or len(self.issuer.codes) >= KEPT:
            self._json({"error": "invalid_request"}, 400)
            return
        answer: dict[str, str | None] = {"state": asked.get("state", "")}
        answer |= {"iss": self.issuer.url} | dict(self.issuer.response)
        if asked.get("code_challenge_method") != "S256" or not asked.get("code_challenge"):
            answer["error"] = "invalid_request"
        else:
            answer["code"] = code = secrets.token_urlsafe(16)
            self.issuer.codes[code] = asked
        answer = {name: value for name, value in answer.items() if value is not None}
        mark = "&" if urlsplit(back).query else "?"
        self.answer(302, extra={"Location": back + mark + urlencode(answer)})

    def _token(self, form: dict[str, str], methods: list[str]) -> None:
        issuer, bound, grant = self.issuer, self._bound(form), form.get("grant_type", "")
        if bound is None:
            return
        grants = {
            "authorization_code": self._by_code,
            "refresh_token": self._by_refresh_token,
            "client_credentials": self._by_credentials,
        }
        if issuer.provider or issuer.assertions:
            grants[BEARER] = self._by_assertion
        if grant == EXCHANGE and issuer.partners:
            self._exchange(form)
            return
        if grant not in grants:
            self._json({"error": "unsupported_grant_type"}, 400)
            return
        noted: dict[str, Any] = {
            "known": form.get("client_id") in issuer.clients,
            "methods": methods,
            "sent": [name for name in SECRETS if name in form],
        }
        asked = grants[grant](form, noted)
        if asked is None:
            self._json({"error": "invalid_grant"}, 400)
            return
        own = form.get("client_id") if asked is form else asked.get("login_hint")
        resource, scope = form.get("resource") or asked.get("resource"), asked.get("scope", "")
        more: dict[str, Any] = {"cnf": {"jkt": bound}} if bound else {}
        answer: dict[str, Any] = {
            "access_token": issuer.mint.token(resource, scope, user=own or USERS[0], **more),
            "token_type": SCHEME if bound else "Bearer",
            "expires_in": LONG,
            "scope": scope,
        }
        if asked is not form and len(issuer.refreshes) < KEPT:
            answer["refresh_token"] = secrets.token_urlsafe(16)
            key = {THUMBPRINT: bound if methods == [PUBLIC] else ""}  # RFC 9449, section 5
            issuer.refreshes[answer["refresh_token"]] = {**asked, **key}
        self._json(answer)

    def _by_code(self, form: dict[str, str], noted: dict[str, Any]) -> dict[str, str] | None:
        """Return the authorization request of a code that is redeemed as it was asked for."""
        asked = self.issuer.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        named = {"redirect_uri": asked.get("redirect_uri", "")} if asked else {}
        shown = {**named, **form, "code_challenge": challenge}  # OAuth 2.1 has no redirect_uri here
        verified = asked and asked.get("code_challenge") == challenge
        same = ("client_id", "redirect_uri", "code_challenge")
        fits = asked is not None and all(asked.get(name) == shown.get(name) for name in same)
        again = asked is None and form.get("code") in self.issuer.spent
        if fits and len(self.issuer.spent) < KEPT:
            self.issuer.spent.add(form["code"])
        about = {"code": asked is not None, "verified": bool(verified), "again": again}
        self._hear("token", form, **noted, **about, issued=fits)
        return asked if fits else None

    def _by_refresh_token(
        self, form: dict[str, str], noted: dict[str, Any]
    ) -> dict[str, str] | None:
        """Return the authorization request that a refresh token is for."""
        asked = self.issuer.refreshes.pop(form.get("refresh_token", ""), None)
        fits = asked is not None and asked.get("client_id") == form.get("client_id")
        self._hear("token", form, **noted, refresh_token=asked is not None, issued=fits)
        return asked if fits else None

    def _by_credentials(self, form: dict[str, str], noted: dict[str, Any]) -> dict[str, str] | None:
        """Return a request by client credentials."""
        fault = self._assertion_fault(form) if "client_assertion" in form else ""
        about = {"assertion": fault} if "client_assertion" in form else {}
        self._hear("token", form, **noted, **about, issued=not fault)
        return None if fault else form

    def _by_assertion(self, form: dict[str, str], noted: dict[str, Any]) -> dict[str, str] | None:
        """Return a request by the assertion of an identity provider, or of a platform."""
        issuer, own = self.issuer, form.get("assertion", "")
        if issuer.provider:
            about = {"aud": issuer.url, "client_id": form.get("client_id", "")}
            fault = issuer.provider.mint.granted(own, **about)
            self._hear("token", form, **noted, grant=fault)
        else:
            fault = issuer.assertions.get(own, "another assertion" if own else "no assertion")
            self._hear("token", form, **noted, workload=fault)
        return None if fault else form

    def _bound(self, form: dict[str, str]) -> str | None:
        """Return the key to which a token will be bound: empty for none, None if it was refused."""
        issuer, sent = self.issuer, self.headers.get_all(SCHEME, [])
        if issuer.proofs is None:
            return ""
        if not sent:
            self._hear("proof", {}, **NO_PROOF)
            return ""
        known = issuer.codes.get(form.get("code", "")) or {}
        known = known or issuer.refreshes.get(form.get("refresh_token", "")) or {}
        wanted = known.get(THUMBPRINT, "")
        proof = issuer.proofs.read(sent, "POST", f"{issuer.url}/token", bound=wanted)
        self._hear("proof", {}, **proof.facts("token"))
        if not proof.error:
            return proof.key
        headers = {"Content-Type": "application/json", **issuer.proofs.answer(proof.error)}
        self.answer(400, json.dumps({"error": proof.error}).encode(), headers)
        return None

    def _assertion_fault(self, form: dict[str, str]) -> str:
        """Return what is wrong with the assertion by which a client authenticates."""
        if form.get("client_assertion_type") != ASSERTION:
            return "another client_assertion_type"
        url = self.issuer.url
        names = (url, f"{url}/token")
        faults = [
            assertion_fault(form["client_assertion"], key, client, names)
            for client, key in self.issuer.keys.items()
        ]
        return min(faults, key=len, default="an unknown client")

    def _exchange(self, form: dict[str, str]) -> None:
        """Exchange the ID token of a user for a grant at another authorization server."""
        mint, own = self.issuer.mint, form.get("client_id", "")
        claims = mint.read(form.get("subject_token", "")) or {}
        known = own in self.issuer.partners and claims.get("aud") == own
        kinds = {name: form.get(name, "")[:LONGEST_SHOWN] for name in EXCHANGED}
        self._hear("token", form, known=known, **kinds)
        if not known:
            self._json({"error": "invalid_grant"}, 400)
            return
        more = {"client_id": self.issuer.partners[own], "resource": form.get("resource", "")}
        grant = mint.token(form.get("audience"), form.get("scope", ""), kind=ID_JAG, **more)
        kind = {"issued_token_type": form.get("requested_token_type"), "token_type": "N_A"}
        self._json({"access_token": grant, **kind})

    def _json(self, value: Any, status: int = 200) -> None:
        self._answer(status, json.dumps(value).encode(), "application/json")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.answer(status, body, {"Content-Type": kind, "Cache-Control": "no-store"})


def _may_be_sent_to(uri: object) -> bool:
    """Whether a browser may be redirected to a URI; clients for one machine have own schemes."""
    if not isinstance(uri, str) or not _URI.fullmatch(uri):
        return False
    try:
        parts = urlsplit(uri)
        return parts.scheme not in RUN_BY_BROWSERS and (
            parts.scheme not in {"http", "https"} or (bool(parts.hostname) and parts.port != 0)
        )
    except ValueError:
        return False


def _mcp(method: str, params: Any) -> dict[str, Any]:
    """Return the result, or the error, of a request to the upstream service."""
    asked = params if isinstance(params, dict) else {}
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": asked.get("protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "touchstone-upstream", "version": "1"},
        },
        "ping": {},
        "tools/list": {"tools": [_TOOL]},
        "tools/call": {"content": [{"type": "text", "text": "upstream"}]},
    }
    if method in results:
        return {"result": results[method]}
    return {"error": {"code": -32601, "message": "no such method"}}


__all__ = ["FLAWS", "Issuer", "shared"]
