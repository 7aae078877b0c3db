"""The folder of the suites and the reference server: ``_suites`` in a wheel, else the checkout."""

from __future__ import annotations

import os
import sys

NAMESPACE = "mcp_touchstone._suites"
"""Package under which the files there are imported, in a wheel and in a checkout."""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
_SHIPPED = os.path.join(_PACKAGE, "_suites")  # noqa: PTH118 - pathlib costs a third of the start

HOME = _SHIPPED if os.path.isdir(_SHIPPED) else os.path.dirname(os.path.dirname(_PACKAGE))  # noqa: PTH112, PTH120


def make_importable() -> None:
    """Make ``mcp_touchstone._suites.reference_server`` importable from either folder."""
    if NAMESPACE not in sys.modules:
        package = type(sys)(NAMESPACE)
        package.__path__ = [HOME]
        sys.modules[NAMESPACE] = package
