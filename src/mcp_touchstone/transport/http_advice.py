"""Why an HTTP server cannot be judged, and what to do about it: one line for each case. Pure."""

import re
from typing import Final

from mcp_touchstone.wire.exchange import Exchange

GATEWAYS: Final = frozenset({407, 502, 503, 504})
HTTP2_STATUSES: Final = frozenset({426, 464, 505})
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
NOT_HERE: Final = frozenset({404, 405})
SUCCESS: Final = range(200, 300)
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
BARRED: Final = frozenset({UNAUTHORIZED, FORBIDDEN}) | REDIRECTS
"""Statuses that keep us out, whatever the body says: nothing can be judged, and nothing failed."""

SILENT: Final = "it closed the connection without a response"

BEARER: Final = "the variable holds the scheme too, as in `Authorization: Bearer TOKEN`"

_SCOPE: Final = re.compile(r'\bscope="([^"]{1,200})"')
_TITLE: Final = re.compile(rb"<title[^>]*>([^<]{1,80})", re.IGNORECASE)


def about(exchange: Exchange, url: str, given: str = "", *, old: bool = False) -> str:
    """Return why an exchange got no message, and the remedy.

    Args:
        exchange: our first request and its response.
        given: the option with the token of the request; empty if it had none.
        old: whether a GET opens a stream of the transport of 2024-11-05.
    """
    if old:
        return (
            f"{url}: it speaks HTTP+SSE of 2024-11-05, which 2025-03-26 replaced by Streamable "
            "HTTP; only that is judged"
        )
    if not exchange.status:
        return f"{url}: {_unreached(exchange, url)}"
    return f"{url}: {_refused(exchange, given)}"


def _unreached(exchange: Exchange, url: str) -> str:
    fault = exchange.fault
    if "refused" in fault:
        return f"{fault}; is the server started, and is the port right?"
    if fault.startswith("TLS failed"):
        own = "self-signed" in fault or "local issuer" in fault or "self signed" in fault
        remedy = "; name the certificate of its authority with --ca-file" if own else ""
        return f"{fault}{remedy}"
    if "no host" in fault:
        return f"{fault}; is it spelt right?"
    if fault == SILENT and url.startswith("http:"):
        return f"{fault}; does it speak TLS? Then write https://"
    if not fault:
        return "it took the request and sent nothing back; does it wait for something else?"
    return fault


def _refused(exchange: Exchange, given: str) -> str:
    status = exchange.status
    said = f"HTTP {status}"
    kind = exchange.kind or "no content"
    reasons = {
        UNAUTHORIZED: _unauthorized(given),
        FORBIDDEN: _forbidden(exchange),
        **dict.fromkeys(REDIRECTS, f"a redirect to {exchange.header('Location')}; name that URL"),
        **dict.fromkeys(GATEWAYS, f"{_proxy(exchange)}; the server behind it does not answer"),
        **dict.fromkeys(HTTP2_STATUSES, "it does not accept HTTP/1.1, which is all that we speak"),
        **dict.fromkeys(NOT_HERE, "is the path right? Often it is /mcp"),
    }
    if status in reasons:
        return f"{said}: {reasons[status]}"
    if status in SUCCESS and exchange.kind == "text/html":
        shown = f" ({page})" if (page := _title(exchange)) else ""
        return f"{said}: a web page{shown}, no MCP endpoint; is the path right? Often it is /mcp"
    cause = exchange.fault or exchange.lost
    return f"{said}: {kind} in place of a JSON-RPC message{f': {cause}' * bool(cause)}"


def _unauthorized(given: str) -> str:
    if given == "--issuer mock":
        return (
            "it does not accept the token of --issuer mock; does it take {issuer} or {jwks}, and "
            "{audience}, from its command or --env?"
        )
    if given:
        return f"it does not accept the token of {given}" + f"; {BEARER}" * ("--header" in given)
    return (
        f"it wants a token; give one with --header 'Authorization=env:NAME', where {BEARER}, or "
        "with --token-command"
    )


def _forbidden(exchange: Exchange) -> str:
    said = exchange.header("WWW-Authenticate") or ""
    if "insufficient_scope" not in said:
        return "it refuses us; does it know the host name in the URL?"
    scope = _SCOPE.search(said)
    named = f" {scope[1]!r}" if scope else ""
    return f"the token lacks a scope; it wants{named or ' another'} (--scope with --issuer)"


def _proxy(exchange: Exchange) -> str:
    name = exchange.header("Server")
    return f"the answer of a proxy ({name})" if name else "the answer of a proxy"


def _title(exchange: Exchange) -> str:
    title = _TITLE.search(exchange.body)
    return title[1].decode("utf-8", "replace").strip() if title else ""
