"""A scripted client over HTTP, with a fault that its first argument names, or with none.

``python http_client.py FAULT URL``. A fault is a function that changes the requests in one place.
"""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

Json = dict[str, Any]
META: Final = "io.modelcontextprotocol/"
INFO: Final = {"name": "small", "version": "1"}
BOTH: Final = "application/json, text/event-stream"
BATCHING: Final = "2025-03-26"
CANCELLED: Final = "notifications/cancelled"
NAMES: Final = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name"}
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True)
class Request:
    """A request before it is sent; ``headers`` has the headers that the protocol defines."""

    verb: str
    target: str
    message: Mapping[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """The method of its message."""
        return str(self.message.get("method", ""))


Fault = Callable[[Request], Request | None]


def without(name: str, method: str) -> Fault:
    """Leave a header out of requests with a method or verb."""
    return lambda r: (
        replace(r, headers={k: v for k, v in r.headers.items() if k != name})
        if method in {r.method, r.verb}
        else r
    )


def other(name: str, value: str, method: str) -> Fault:
    """Give a header of requests with a method or verb another value."""
    return lambda r: (
        replace(r, headers={**r.headers, name: value}) if method in {r.method, r.verb} else r
    )


FAULTS: Final[dict[str, tuple[str, Fault]]] = {
    "client-http-post": (
        "tools_call",
        lambda r: replace(r, verb="PUT") if r.method == "tools/list" else r,
    ),
    "client-batch-members": ("resume", lambda r: r),
    "client-http-accept": ("tools_call", other("Accept", "application/json", "tools/list")),
    "client-http-get-accept": ("tools_call", other("Accept", "application/json", "GET")),
    "client-http-version": ("tools_call", without("MCP-Protocol-Version", "tools/list")),
    "client-http-session": ("tools_call", without("Mcp-Session-Id", "notifications/initialized")),
    "client-http-session-lost": ("session-lost", lambda r: r),
    "client-http-session-deleted": ("tools_call", lambda r: None if r.verb == "DELETE" else r),
    "client-http-resumes": ("resume", lambda r: None if "Last-Event-ID" in r.headers else r),
    "client-cancel-sent-legacy": (
        "cancel",
        lambda r: None if r.method == CANCELLED else r,
    ),
    "client-http-method": ("stateless", other("Mcp-Method", "tools/List", "tools/list")),
    "client-http-name": ("stateless", without("Mcp-Name", "tools/call")),
    "client-http-retry": ("resume", lambda r: r),
    "client-http-param": ("headers", without("Mcp-Param-Plain", "tools/call")),
    "client-http-param-value": (
        "headers",
        lambda r: (
            replace(r, headers={**r.headers, "Mcp-Param-Flag": "TRUE"})
            if "Mcp-Param-Flag" in r.headers
            else r
        ),
    ),
    "client-http-param-omitted": ("headers", other("Mcp-Param-None", "null", "tools/call")),
    "client-http-invalid-tool": ("headers", lambda r: r),
    "client-http-streams": ("streams", lambda r: r),
    "client-call-not-repeated": ("lost", lambda r: r),
    "client-http-token-in-query": (
        "tools_call",
        lambda r: replace(r, target=f"{r.target}?access_token=x") if r.verb == "GET" else r,
    ),
}
"""Clause that is broken -> the scenario and the fault."""

LOGIN_FAULTS: Final = {
    "client-auth-metadata-url": "auth",
    "client-auth-metadata-order": "auth-discovery",
    "client-auth-server-metadata-order": "auth-discovery",
    "client-auth-default-endpoints": "auth-2025-03-26",
    "client-auth-metadata-version": "auth-2025-03-26",
    "client-auth-resource": "auth-discovery",
    "client-auth-pkce": "auth",
    "client-auth-response-type": "auth",
    "client-auth-parameters": "auth",
    "client-auth-code-once": "auth",
    "client-auth-pkce-support": "auth-no-pkce",
    "client-auth-resource-match": "auth-resource",
    "client-auth-issuer-match": "auth-issuer",
    "client-auth-iss": "auth-no-iss",
    "client-auth-state": "auth-state",
    "client-auth-redirect-uri": "auth",
    "client-auth-client-id": "auth",
    "client-auth-registration": "auth",
    "client-auth-application-type": "auth",
    "client-auth-token-header": "auth",
    "client-auth-foreign-token": "auth",
    "client-auth-scope": "auth",
    "client-auth-step-up": "auth-step-up",
    "client-auth-scope-union": "auth-step-up",
    "client-auth-retries": "auth-refusals",
    "client-auth-credentials-bound": "auth-moves",
    "client-auth-credentials-origin": "auth-redirect",
    "client-auth-pre-registered": "auth-known",
    "client-auth-document-id": "auth-document",
    "client-auth-document-support": "auth-token-none",
    "client-auth-document-url": "auth-document",
    "client-auth-registration-offered": "auth-pre-registered",
    "client-auth-application-type-fits": "auth-offline",
    "client-auth-refresh-grant": "auth-offline",
    "client-auth-token-method": "auth-token-basic",
    "client-auth-machine-authenticated": "auth-machine",
    "client-auth-assertion": "auth-machine-jwt",
    "client-auth-exchange": "auth-enterprise",
    "client-auth-jag": "auth-enterprise",
    "client-dpop-token-request": "auth-dpop",
    "client-dpop-scheme": "auth-dpop",
    "client-dpop-proof": "auth-dpop",
    "client-dpop-unique": "auth-dpop",
    "client-dpop-type": "auth-dpop",
    "client-dpop-algorithm": "auth-dpop",
    "client-dpop-key": "auth-dpop",
    "client-dpop-signature": "auth-dpop",
    "client-dpop-method": "auth-dpop",
    "client-dpop-target": "auth-dpop",
    "client-dpop-time": "auth-dpop",
    "client-dpop-token-hash": "auth-dpop",
    "client-dpop-same-key": "auth-dpop",
    "client-dpop-nonce": "auth-dpop-nonce",
    "client-workload-grant": "auth-workload",
    "client-workload-audience": "auth-workload",
}
"""Clause that ``Login`` breaks -> the scenario."""

FURTHER: Final = {
    "auth-stranger": "client-auth-credentials-bound",
    "auth-stranger-name": "client-auth-credentials-bound",
    "auth-moves-name": "client-auth-credentials-bound",
    "auth-mix-up": "client-auth-credentials-bound",
    "auth-machine-stranger": "client-auth-credentials-bound",
    "auth-machine": "client-auth-resource",
    "auth-issuer-slash": "client-auth-issuer-match",
    "auth-token-redirect": "client-auth-credentials-origin",
    "auth-register-redirect": "client-auth-credentials-origin",
    "auth-metadata-redirect": "client-auth-credentials-origin",
    "auth-document-redirect": "client-auth-credentials-origin",
    "auth-discovery": "client-auth-refresh-grant",
    "auth-no-offline": "client-auth-scope",
    "auth-token-post": "client-auth-token-method",
    "auth-workload": "client-auth-resource",
    "auth-workload-stranger": "client-workload-audience",
}
"""Scenario -> the clause whose mutant breaks it there too."""

BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
DOCUMENT: Final = "https://client.example/document.json"
"""The address of the metadata of the client; nothing is there."""

EXPIRED: Final = "expired"
"""A fault that only the JWT of a platform shows."""

SLASH: Final = "slash"
"""A fault that only an assertion shows."""

OTHER_METHOD: Final = "other-method"
"""A fault that only an issuer with one method of token requests shows."""

ONE_FORM: Final = "one-form"
"""A fault that only a stream of events in another form shows."""

UNSHOWN: Final = "unshown"
"""A fault that only a client with a token shows: no request has it in the right header."""

UNREGISTERED, INSECURE, TOKEN_ID = "no-redirect", "insecure-redirect", "token-id"
"""Further faults in a registration, and in the client id of a token request."""

TWO_IN_ONE, EMPTY, SPLIT = "two-in-one", "empty-post", "split-accept"
"""Bodies that are no message, and a header in two lines, which breaks no rule."""

BACK: Final = "falls-back"
"""A client that begins a session with a server that answered server/discover."""

SILENT: Final = "silent"
"""A client that answers no ping."""

PORT_ONLY: Final = "issuers-by-port"
"""A fault that only an issuer with another host name and the same port shows."""

OLD: Final = {"client-batch-members": BATCHING, "client-auth-registration": "2025-06-18"}
"""Clause -> the revision of the client that breaks it, if that is not the newest."""

FAULTS.update({clause: (scenario, lambda r: r) for clause, scenario in LOGIN_FAULTS.items()})


class GivenUpError(Exception):
    """There is no token."""


class Proofs:
    """Proves that it has the key of its tokens, except for one rule."""

    def __init__(self, fault: str) -> None:
        from joserfc import jwk  # noqa: PLC0415  (for two scenarios)

        self._fault = fault.removeprefix("client-dpop-")
        self._key, self._other = (jwk.ECKey.generate_key("P-256") for _ in range(2))
        self._nonces: dict[str, str] = {}

    def takes(self, url: str, nonce: str | None) -> bool:
        """Keep the nonce of a server; return whether it is a new one."""
        is_new = bool(nonce) and nonce != self._nonces.get(url)
        self._nonces[url] = nonce or ""
        return is_new

    def headers(self, verb: str, url: str, token: str = "") -> dict[str, str]:
        """Return the header with a proof."""
        from joserfc import jwk, jwt  # noqa: PLC0415  (as above)

        faulty = self._fault if token else ""
        key = self._other if faulty == "same-key" else self._key
        shown = key.as_dict(private=faulty == "key")
        header: Json = {"typ": "dpop+jwt", "alg": "ES256", "jwk": shown}
        claims: Json = {"jti": secrets.token_hex(8), "htm": verb, "htu": url, "iat": time.time()}
        if token:
            digest = hashlib.sha256(token.encode()).digest()
            claims["ath"] = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if self._nonces.get(url) and self._fault != "nonce":
            claims["nonce"] = self._nonces[url]
        header |= {"type": {"typ": "JWT"}, "algorithm": {"alg": "HS256"}}.get(faulty, {})
        wrong: dict[str, Json] = {
            "unique": {"jti": "the same"},
            "method": {"htm": "get"},
            "target": {"htu": "https://elsewhere.invalid/mcp"},
            "time": {"iat": 0},
            "token-hash": {"ath": token},
        }
        signer: Any = self._other if faulty == "signature" else key
        if faulty == "algorithm":
            signer = jwk.OctKey.generate_key(256)
        return {"DPoP": jwt.encode(header, claims | wrong.get(faulty, {}), signer)}


class Login:
    """Gets tokens as the protocol says, except for one clause."""

    def __init__(self, fault: str, server: str) -> None:
        self._fault = fault.removeprefix("client-auth-")
        self._server, parts = server, urlsplit(server)
        self._registered: dict[str, Json] = {}
        self._root = f"{parts.scheme}://{parts.netloc}"
        self._clients: dict[str, str] = {}
        self._given = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])
        if self._fault in {"pre-registered", "registration-offered"}:
            del self._given["client_id"], self._given["client_secret"]
        elif "issuer" in self._given:
            self._clients[self._named(self._given["issuer"])] = self._given["client_id"]
        self._scopes: set[str] = set()
        self._renewal: Json = {}
        self._tries = 0
        self._token = "x" if self._fault == "foreign-token" else ""
        proves = os.environ["MCP_CONFORMANCE_SCENARIO"].startswith("auth-dpop")
        self._proofs = Proofs(self._fault) if proves else None

    def _named(self, issuer: str) -> str:
        """Return that by which it tells issuers apart."""
        return str(urlsplit(issuer).port) if self._fault == PORT_ONLY else issuer

    def headers(self, verb: str, method: str) -> dict[str, str]:
        """Return the header with the token, if there is one, and with the proof of its key."""
        if self._fault == "token-header" and method == "tools/list":
            self._fault = ""
            return {}
        if not self._token:
            return {}
        if self._fault == UNSHOWN:
            return {"Authorization": self._token}
        if self._proofs is None:
            return {"Authorization": f"Bearer {self._token}"}
        scheme = "Bearer" if self._fault == "client-dpop-scheme" else "DPoP"
        proof = self._proofs.headers(verb, self._server, self._token)
        left_out = self._fault == "client-dpop-proof" and method == "tools/list"
        return {"Authorization": f"{scheme} {self._token}", **({} if left_out else proof)}

    def answer(self, status: int, challenge: str, nonce: str | None) -> bool:
        """Get a token after a refusal; return whether the request is to be sent again."""
        if self._proofs and self._token and "error=" in challenge:
            return self._proofs.takes(self._server, nonce)
        if self._fault == UNSHOWN and self._token:
            return False
        said = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
        self._tries += status == http.client.FORBIDDEN
        most = 6 if self._fault == "retries" else 2
        if status == http.client.FORBIDDEN and (self._tries > most or self._fault == "step-up"):
            return False
        about = self._resource(said.get("resource_metadata"))
        wanted = set(said.get("scope", " ".join(about.get("scopes_supported", ()))).split())
        if self._fault == "scope":
            wanted = {"read", "write", "admin"}
        if self._fault != "scope-union":
            wanted |= self._scopes
        self._scopes = wanted
        issuer = about["authorization_servers"][0] if about else ""
        known = self._named(self._given.get("issuer", issuer))
        careless = self._fault in {"credentials-bound", "client-workload-audience"}
        if self._named(issuer) != known and not careless:
            raise GivenUpError
        found = self._issuer(issuer)
        self._token = self._renewed(found) or self._authorized(found, issuer)
        return True

    def _resource(self, place: str | None) -> Json:
        """Return the metadata of the server; empty for a server of 2025-03-26."""
        known = "/.well-known/oauth-protected-resource"
        places = [self._root + known + urlsplit(self._server).path, self._root + known]
        if self._fault == "metadata-order":
            places.reverse()
        places = [place] if place and self._fault != "metadata-url" else places
        found = next(filter(None, map(self._get, places)), {})
        named = found.get("resource", self._server)
        if named != self._server and self._fault != "resource-match":
            raise GivenUpError
        if not found and self._fault == "metadata-url":
            raise GivenUpError
        return found

    def _issuer(self, issuer: str) -> Json:
        known = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
        if not issuer:
            if self._fault != "default-endpoints":
                self._get(self._root + known[0])
            ends = {"authorization": "authorize", "token": "token", "registration": "register"}
            return {f"{k}_endpoint": f"{self._root}/{v}" for k, v in ends.items()}
        parts = urlsplit(issuer)
        origin, path = f"{parts.scheme}://{parts.netloc}", parts.path
        places = [origin + one + path for one in known] + [origin + path + known[1]]
        if self._fault == "server-metadata-order":
            places.reverse()
        found = next(filter(None, map(self._get, places)), {})
        unfit = found.get("issuer") != issuer and self._fault != "issuer-match"
        unsafe = "S256" not in found.get("code_challenge_methods_supported", ())
        if unfit or (unsafe and self._fault != "pkce-support"):
            raise GivenUpError
        return found

    def _renewed(self, found: Json) -> str:
        own = self._named(found.get("issuer", ""))
        if not self._renewal or self._renewal["issuer"] != own or self._tries:
            return ""
        form = {"grant_type": "refresh_token", "refresh_token": self._renewal["token"]}
        return self._redeem(found, form | {"client_id": self._clients[own]})

    def _authorized(self, found: Json, issuer: str) -> str:
        if self._given.get("grant_type") == "client_credentials":
            shown = self._secrets()
            if self._fault == "machine-authenticated":
                del shown["client_secret"]
            if "private_key_pem" in self._given:
                shown = self._assertion(issuer)
            return self._redeem(found, {"grant_type": "client_credentials", **shown})
        if "valid_jwt" in self._given:
            return self._redeem(found, self._of_platform())
        if self._given.get("grant_type") == BEARER:
            form = {"grant_type": BEARER, "assertion": self._exchanged(issuer)}
            return self._redeem(found, form | self._secrets())
        own = self._named(issuer)
        back = f"http://{'elsewhere.invalid' if self._fault == 'redirect-uri' else 'localhost'}/"
        if self._fault == "credentials-bound" and self._clients:
            self._clients[own] = next(iter(self._clients.values()))
        if self._fault in {"client-id", "registration"}:
            self._clients[own] = "mine"
        if own not in self._clients:
            self._clients[own] = self._document(found) or self._register(found, issuer, back)
        verifier, state = secrets.token_urlsafe(40), secrets.token_urlsafe(8)
        digest = hashlib.sha256(verifier.encode()).digest()
        asked = {
            "response_type": "token" if self._fault == "response-type" else "code",
            "client_id": self._clients[own],
            "redirect_uri": back,
            "state": state,
            "code_challenge_method": "S256",
            "resource": self._server,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        }
        scopes = self._scopes | ({"offline_access"} & {*found.get("scopes_supported", ())})
        if scopes:
            asked["scope"] = " ".join(scopes)
        target = f"{found['authorization_endpoint']}?{urlencode(asked)}"
        came = dict(parse_qsl(urlsplit(self._call("GET", target)[2]).query))
        promised = found.get("authorization_response_iss_parameter_supported")
        lied = came.get("iss", None if promised else issuer) != issuer
        if issuer and lied and self._fault not in {"iss", "credentials-bound"}:
            raise GivenUpError
        if came.get("state") != state and self._fault != "state":
            raise GivenUpError
        form = {"grant_type": "authorization_code", "code": came.get("code", "")}
        form |= {"redirect_uri": back, "client_id": self._clients[own], **self._secrets()}
        form["code_verifier"] = "y" * 43 if self._fault == "pkce" else verifier
        return self._redeem(found, form)

    def _assertion(self, issuer: str) -> Json:
        """Return a signed assertion in place of a secret."""
        from joserfc import jwk, jwt  # noqa: PLC0415  (for one scenario)

        own, now = self._given["client_id"], int(time.time())
        other = {"assertion": "https://elsewhere.invalid", SLASH: f"{issuer}/"}
        audience = other.get(self._fault, issuer)
        claims = {"iss": own, "sub": own, "aud": audience, "iat": now, "exp": now + 300, "jti": "j"}
        key = jwk.ECKey.import_key(self._given["private_key_pem"])
        made = jwt.encode({"alg": self._given["signing_algorithm"]}, claims, key)
        kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        return {"client_assertion": made, "client_assertion_type": kind}

    def _of_platform(self) -> Json:
        """Return the form with the JWT of the platform."""
        if self._fault == "client-workload-grant":
            return {"grant_type": BEARER, "assertion": "x"}
        names = {"client-workload-audience": "wrong_audience_jwt", EXPIRED: "expired_jwt"}
        return {"grant_type": BEARER, "assertion": self._given[names.get(self._fault, "valid_jwt")]}

    def _exchanged(self, issuer: str) -> str:
        """Return the assertion of the identity provider for the token of its user."""
        given = self._given
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "subject_token": given["idp_id_token"],
            "audience": issuer,
            "resource": issuer if self._fault == "exchange" else self._server,
            "client_id": given["idp_client_id"],
        }
        _, body, _ = self._call("POST", given["idp_token_endpoint"], urlencode(form).encode())
        found = str(json.loads(body)["access_token"])
        return given["idp_id_token"] if self._fault == "jag" else found

    def _document(self, found: Json) -> str:
        """Return the URL of its document, if that may name it."""
        if self._fault == "document-url":
            return DOCUMENT.rpartition("/")[0]
        offered = found.get("client_id_metadata_document_supported", False)
        return DOCUMENT if offered is not self._fault.startswith("document-") else ""

    def _register(self, found: Json, issuer: str, back: str) -> str:
        about: Json = {"redirect_uris": [back], "application_type": "native"}
        if self._fault == UNREGISTERED:
            del about["redirect_uris"]
        if self._fault == INSECURE:
            about["redirect_uris"].append("http://elsewhere.invalid/")
        if self._fault == "application-type":
            del about["application_type"]
        if self._fault == "application-type-fits":
            about["application_type"] = "web"
        if self._fault != "refresh-grant":
            about["grant_types"] = ["authorization_code", "refresh_token"]
        body = json.dumps(about).encode()
        place = found.get("registration_endpoint", f"{issuer}/register")
        status, text, _ = self._call("POST", place, body)
        if status != http.client.CREATED:
            raise GivenUpError
        known: Json = json.loads(text)
        self._registered[self._named(issuer)] = known
        return str(known["client_id"])

    def _secrets(self) -> Json:
        return {k: self._given[k] for k in ("client_id", "client_secret") if k in self._given}

    def _redeem(self, found: Json, form: Json) -> str:
        if self._fault != "resource":
            form["resource"] = self._server
        if self._fault == TOKEN_ID:
            form["client_id"] = "mine"
        more, place = self._shown(found, form), found["token_endpoint"]
        if self._fault == "parameters":
            place += f"?{urlencode(form)}"
        if self._proofs and self._fault != "client-dpop-token-request":
            more |= self._proofs.headers("POST", place)
        status, body, nonce = self._call("POST", place, urlencode(form).encode(), more)
        if self._proofs and status == http.client.BAD_REQUEST and self._proofs.takes(place, nonce):
            return self._redeem(found, form)
        if status != http.client.OK:
            raise GivenUpError
        if self._fault == "code-once":
            self._call("POST", place, urlencode(form).encode())
        answer = json.loads(body)
        if "refresh_token" in answer:
            own = self._named(found.get("issuer", ""))
            self._renewal = {"issuer": own, "token": answer["refresh_token"]}
        return str(answer["access_token"])

    def _shown(self, found: Json, form: Json) -> dict[str, str]:
        """Put the secret into a form by the method of the issuer, or return a header with it."""
        known = self._registered.get(self._named(found.get("issuer", "")), {})
        secret = known.get("client_secret", form.pop("client_secret", None))
        supported = found.get("token_endpoint_auth_methods_supported", [""])
        method = known.get("token_endpoint_auth_method", supported[0])
        in_header = (method == "client_secret_basic") is not (self._fault == OTHER_METHOD)
        if secret and (not in_header or self._fault == "token-method"):
            form["client_secret"] = secret
        if not secret or (not in_header and self._fault != "token-method"):
            return {}
        pair = f"{form['client_id']}:{secret}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}

    def _get(self, url: str) -> Json:
        status, body, _ = self._call("GET", url)
        return json.loads(body) if status == http.client.OK else {}

    def _call(
        self, verb: str, url: str, body: bytes | None = None, more: Mapping[str, str] = {}
    ) -> tuple[int, bytes, str]:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=20)
        version = (
            {} if self._fault == "metadata-version" else {"MCP-Protocol-Version": "2025-03-26"}
        )
        if self._fault == "credentials-origin":
            version["X-Api-Key"] = "k"
        headers = {**version, **more}
        connection.request(verb, f"{parts.path}?{parts.query}".rstrip("?"), body, headers)
        answer = connection.getresponse()
        said = answer.headers["DPoP-Nonce"] or answer.headers["Location"] or ""
        found = answer.status, answer.read(), said
        connection.close()
        if self._fault == "credentials-origin" and found[0] in REDIRECTS - {http.client.FOUND}:
            return self._call(verb, found[2], body)
        return found


