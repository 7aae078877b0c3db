"""A check whether the library can be used, made without loading the library."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

EXTRA = "cedarscript"
"""Name of the optional dependency group that installs the library."""

_NEEDED = ("cedarscript_editor", "cedarscript_ast_parser", "packaging")
_MACHINES = ("x86_64", "amd64")
"""Machines for which the parser has native builds. Its wheels for other machines contain none."""


def reason_against() -> str | None:
    """Return why the library cannot be used here, or None if no reason is known."""
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
    """Return the version of an installed distribution, or None if it is not installed.

    ``importlib.metadata`` is not used, because its import takes longer than the library's.
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
