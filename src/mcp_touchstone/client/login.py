"""``mcp-touchstone login URL``: a token for an MCP server behind OAuth, by the user's browser.

Sources: 2025-11-25 basic/authorization; RFC 9728 and RFC 8414 (discovery), RFC 7591 (registration),
OAuth 2.1 (code, PKCE, refresh), RFC 8707 (resource), RFC 9207 (iss), RFC 8252 (loopback).
"""

import base64
import hashlib
import json
import secrets
import threading
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.catalog.revision import LATEST_LEGACY
from mcp_touchstone.client.connection import CLIENT_INFO
from mcp_touchstone.runtime.console import say
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.transport import logins
from mcp_touchstone.transport.http_endpoint import is_loopback
from mcp_touchstone.transport.process import now
from mcp_touchstone.transport.tokens import MARGIN
from mcp_touchstone.wire.exchange import Exchange
from mcp_touchstone.wire.http_headers import VALUE

Json = dict[str, Any]

PATIENCE: Final = 20.0
"""Seconds that a server may take to answer."""

LONGEST_WAIT: Final = 300.0
"""Seconds that the user may take in the browser."""

MOST: Final = 1 << 20
WELL_KNOWN: Final = "/.well-known/"
ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "registration_endpoint")
DONE: Final = b"<!doctype html><title>mcp-touchstone</title><p>You can close this window."
HELLO: Final = {
    "protocolVersion": LATEST_LEGACY, "capabilities": {}, "clientInfo": CLIENT_INFO,
}  # fmt: skip


class LoginError(UserError):
    """There is no token; the message says why."""


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
    _checked(url)
    challenge = _challenge(url)
    resource, issuer, offered = _resource(url, challenge)
    about = _issuer(_reachable(issuer, url))
    for name in ENDPOINTS:
        _reachable(str(about.get(name)), url)
    if "S256" not in (about.get("code_challenge_methods_supported") or ()):
        raise LoginError(f"{issuer}: it does not support PKCE with S256, which clients must demand")
    listener = _Listener()
    with listener.server:
        own = {"client_id": client} if client else _registered(about, listener.url)
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
        say("Log in with your browser; if it does not open, go to", place, flush=True)
        threading.Thread(target=browse, args=(place,), daemon=True).start()
        answer = listener.wait()
    _check_answer(answer, about)
    form = {"grant_type": "authorization_code", "code": answer["code"], "code_verifier": verifier}
    kept = {"token_endpoint": _endpoint(about, "token_endpoint"), "resource": resource, **own}
    found = _granted(kept, {**form, "redirect_uri": listener.url})
    logins.write(url, kept | found)
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
    kept |= _granted(kept, form)
    logins.write(url, kept)
    return str(kept["token"])


# --- discovery


def _challenge(url: str) -> Mapping[str, str]:
    """Return the challenge of a first request without a token."""
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    status, headers, _ = _send(url, json.dumps(body).encode(), accept)
    if status != 401:  # noqa: PLR2004  (Unauthorized)
        raise LoginError(f"{url}: a request without a token gets HTTP {status}, not 401")
    return Exchange(1, "POST", 0, (), 0.0, status, headers).challenge


def _resource(url: str, challenge: Mapping[str, str]) -> tuple[str, str, list[str]]:
    """Return the resource of a server, its authorization server, and the scopes it names."""
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    place = f"{origin}{WELL_KNOWN}oauth-protected-resource"
    named = challenge.get("resource_metadata")
    for one in [_reachable(named, url)] if named else [place + parts.path.rstrip("/"), place]:
        found = _document(one)
        if found is None:
            continue
        resource, servers = found.get("resource"), found.get("authorization_servers")
        if not isinstance(resource, str) or not _covers(resource, url):
            raise LoginError(f"{one}: it is about {safe(str(resource))}, not about {url}")
        if not isinstance(servers, list) or not servers or not isinstance(servers[0], str):
            raise LoginError(f"{one}: it names no authorization server")
        scopes = found.get("scopes_supported")
        return resource, servers[0], [s for s in scopes or () if isinstance(s, str)]
    if named:
        raise LoginError(f"{safe(named)}: there are no metadata of the server")
    return url, origin, []  # as in 2025-03-26: the server is its own authorization server


def _covers(resource: str, url: str) -> bool:
    """Whether a resource is a URL or a parent of it."""
    one, other = urlsplit(resource), urlsplit(url)
    path = one.path.rstrip("/")
    inside = other.path.rstrip("/") == path or other.path.startswith(f"{path}/")
    return (one.scheme, one.netloc.lower()) == (other.scheme, other.netloc.lower()) and inside


def _issuer(issuer: str) -> Json:
    """Return the metadata of an authorization server."""
    parts = urlsplit(issuer)
    path, origin = parts.path.rstrip("/"), f"{parts.scheme}://{parts.netloc}"
    names = ("oauth-authorization-server", "openid-configuration")
    places = [f"{origin}{WELL_KNOWN}{name}{path}" for name in names]
    for place in [*places, f"{origin}{path}{WELL_KNOWN}{names[1]}"]:
        found = _document(place)
        if found is not None:
            if str(found.get("issuer")).rstrip("/") != issuer.rstrip("/"):
                raise LoginError(f"{place}: its issuer is {safe(str(found.get('issuer')))}")
            return found
    raise LoginError(f"{safe(issuer)}: it has no metadata of an authorization server")


def _endpoint(about: Json, name: str) -> str:
    found = about.get(name)
    if not isinstance(found, str):
        raise LoginError(f"the authorization server has no {name}")
    return _checked(found)


