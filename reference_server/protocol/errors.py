"""What can go wrong in an exchange, with the numbers the protocol gives it.

JSON-RPC 2.0 defines five codes; revision 2026-07-28 adds three and retires two
(basic/index#error-codes). Of the reserved range -32768 to -32000 this server emits nothing else,
save -32002 for a resource that is not there, in the sessions whose pages say so: -32000 to -32019
is closed to new implementations, and a code of our own would tell a client nothing that the
message does not.
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
"""Member of ``_meta`` in a tool's error: our id of the request, as the log has it."""

_LONGEST_QUOTE = 64


class ProtocolError(Exception):
    """A request that cannot be carried out; becomes the ``error`` member of its response.

    Attributes:
        code: One of the constants of this module.
        message: One short sentence for a person.
        data: Any JSON value that helps a program, or None for no ``data`` member.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def member(self, request_id: str) -> dict[str, Any]:
        """Give the ``error`` member: ``{"code", "message", "data"}``.

        Args:
            request_id: Our id of the request; it joins ``data`` where that can have members.
        """
        data = self.data
        if data is None or isinstance(data, dict):
            data = {**(data or {}), "request_id": request_id}
        return {"code": self.code, "message": self.message, "data": data}


class CancelledError(Exception):
    """Raised inside a handler when the client has lost interest; nothing is sent for it."""


def invalid_request(message: str) -> ProtocolError:
    """Build the error for JSON that is no request object."""
    return ProtocolError(INVALID_REQUEST, f"Invalid request: {message}")


def invalid_params(message: str) -> ProtocolError:
    """Build the error for a known method with unusable ``params``."""
    return ProtocolError(INVALID_PARAMS, f"Invalid params: {message}")


def method_not_found(method: str) -> ProtocolError:
    """Build the error for a method the revision of the request does not have here."""
    return ProtocolError(METHOD_NOT_FOUND, f"Method not found: {quote(method)}")


def quote(text: str) -> str:
    """Quote a stranger's word for an error message, cut so that the message stays short."""
    return repr(text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…")
