"""``mcp-touchstone login URL``: a token for an MCP server behind OAuth, by the user's browser.

Sources: 2025-11-25 basic/authorization; RFC 9728 and RFC 8414 (discovery), RFC 7591 (registration),
OAuth 2.1 (code, PKCE, refresh), RFC 8707 (resource), RFC 9207 (iss), RFC 8252 (loopback).
"""

import base64
import hashlib
import json
import queue
import secrets
import threading
import webbrowser
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qs, urlencode, urlsplit

from mcp_touchstone.catalog.revision import LATEST_LEGACY
from mcp_touchstone.connection.checked_http import (
    LONGEST_URL,
    WELL_KNOWN,
    CheckedHttp,
    Json,
    LoginError,
    member,
    metadata_places,
    shown,
    split,
    words,
)
from mcp_touchstone.connection.connection import CLIENT_INFO
from mcp_touchstone.http_server.responses import Responses
from mcp_touchstone.http_server.server import BoundedServer
from mcp_touchstone.runtime.console import say
from mcp_touchstone.transport import logins
from mcp_touchstone.transport.tokens import MARGIN
from mcp_touchstone.wire.exchange import Exchange
from mcp_touchstone.wire.http_headers import VALUE

LONGEST_WAIT: Final = 300.0
"""Seconds that the user may take in the browser."""

LONGEST_LIFE: Final = 10 * 365 * 24 * 3600
"""Seconds that a token may be valid."""

ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "registration_endpoint")
DONE: Final = b"<!doctype html><title>mcp-touchstone</title><p>You can close this window."
HELLO: Final = {
    "protocolVersion": LATEST_LEGACY,
    "capabilities": {},
    "clientInfo": CLIENT_INFO,
}


def login(
    url: str,
    *,
    client: str = "",
    scope: str = "",
    browse: Callable[[str], object] = webbrowser.open,
) -> None:
    """Get a token for a server, with the user's browser, and store it.

    Args:
        url: the URL of the MCP server.
        client: a client id known to the authorization server; empty to register one.
        scope: the scopes to ask for; empty for those that the server names.
        browse: opens a URL in the browser.

    Raises:
        LoginError: a step fails.
    """
    web = CheckedHttp()
    challenge = _challenge(web, url)
    resource, issuer, offered = _resource(web, url, challenge)
    about = _issuer(web, issuer)
    if "S256" not in words(about, "code_challenge_methods_supported", issuer):
        raise LoginError(
            f"{shown(issuer)}: it does not support PKCE with S256, which clients must demand"
        )
    with _Callback() as listener:
        own = {"client_id": client} if client else _registered(web, about, listener.url)
        verifier = secrets.token_urlsafe(48)
        digest = hashlib.sha256(verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": own["client_id"],
            "redirect_uri": listener.url,
            "state": listener.state,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "resource": resource,
            "scope": scope or challenge.get("scope", "") or " ".join(offered),
        }
        start = _endpoint(about, "authorization_endpoint")
        query = urlencode({name: value for name, value in asked.items() if value})
        place = f"{start}{'&' if '?' in start else '?'}{query}"
        if len(place) > LONGEST_URL:
            raise LoginError(f"{shown(place)}: the URL for the browser is too long; give --scope")
        say("Log in with your browser; if it does not open, go to", place, flush=True)
        threading.Thread(target=browse, args=(place,), daemon=True).start()
        answer = listener.wait()
    _check_answer(answer, about)
    form = {"grant_type": "authorization_code", "code": answer["code"], "code_verifier": verifier}
    kept = {"token_endpoint": _endpoint(about, "token_endpoint"), "resource": resource, **own}
    found = _granted(web, kept, {**form, "redirect_uri": listener.url})
    logins.write(url, kept | found | {"near": bool(web.near)})
    say(f"{url}: logged in; `mcp-touchstone check {url}` uses the token")


def token(url: str) -> str:
    """Return the stored token of a server, refreshed if it expires soon.

    Raises:
        LoginError: there is none, or it cannot be refreshed.
    """
    kept = logins.read(url)
    if kept is None:
        raise LoginError(f"{url}: there is no login; run `mcp-touchstone login {url}`")
    if kept["expires"] - MARGIN > datetime.now(UTC).timestamp():
        return str(kept["token"])
    if not kept.get("refresh_token"):
        raise LoginError(f"{url}: the login has expired; run `mcp-touchstone login {url}`")
    form = {"grant_type": "refresh_token", "refresh_token": kept["refresh_token"]}
    kept |= _granted(CheckedHttp(near=kept.get("near") is True), kept, form)
    logins.write(url, kept)
    return str(kept["token"])


# --- discovery


def _challenge(web: CheckedHttp, url: str) -> Mapping[str, str]:
    """Return the challenge of a first request without a token."""
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    status, headers, _ = web.send(url, json.dumps(body).encode(), accept)
    if status != 401:  # noqa: PLR2004  (Unauthorized)
        raise LoginError(f"{url}: a request without a token gets HTTP {status}, not 401")
    return Exchange(1, "POST", 0, (), 0.0, status, headers).challenge


