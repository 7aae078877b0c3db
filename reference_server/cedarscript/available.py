"""Whether the library can be used here, as far as that shows without loading it."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

EXTRA = "cedarscript"
"""Name of the optional dependency group that brings the library."""

_NEEDED = ("cedarscript_editor", "cedarscript_ast_parser", "packaging")
_MACHINES = ("x86_64", "amd64")
"""The parser has native builds for these only; what it ships for others is no such build."""


def reason_against() -> str | None:
    """Say why the library cannot be used here, or None if it may well be."""
    machine = os.uname().machine.lower() if hasattr(os, "uname") else "amd64"
    if sys.platform not in ("linux", "win32") or machine not in _MACHINES:
        return f"its parser has no build for {sys.platform} on {machine}"
    if not all(_is_there(name) for name in _NEEDED):
        return f"the optional dependency is not installed (extra {EXTRA!r}, Python 3.11 or 3.12)"
    if not sys.executable:
        return "this process does not know its interpreter"
    return None


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def version_of(name: str) -> str | None:
    """Give the version of an installed distribution, or None.

    ``importlib.metadata`` takes longer to import than the library itself.
    """
    prefix = name.replace("-", "_") + "-"
    for folder in sys.path:
        try:
            entries = os.listdir(folder or ".")  # noqa: PTH208 - pathlib takes long too
        except OSError:
            continue
        for entry in entries:
            if entry.endswith(".dist-info") and entry.lower().startswith(prefix):
                return entry[len(prefix) : -len(".dist-info")]
    return None
