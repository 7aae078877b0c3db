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
    from collections.abc import Sequence
    from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
MISSING_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022

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

    def member(self) -> dict[str, Any]:
        """Give the ``error`` member: ``{"code", "message"}`` and ``data`` where there is some."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


class CancelledError(Exception):
    """Raised inside a handler when the client has lost interest; nothing is sent for it."""


class ToolError(Exception):
    """A tool could not do its work: a result with ``isError`` that the model can read and act on.

    Source: server/tools#error-handling. Nothing in it may name a path above the root, quote file
    contents or show a trace.

    Args:
        message: What is wrong and, if one sentence can say it, what to do.
        code: ``UPPER_SNAKE``, for a program.
        type: The kind of trouble: ``ValidationError``, ``PolicyError``, ``ParseError``,
            ``ExecutionError``, ``ConflictError`` or ``SystemError``.
        field: The argument at fault.
        details: One more sentence, for whoever digs.
        context: Where: ``file``, ``line`` and ``command_index``, as far as they apply.
        suggestions: What to change in the call.
        recovery_steps: What to do, in order, to get on.
        related_tools: Tools that may help.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "INVALID_INPUT",
        type: str = "ValidationError",  # noqa: A002 - the member's name on the wire
        field: str | None = None,
        details: str | None = None,
        context: dict[str, Any] | None = None,
        suggestions: Sequence[str] = (),
        recovery_steps: Sequence[str] = (),
        related_tools: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.type = type
        self.field = field
        self.details = details
        self.context = context
        self.suggestions = suggestions
        self.recovery_steps = recovery_steps
        self.related_tools = related_tools

    def body(self) -> dict[str, Any]:
        """Give the error as an object; members without a value are left out."""
        body: dict[str, Any] = {"type": self.type, "code": self.code, "message": self.message}
        for name in ("field", "details", "context"):
            if getattr(self, name) is not None:
                body[name] = getattr(self, name)
        for name in ("suggestions", "recovery_steps", "related_tools"):
            if getattr(self, name):
                body[name] = list(getattr(self, name))
        return body


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