def _resource(
    web: CheckedHttp, url: str, challenge: Mapping[str, str]
) -> tuple[str, str, list[str]]:
    """Return the resource of a server, its authorization server, and the scopes it names."""
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    place = f"{origin}{WELL_KNOWN}oauth-protected-resource"
    named = challenge.get("resource_metadata")
    for one in [named] if named else [place + parts.path.rstrip("/"), place]:
        found = web.document(one)
        if found is None:
            continue
        resource = member(found, "resource", str, one, "")
        servers = words(found, "authorization_servers", one)
        if not _covers(resource, url):
            raise LoginError(f"{shown(one)}: it is about {shown(resource)}, not about {url}")
        if not servers:
            raise LoginError(f"{shown(one)}: it names no authorization server")
        return resource, servers[0], words(found, "scopes_supported", one)
    if named:
        raise LoginError(f"{shown(named)}: there are no metadata of the server")
    return url, origin, []  # as in 2025-03-26: the server is its own authorization server


def _covers(resource: str, url: str) -> bool:
    """Whether a resource is a URL or a parent of it."""
    one, other = split(resource), urlsplit(url)
    path = one.path.rstrip("/")
    inside = other.path.rstrip("/") == path or other.path.startswith(f"{path}/")
    return (one.scheme, one.netloc.lower()) == (other.scheme, other.netloc.lower()) and inside


def _issuer(web: CheckedHttp, issuer: str) -> Json:
    """Return the metadata of an authorization server, whose endpoints may be used."""
    for place in metadata_places(issuer):
        found = web.document(place)
        if found is not None:
            named = member(found, "issuer", str, place, "")
            if named.rstrip("/") != issuer.rstrip("/"):
                raise LoginError(f"{shown(place)}: its issuer is {shown(named)}")
            for name in ENDPOINTS:
                if endpoint := member(found, name, str, place, ""):
                    web.check(endpoint)
            return found
    raise LoginError(f"{shown(issuer)}: it has no metadata of an authorization server")


def _endpoint(about: Json, name: str) -> str:
    if not about.get(name):
        raise LoginError(f"the authorization server has no {name}")
    return str(about[name])


def _registered(web: CheckedHttp, about: Json, back: str) -> Json:
    """Register a client; return its id, and its secret if it has one."""
    if not about.get("registration_endpoint"):
        raise LoginError(
            "the authorization server registers no clients; register one whose redirect URI is "
            "http://127.0.0.1/callback, and give --client-id ID"
        )
    wanted = {
        "client_name": "mcp-touchstone",
        "redirect_uris": [back],
        "response_types": ["code"],
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "none",
    }
    place = _endpoint(about, "registration_endpoint")
    found = web.posted(place, json.dumps(wanted).encode(), "application/json")
    own = {k: member(found, k, str, place, "") for k in ("client_id", "client_secret")}
    if not own["client_id"]:
        raise LoginError(f"{shown(place)}: it gave no client_id")
    return {name: value for name, value in own.items() if value}


# --- the browser


class _Callback(BoundedServer):
    """Waits on loopback for the browser to come back with a code."""

    path = "/callback"

    def __init__(self) -> None:
        super().__init__(_Browser)
        self.state = secrets.token_urlsafe(24)
        self.answers: queue.SimpleQueue[dict[str, str]] = queue.SimpleQueue()

    def wait(self) -> dict[str, str]:
        """Return the parameters with which the browser came back."""
        self.start()
        try:
            return self.answers.get(timeout=LONGEST_WAIT)
        except queue.Empty:
            raise LoginError(f"nobody logged in within {LONGEST_WAIT:g} s") from None


class _Browser(Responses):
    server: _Callback

    def do_GET(self) -> None:  # noqa: N802  (the name of the base class)
        query = {k: v[0] for k, v in parse_qs(urlsplit(self.path).query).items()}
        state = query.get("state", "").encode()
        ours = secrets.compare_digest(state, self.server.state.encode())
        kind = {"Content-Type": "text/html; charset=utf-8"}
        self.answer(200 if ours else 404, DONE if ours else b"", kind)
        if ours:
            self.server.answers.put(query)


def _check_answer(answer: Mapping[str, str], about: Json) -> None:
    """Check that a code is of the authorization server that we asked (RFC 9207)."""
    issuer, said = about["issuer"], answer.get("iss")
    if said != issuer and (said or about.get("authorization_response_iss_parameter_supported")):
        raise LoginError(f"{shown(issuer)}: the answer is of another issuer: {shown(said)}")
    if "code" not in answer:
        told = f"{answer.get('error', 'no code')} {answer.get('error_description', '')}"
        raise LoginError(f"{shown(issuer)}: it refused: {shown(told.strip())}")


# --- tokens


def _granted(web: CheckedHttp, kept: Json, form: Json) -> Json:
    """Ask the token endpoint; return what is to be stored."""
    known = {k: kept[k] for k in ("client_id", "client_secret", "resource") if k in kept}
    place = kept["token_endpoint"]
    form = form | known
    body = urlencode(form).encode()
    found = web.posted(place, body, "application/x-www-form-urlencoded")
    value = member(found, "access_token", str, place, "")
    kind = member(found, "token_type", str, place, "")
    lasts = found.get("expires_in")
    seconds = 3600 if lasts is None else lasts
    if not VALUE.fullmatch(value) or len(value.split()) != 1:
        raise LoginError(f"{shown(place)}: it gave no access token")
    if kind.lower() != "bearer":
        raise LoginError(f"{shown(place)}: its token is of the type {shown(kind)}")
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 <= seconds <= LONGEST_LIFE:
        raise LoginError(f"{shown(place)}: `expires_in` is no number of seconds up to ten years")
    return {
        "token": value,
        "expires": datetime.now(UTC).timestamp() + seconds,
        "refresh_token": member(found, "refresh_token", str, place, "")
        or kept.get("refresh_token"),
    }