def encoded(text: str) -> str:
    """Return the value of a header, in Base64 if it cannot be sent as it is."""
    if text.isascii() and text.isprintable() and text == text.strip() and text[:2] != "=?":
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def marked(given: Json) -> dict[str, str]:
    """Return the headers of the tool `send`, which marks each of its arguments."""
    flat = {**given, "Deep-Value": given.get("inner", {}).get("deep")}
    return {
        f"Mcp-Param-{name.title()}": encoded(v if isinstance(v, str) else json.dumps(v))
        for name, v in flat.items()
        if v is not None and name not in {"inner", "a", "b"}
    }


class Client:
    """The client; it answers pings only, and reads each response to its end."""

    def __init__(self, fault: str, url: str) -> None:
        self._fault = FAULTS.get(fault, ("", lambda r: r))[1]
        self._stays = fault == "client-http-session-lost"
        self._hasty = fault == "client-http-retry"
        self._follows = fault == "client-auth-credentials-origin"
        self._reruns = fault == "client-call-not-repeated"
        self._single = fault == "client-http-streams"
        self._one_form = fault == ONE_FORM
        self._shape = fault
        self._lax = fault == "client-http-invalid-tool"
        self._retry = 0
        self._tools: list[str] = []
        self._url = urlsplit(url)
        self._login = Login(fault, url)
        self._mixes = fault == "client-batch-members"
        revision = os.environ.get("REVISION", OLD.get(fault))
        self._version = revision or "2025-11-25"
        self._modern = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"] >= "2026"
        if revision and os.environ["MCP_CONFORMANCE_SCENARIO"].startswith("auth"):
            self._modern = False  # these speak both eras
        self._session: dict[str, str] = {}
        self._number = 0
        self._listener: http.client.HTTPConnection | None = None

    def run(self) -> None:
        """Open, take the steps, and close."""
        with contextlib.suppress(GivenUpError):
            self._open()
            for n, step in enumerate(json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["steps"]):
                if n and "FRESH" in os.environ:
                    self._send("DELETE")
                    self._login = Login("none", self._url.geturl())
                    self._open()
                if "list" in step:
                    self._ask("tools/list", {})
                elif "read" in step:
                    self._ask("resources/read", {"uri": step["read"]})
                elif "prompt" in step:
                    self._ask("prompts/get", {"name": step["prompt"]})
                elif "cancel" in step:
                    self._cancel({"name": step["call"], "arguments": {}})
                else:
                    given = step.get("arguments") or {name: step[name] for name in ("a", "b")}
                    for name in self._tools if step["call"] == "*" else [step["call"]]:
                        self._call({"name": name, "arguments": given})
        if self._session:
            self._send("DELETE")
        if self._listener is not None:
            self._listener.close()

    def _open(self) -> None:
        if self._modern:
            self._ask("server/discover", {})
            self._modern = self._shape != BACK
        if self._modern:
            return
        self._session = {}
        params = {"protocolVersion": self._version, "capabilities": {}, "clientInfo": INFO}
        self._ask("initialize", params)
        self._post({"method": "notifications/initialized"})
        self._listener = self._begin(Request("GET", self._url.path, {}, self._headers("GET")))

    def _call(self, params: Json) -> None:
        """Call a tool, and again where the answer is lost and the tool only reads."""
        try:
            self._ask("tools/call", params)
        except http.client.RemoteDisconnected:
            if self._reruns or params["name"].startswith("count"):
                self._ask("tools/call", params)

    def _cancel(self, params: Json) -> None:
        """Call a tool, and cancel that when the server has begun to answer."""
        self._number += 1
        call = {"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": params}
        headers = self._headers("POST", call)
        connection = self._begin(Request("POST", self._url.path, call, headers))
        if connection is not None:
            connection.getresponse()
            self._post({"method": CANCELLED, "params": {"requestId": self._number}})
            connection.close()

    def _ask(self, method: str, params: Json) -> None:
        self._number += 1
        if self._modern:
            about = {"protocolVersion": "2026-07-28", "clientInfo": INFO, "clientCapabilities": {}}
            params = {**params, "_meta": {META + name: value for name, value in about.items()}}
        self._post({"id": self._number, "method": method, "params": params})

    def _post(self, message: Json) -> None:
        message = {"jsonrpc": "2.0", **message}
        status, events = self._send("POST", message)
        if status == http.client.NOT_FOUND and "id" in message and not self._stays:
            self._open()
            self._post(message)
        last = ""
        while "id" in message and events and not any('"result"' in data for _, data in events):
            last = next((name for name, _ in events[::-1] if name), last)
            time.sleep(0 if self._hasty else self._retry / 1000)
            _, events = self._send("GET", {}, **{"Last-Event-ID": last})

    def _headers(self, verb: str, message: Mapping[str, Any] = {}) -> dict[str, str]:
        method = str(message.get("method", ""))
        headers = {"Accept": BOTH if verb == "POST" else "text/event-stream", **self._session}
        headers |= self._login.headers(verb, method)
        if self._modern:
            headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
            if method in NAMES:
                headers["Mcp-Name"] = encoded(message["params"][NAMES[method]])
            if method == "tools/call" and message["params"]["name"] == "send":
                headers |= marked(message["params"]["arguments"])
        elif method != "initialize" and self._version >= "2025-06-18":
            headers["MCP-Protocol-Version"] = self._version
        return headers

    def _send(
        self, verb: str, message: Mapping[str, Any] = {}, **more: str
    ) -> tuple[int, list[tuple[str, str]]]:
        """Send a request; return its status, and the ids and data of its events."""
        headers = {**self._headers(verb, message), **more}
        connection = self._begin(Request(verb, self._url.path, message, headers))
        if connection is None:
            return 0, []
        response = connection.getresponse()
        if response.status in {http.client.UNAUTHORIZED, http.client.FORBIDDEN}:
            response.read()
            said = [response.headers[name] for name in ("WWW-Authenticate", "DPoP-Nonce")]
            again = self._login.answer(response.status, said[0] or "", said[1])
            return self._send(verb, message, **more) if again else (response.status, [])
        if self._follows and response.status in REDIRECTS:
            place = urlsplit(response.headers["Location"])
            there = http.client.HTTPConnection(place.netloc, timeout=20)
            there.request("POST", place.path, json.dumps(message), headers)
            there.getresponse().read()
            there.close()
        if message.get("method") == "initialize":
            self._session = {"Mcp-Session-Id": response.headers["Mcp-Session-Id"] or ""}
        body = response.read().decode()
        connection.close()
        if "event-stream" not in response.headers.get("Content-Type", ""):
            self._read(body)
            return response.status, []
        if self._single and message.get("method") == "tools/call":
            sys.exit("an event stream")
        found = []
        if self._one_form and message.get("method") == "tools/call" and "\r" in body:
            sys.exit("another form")
        for event in re.split("\r?\n\r?\n", body):
            fields: dict[str, str] = {}
            for line in event.splitlines():
                name, _, value = line.partition(":")
                fields[name] = fields.get(name, "") + value.removeprefix(" ")
            found.append((fields.get("id", ""), fields.get("data", "")))
            self._retry = int(fields.get("retry", self._retry))
            self._read(fields.get("data", ""))
        return response.status, found

    def _read(self, text: str) -> None:
        """Keep the valid tools of a list, and answer a ping."""
        message = json.loads(text or "{}")
        if message.get("method") == "ping" and self._shape != SILENT:
            self._post({"id": message["id"], "result": {}})
        names = [one["name"] for one in message.get("result", {}).get("tools", ())]
        self._tools += [one for one in names if self._lax or not one.startswith("bad_")]

    def _begin(self, request: Request) -> http.client.HTTPConnection | None:
        changed = self._fault(request)
        if changed is None:
            return None
        connection = http.client.HTTPConnection(self._url.netloc, timeout=20)
        message = changed.message
        body = json.dumps(self._batched(message)).encode() if message else None
        headers: Any = http.client.HTTPMessage()  # a name may come twice in it
        for name, value in changed.headers.items():
            for line in value.split(", ") if self._shape == SPLIT else [value]:
                headers[name] = line
        if self._shape == EMPTY and request.method == "tools/list":
            connection.request(changed.verb, changed.target, b"", headers)
            connection.getresponse().read()
        if body:
            headers["Content-Type"] = "application/json"
            body += b"{}" if self._shape == TWO_IN_ONE and request.method == "tools/list" else b""
        connection.request(changed.verb, changed.target, body, headers)
        return connection

    def _batched(self, message: Mapping[str, Any]) -> object:
        """Put a response into a batch, in the revision that has batches."""
        if "result" not in message or self._version != BATCHING:
            return message
        more = {"jsonrpc": "2.0", "method": "notifications/x"}
        return [message, more] if self._mixes else [message]


if __name__ == "__main__":
    Client(*sys.argv[1:]).run()
