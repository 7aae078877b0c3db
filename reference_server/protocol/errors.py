"""Errors of the protocol, with their codes.

JSON-RPC 2.0 defines five codes; revision 2026-07-28 adds three and retires two
(basic/index#error-codes). Of the reserved range -32768 to -32000, this server sends only one more
code: -32002 for a missing resource, in sessions whose revision defines it. The range -32000 to
-32019 is closed to new implementations.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
MISSING_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022

REQUEST_ID = "mcp-touchstone/request_id"
"""Member of ``_meta`` in a tool's error: the server's id of the request, as in the log."""

_LONGEST_QUOTE = 64


class ProtocolError(Exception):
    """A request failed; becomes the ``error`` member of its response.

    Attributes:
        data: Any JSON value for a program, or None to leave out ``data``.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def member(self, request_id: str) -> dict[str, Any]:
        """Return the ``error`` member: ``{"code", "message", "data"}``.

        Args:
            request_id: The server's id of the request; added to ``data`` if that is an object.
        """
        data = self.data
        if data is None or isinstance(data, dict):
            data = {**(data or {}), "request_id": request_id}
        return {"code": self.code, "message": self.message, "data": data}


class CancelledError(Exception):
    """The client has cancelled the request; no answer is sent."""


class InputRequired(Exception):  # noqa: N818 - it is no error
    """A request of 2026-07-28 must be answered with a question (basic/patterns/mrtr)."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__()
        self.result = result


def invalid_request(message: str) -> ProtocolError:
    return ProtocolError(INVALID_REQUEST, f"Invalid request: {message}")


def invalid_params(message: str) -> ProtocolError:
    return ProtocolError(INVALID_PARAMS, f"Invalid params: {message}")


def method_not_found(method: str) -> ProtocolError:
    return ProtocolError(METHOD_NOT_FOUND, f"Method not found: {quote(method)}")


def quote(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…")