def _registered(about: Json, back: str) -> Json:
    """Register a client; return its id, and its secret if it has one."""
    if not about.get("registration_endpoint"):
        raise LoginError(
            "the authorization server registers no clients; register one whose redirect URI is "
            "http://127.0.0.1/callback, and give --client-id ID"
        )
    wanted = {
        "client_name": "mcp-touchstone", "redirect_uris": [back], "response_types": ["code"],
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "none",
    }  # fmt: skip
    place = _endpoint(about, "registration_endpoint")
    found = _posted(place, json.dumps(wanted).encode(), "application/json")
    if not isinstance(found.get("client_id"), str):
        raise LoginError(f"{place}: it gave no client_id")
    return {k: found[k] for k in ("client_id", "client_secret") if isinstance(found.get(k), str)}


# --- the browser


class _Listener:
    """Waits on loopback for the browser to come back with a code."""

    def __init__(self) -> None:
        self.state = secrets.token_urlsafe(24)
        self._answer: dict[str, str] = {}
        state, answers = self.state, self._answer

        class Handler(BaseHTTPRequestHandler):
            timeout = PATIENCE

            def log_message(self, *_words: Any) -> None:
                pass

            def do_GET(self) -> None:
                query = {k: v[0] for k, v in parse_qs(urlsplit(self.path).query).items()}
                ours = secrets.compare_digest(query.get("state", "").encode(), state.encode())
                if ours:
                    answers.update(query)
                self.send_response(200 if ours else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(DONE if ours else b"")

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/callback"

    def wait(self) -> dict[str, str]:
        """Return the parameters with which the browser came back."""
        until = now() + LONGEST_WAIT
        while not self._answer:
            self.server.timeout = until - now()
            if self.server.timeout <= 0:
                raise LoginError(f"nobody logged in within {LONGEST_WAIT:g} s")
            self.server.handle_request()
        return self._answer


def _check_answer(answer: Mapping[str, str], about: Json) -> None:
    """Check that a code is of the authorization server that we asked (RFC 9207)."""
    issuer, said = about["issuer"], answer.get("iss")
    if said != issuer and (said or about.get("authorization_response_iss_parameter_supported")):
        raise LoginError(f"{safe(issuer)}: the answer is of another issuer: {safe(str(said))}")
    if "code" not in answer:
        words = (answer.get("error", "no code"), answer.get("error_description", ""))
        raise LoginError(f"{safe(issuer)}: it refused: {safe(' '.join(words).strip())}")


# --- tokens


def _granted(kept: Json, form: Json) -> Json:
    """Ask the token endpoint; return what is to be stored."""
    known = {k: kept[k] for k in ("client_id", "client_secret", "resource") if k in kept}
    place = _checked(kept["token_endpoint"])
    form = form | known
    body = urlencode(form).encode()
    found = _posted(place, body, "application/x-www-form-urlencoded")
    value, lasts = found.get("access_token"), found.get("expires_in", 3600)
    if not isinstance(value, str) or not VALUE.fullmatch(value) or len(value.split()) != 1:
        raise LoginError(f"{place}: it gave no access token")
    if str(found.get("token_type")).lower() != "bearer":
        raise LoginError(f"{place}: its token is of the type {safe(str(found.get('token_type')))}")
    seconds = lasts if isinstance(lasts, int | float) else 3600
    again = found.get("refresh_token", kept.get("refresh_token"))
    return {
        "token": value,
        "expires": datetime.now(UTC).timestamp() + seconds,
        "refresh_token": again,
    }


# --- HTTP


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" and not (
        parts.scheme == "http" and is_loopback(parts.hostname or "")
    ):
        raise LoginError(f"{safe(url)}: a token needs https, except on loopback")
    return url


def _reachable(place: str, url: str) -> str:
    """Return a place that a server names; one elsewhere must not send us to this machine."""
    own, other = (urlsplit(one).hostname or "" for one in (url, place))
    if is_loopback(other) and not is_loopback(own):
        raise LoginError(f"{safe(url)}: it names a place on this machine: {safe(place)}")
    return place


class _Stays(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_words: Any) -> None:
        """Follow no redirect: it could lead to a place without https."""


_OPENER: Final = urllib.request.build_opener(_Stays)


def _send(
    url: str, body: bytes | None, headers: Mapping[str, str]
) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
    """Return status, headers and body of a response."""
    request = urllib.request.Request(_checked(url), body, dict(headers))  # noqa: S310  (checked)
    try:
        with _OPENER.open(request, timeout=PATIENCE) as answer:
            return answer.status, tuple(answer.headers.items()), _body(answer)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, tuple(refusal.headers.items()), _body(refusal)
    except (OSError, ValueError) as error:
        raise LoginError(f"{safe(url)}: it does not answer: {safe(str(error))}") from error


def _body(answer: Any) -> bytes:
    """Return the beginning of a body, which may come byte by byte."""
    until, found = now() + PATIENCE, bytearray()
    while len(found) < MOST and now() < until and (part := answer.read1(MOST)):
        found += part
    return bytes(found)


def _document(url: str) -> Json | None:
    """Return a JSON object; None if there is none."""
    status, _, body = _send(url, None, {"Accept": "application/json"})
    return _object(body) if status == 200 else None  # noqa: PLR2004  (OK)


def _posted(url: str, body: bytes, kind: str) -> Json:
    status, _, text = _send(url, body, {"Accept": "application/json", "Content-Type": kind})
    found = _object(text) or {}
    if status not in range(200, 300):
        words = f"{found.get('error', '')} {found.get('error_description', '')}".strip()
        raise LoginError(f"{safe(url)}: HTTP {status}: {safe(words) or 'no reason'}")
    return found


def _object(body: bytes) -> Json | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
