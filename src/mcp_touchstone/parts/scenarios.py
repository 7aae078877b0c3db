"""The scenarios for clients under test: the parts that the suite on clients declares."""

from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.catalog.loader import CLIENTS, load
from mcp_touchstone.parts.part import Part


class ScenarioError(UserError):
    """There is no such scenario; the message names the closest one."""


def scenarios() -> dict[str, type[Part]]:
    """Return the parts by the names of their scenarios; those that ask for tokens come last."""
    declared = load(CLIENTS).parts.items()
    return dict(sorted(declared, key=lambda one: one[1].protection is not None))


def find(name: str) -> type[Part]:
    """Return the part of a scenario.

    Raises:
        ScenarioError: there is none.
    """
    known = scenarios()
    if name not in known:
        close = nearest(name, known) or f"; there are {', '.join(known)}"
        raise ScenarioError(f"no scenario is called {name!r}{close}")
    return known[name]
