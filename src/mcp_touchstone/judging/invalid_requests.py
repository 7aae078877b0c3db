"""Requests of ours with an invalid value, by the schemas of the protocol and of the tools. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp_touchstone.wire.schema_dialect import allows

_TEXTS: Final = {
    "prompts/get": ("name",),
    "tools/call": ("name",),
    "resources/read": ("uri",),
    "resources/list": ("cursor",),
    "resources/templates/list": ("cursor",),
    "prompts/list": ("cursor",),
    "tools/list": ("cursor",),
}
"""Method -> members of its params that are strings."""


def has_invalid_value(request: Any, tools: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether the params of a request violate its type or the inputSchema of its tool.

    Args:
        request: a message of ours.
        tools: the listed tools, for the inputSchema of a call.
    """
    params = request.get("params") if isinstance(request, dict) else None
    if not isinstance(params, dict):
        return params is not None
    method = request.get("method")
    if any(not isinstance(params.get(member, ""), str) for member in _TEXTS.get(method, ())):
        return True
    arguments = params.get("arguments", {})
    if method == "prompts/get":
        return not isinstance(arguments, dict) or any(
            not isinstance(value, str) for value in arguments.values()
        )
    if method == "completion/complete":
        argument = params.get("argument")
        return not isinstance(argument, dict) or not isinstance(argument.get("value"), str)
    if method == "tools/call":
        schemas = [
            tool.get("inputSchema") for tool in tools if tool.get("name") == params.get("name")
        ]
        return any(allows(schema, arguments) is False for schema in schemas)
    return False
