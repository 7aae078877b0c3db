"""The scenarios for clients under test: the parts that the suite on clients declares."""

from typing import Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.catalog.loader import CLIENTS, load
from mcp_touchstone.parts.part import Part

STATELESS: Final = "-stateless"
SESSION: Final = "-session"
"""Endings of names: the same in the stateless era, and with a session."""


class ScenarioError(UserError):
    """There is no such scenario; the message names the closest one."""


def scenarios() -> dict[str, type[Part]]:
    """Return the parts by the names of their scenarios; those that ask for tokens come last."""
    declared = load(CLIENTS).parts.items()
    return dict(sorted(declared, key=lambda one: one[1].protection is not None))


def without(name: str, revision: str) -> str:
    """Return why a scenario is not played in a revision; empty if it is."""
    part, known = find(name), scenarios()
    base = name.removesuffix(STATELESS).removesuffix(SESSION)
    if part.versions != rev.ALL and part.versions[-1] != revision:
        return f"its server speaks {part.versions[-1]}"
    if not rev.is_modern(revision):
        return "it is about the stateless era" if part.modern and not part.both else ""
    if part.is_about_sessions:
        return "it is about sessions"
    twins = {base, base + STATELESS} & {*known} - {name}
    twin = next((one for one in twins if known[one].modern), "")
    return f"{twin} is the same there" if twin and not part.modern else ""


def find(name: str, revision: str = "") -> type[Part]:
    """Return the part of a scenario.

    Args:
        revision: the only one that it is to speak; empty for those of its era.

    Raises:
        ScenarioError: there is none.
    """
    known = scenarios()
    if name not in known:
        close = nearest(name, known) or f"; there are {', '.join(known)}"
        raise ScenarioError(f"no scenario is called {name!r}{close}")
    part = known[name]
    if not revision:
        return part
    own = {"modern": rev.is_modern(revision), "both": False, "versions": (revision,)}
    return type(part.__name__, (part,), {"__doc__": part.__doc__, **own})
