"""Advisories on the packages of a server or client, and what is known of each. Pure values."""

from dataclasses import dataclass
from enum import StrEnum

from mcp_touchstone.advisories.table import Advisory
from mcp_touchstone.catalog.sdk import Package


@dataclass(frozen=True, slots=True)
class Scanned:
    """What another program found in the folders of a server.

    Attributes:
        file: its file; empty for none.
        packages: the packages with advisories.
        others: number of advisories that the table does not have: they are not about MCP.
    """

    file: str = ""
    packages: tuple[Package, ...] = ()
    others: int = 0


class State(StrEnum):
    """What a run showed of an advisory."""

    OPEN = "open"
    CLOSED = "closed"
    BY_OPTION = "closed by option"
    UNTESTED = "not tested"


@dataclass(frozen=True, slots=True)
class KnownAdvisory:
    """An advisory on a package that the judged server or client uses.

    Attributes:
        rules: the clauses and threats that showed its state; empty if it was not tested.
        why: the reason it was not tested; empty if it was.
    """

    advisory: Advisory
    package: Package
    state: State
    rules: tuple[str, ...] = ()
    why: str = ""

    @property
    def remedy(self) -> str:
        """What closes it; if it passed in spite of an option that is off by default, what did."""
        if self.state is State.BY_OPTION:
            return f"{self.advisory.option} is on, or the server closes it in its own way"
        return remedy(self.advisory, self.package)


def remedy(advisory: Advisory, package: Package) -> str:
    """Return what closes an advisory on a package."""
    option, fixed = advisory.option, advisory.fixed_for(package)
    if advisory.is_optional_in(package):
        way = f"{option}, which is off by default, closes it"
    elif fixed:
        more = f" with {option}, which is off by default" if option else ""
        way = f"use {package.name} {fixed} or newer{more}"
    else:
        way = "no version is corrected"
    return "; ".join(filter(None, [way, advisory.cure]))
