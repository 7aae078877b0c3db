"""Checks of members that the requests of all methods share. Pure."""

from __future__ import annotations

from .errors import invalid_params
from .messages import is_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .messages import Params

_SINCE = {"elicitation": "2025-06-18"}
_MODES_SINCE = "2025-11-25"
_KNOWN_CAPABILITIES = ("experimental", "roots", "sampling", "elicitation")


def string_of(params: Params, name: str) -> str:
    """Return a required member; raise -32602 if it is missing or no string."""
    value = params.get(name)
    if not isinstance(value, str):
        raise invalid_params(f"{name} must be a string")
    return value


def object_of(params: Params, name: str, default: Params | None = None) -> Params:
    """Return a member, by default ``default``; raise -32602 if it is no object."""
    value = params.get(name, default)
    if not isinstance(value, dict):
        raise invalid_params(f"{name} must be an object")
    return value


def meta_of(params: Params) -> dict[str, Any]:
    """Return ``params._meta``, or ``{}`` if it is missing.

    Raises:
        ProtocolError: -32602, it is no object, or its ``progressToken`` is neither a string nor
            an integer (basic/utilities/progress#progress-flow).
    """
    meta = object_of(params, "_meta", {})
    if "progressToken" in meta and not is_id(meta["progressToken"]):
        raise invalid_params("progressToken must be a string or an integer")
    return meta


def check_capabilities(value: Any, where: str) -> dict[str, Any]:
    """Return the client's capabilities (schema.ts#ClientCapabilities).

    A known capability must be an object. An unknown one may be any value.
    """
    if not isinstance(value, dict):
        raise invalid_params(f"{where} must be an object")
    for name in _KNOWN_CAPABILITIES:
        if not isinstance(value.get(name, {}), dict):
            raise invalid_params(f"{where}.{name} must be an object")
    return value


def check_implementation(value: Any, where: str) -> dict[str, str]:
    """Return the client's name and version (schema.ts#Implementation) after a check."""
    if not isinstance(value, dict):
        raise invalid_params(f"{where} must be an object")
    for name in ("name", "version"):
        if not isinstance(value.get(name), str):
            raise invalid_params(f"{where}.{name} must be a string")
    return value


def declares(capabilities: dict[str, Any], revision: str, capability: str, sub: str | None) -> bool:
    """Return whether a client has declared a capability that a revision has; see ``Call.can``."""
    declared = capabilities.get(capability)
    if revision < _SINCE.get(capability, "") or not isinstance(declared, dict):
        return False
    if sub is None:
        return True
    if capability == "elicitation" and sub == "form":
        # Revisions without modes have only forms, and in later ones forms are the default.
        return revision < _MODES_SINCE or not declared or isinstance(declared.get(sub), dict)
    return isinstance(declared.get(sub), dict)
