"""The kinds of JSON-RPC message that a client may send (basic/index#messages). Pure.

An object is exactly one of: a request (``method`` and ``id``), a notification (``method``, no
``id``), a response (``result`` or ``error``, no ``method``).
"""

from __future__ import annotations

from .errors import ProtocolError, invalid_params, invalid_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypeGuard

    from .framing import Decoded

    Id: TypeAlias = int | float | str
    Params: TypeAlias = dict[str, Any]

_LARGEST_EXACT_DOUBLE = 2**53


class Request:
    """A message that requires an answer."""

    __slots__ = ("id", "method", "params")

    def __init__(self, request_id: Id, method: str, params: Params) -> None:
        self.id = request_id
        self.method = method
        self.params = params


class Notification:
    """A message that must not be answered, even if it is wrong."""

    __slots__ = ("method", "params")

    def __init__(self, method: str, params: Params) -> None:
        self.method = method
        self.params = params


class Response:
    """The client's answer to a request of the server.

    Attributes:
        body: The whole object, unchecked, because a malformed answer must not be answered either.
        flaw: Why readers may read it differently, or None.
    """

    __slots__ = ("body", "flaw")

    def __init__(self, body: dict[str, Any], flaw: str | None = None) -> None:
        self.body = body
        self.flaw = flaw


class Unusable(Exception):  # noqa: N818 - a kind of message, not an error
    """A message that is none of the three kinds.

    Attributes:
        id: The id for the answer, or None if it cannot be read.
        error: The error for the answer, or None for a malformed notification or response.
    """

    def __init__(self, request_id: Id | None, error: ProtocolError | None) -> None:
        super().__init__(request_id, error)
        self.id = request_id
        self.error = error


def is_id(value: Any) -> TypeGuard[Id]:
    """Return whether a value is a request id: a string or an integer, never null or a boolean.

    ``5.0`` is an integer too, because some clients only have doubles. It equals the id ``5``, but
    not the id ``"5"``.
    """
    if type(value) is float:
        return value.is_integer() and abs(value) <= _LARGEST_EXACT_DOUBLE
    return type(value) in (int, str)


def read_message(decoded: Decoded) -> Request | Notification | Response:
    """Return the message in a JSON value."""
    body = decoded.value
    if not isinstance(body, dict):
        raise Unusable(None, invalid_request("a message is a JSON object"))
    method = body.get("method")
    if "method" not in body and ("result" in body or "error" in body):
        return Response(body, decoded.flaw)
    if isinstance(method, str) and "id" not in body:
        return _read_notification(decoded, method)
    request_id = _read_id(decoded)
    _check_envelope(decoded, request_id)
    return Request(request_id, body["method"], body.get("params", {}))


def _read_notification(decoded: Decoded, method: str) -> Notification:
    params = decoded.value.get("params", {})
    malformed = decoded.flaw or decoded.value.get("jsonrpc") != "2.0"
    if malformed or not isinstance(params, dict):
        raise Unusable(None, None)
    return Notification(method, params)


def _read_id(decoded: Decoded) -> Id:
    """Return the id for the answer, before any other check of the message."""
    if "id" not in decoded.value:
        raise Unusable(None, invalid_request("method must be a string"))
    request_id = decoded.value["id"]
    if not is_id(request_id):
        raise Unusable(None, invalid_request("id must be a string or an integer"))
    if decoded.flaw:
        # If the flaw is in the id itself, repeating the id could answer another request.
        clear = request_id if decoded.id_is_clear else None
        raise Unusable(clear, invalid_request(decoded.flaw))
    return request_id


def _check_envelope(decoded: Decoded, request_id: Id) -> None:
    body = decoded.value
    if body.get("jsonrpc") != "2.0":
        raise Unusable(request_id, invalid_request('jsonrpc must be "2.0"'))
    if not isinstance(body.get("method"), str):
        raise Unusable(request_id, invalid_request("method must be a string"))
    if "result" in body or "error" in body:
        raise Unusable(request_id, invalid_request("a request has neither result nor error"))
    params = body.get("params", {})
    if isinstance(params, list):
        # JSON-RPC allows positional parameters, but MCP does not.
        raise Unusable(request_id, invalid_params("params must be an object"))
    if not isinstance(params, dict):
        raise Unusable(request_id, invalid_request("params must be an object"))
