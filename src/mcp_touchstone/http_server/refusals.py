"""Refusals of the bridge itself: a status for HTTP, an error for JSON-RPC. Pure."""

from typing import Any, Final

from mcp_touchstone.wire.framing import encode, value_in

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
NO_SESSION: Final = -32000
"""No error of 2026-07-28: a client of both eras falls back to ``initialize`` when it meets it."""


class Refusal(Exception):  # noqa: N818  (an answer, not a fault of ours)
    """A refusal of a request by the bridge, without or instead of an answer of the server.

    Attributes:
        id: id of the request; None if unknown, and then the error has no ``id``.
    """

    def __init__(
        self,
        status: int,
        code: int,
        message: str,
        *,
        id: Any = None,  # noqa: A002  (the member's name)
        **headers: str,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.id = id
        self.headers = headers

    def body(self) -> bytes:
        """Return the JSON-RPC error response as one line without its line feed."""
        known = {} if self.id is None else {"id": self.id}
        error = {"code": self.code, "message": self.message}
        return encode({"jsonrpc": "2.0", **known, "error": error}).rstrip(b"\n")


def status_for(error: Any, *, lacks_meta: bool) -> int:
    """Return the HTTP status that 2026-07-28 requires for an error; 200 if it requires none.

    Sources: basic/transports/streamable-http#protocol-version-header and #server-validation,
    basic/index#meta (``lacks_meta``: the request lacks members that are required there).
    """
    code = value_in(error, "code")
    if not isinstance(code, int):
        return 200
    if code == METHOD_NOT_FOUND:
        return 404
    if code in {HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION}:
        return 400
    if code in {PARSE_ERROR, INVALID_REQUEST} or (code == INVALID_PARAMS and lacks_meta):
        return 400
    return 200
