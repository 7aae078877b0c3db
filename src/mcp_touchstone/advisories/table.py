"""The table of advisories: the TOML files of this folder. ``scripts/advisories.py`` compares it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog.clause import CatalogueError, check_keys, read_table
from mcp_touchstone.catalog.sdk import Package, version

HOME: Final = Path(__file__).parent

SERVER: Final = "server"
CLIENT: Final = "client"


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """Versions of a package that an advisory is about.

    Attributes:
        registry: ``npm``, ``pypi`` or ``go``.
        since: the first affected version; empty for all before ``fixed``.
        fixed: the first version that is not affected; empty if there is none.
    """

    registry: str
    package: str
    since: str = ""
    fixed: str = ""

    def __str__(self) -> str:
        """Return the package and the range in words."""
        first = f"from {self.since} " if self.since else ""
        return f"{self.package} {first}{f'before {self.fixed}' if self.fixed else 'to the newest'}"

    def concerns(self, package: Package) -> bool:
        """Return whether it is about this package, in any version."""
        return (self.registry, self.package) == (package.registry, package.name)

    def has(self, package: Package) -> bool:
        """Return whether this version of this package is affected."""
        before = not self.fixed or package.order < version(self.fixed)
        return self.concerns(package) and before and package.order >= version(self.since)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advisory:
    """A published advisory.

    Attributes:
        id: its id; GHSA where there is one.
        aliases: its other ids.
        title: the fault, in a few words.
        side: ``server`` or ``client``, whichever has the fault.
        product: the software, if no registry has it; else empty.
        shown_by: ids of the clauses and threats that show the fault.
        option: what switches the correction on, if it is off by default; else empty.
        cure: what to do besides an upgrade; empty for nothing.
        untested: the reason no rule shows it; empty if a rule does.
        source: the page of it.
        read: the day on which that page was read.
    """

    id: str
    aliases: tuple[str, ...]
    published: date
    title: str
    side: str
    affected: tuple[Affected, ...]
    product: str
    shown_by: tuple[str, ...]
    option: str
    cure: str
    untested: str
    source: str
    read: date

    @property
    def names(self) -> tuple[str, ...]:
        """All its ids."""
        return (self.id, *self.aliases)

    def is_open_in(self, package: Package) -> bool:
        """Return whether a version of a package has the fault."""
        return any(one.has(package) for one in self.affected)

    def is_optional_in(self, package: Package) -> bool:
        """Return whether a version of a package has a correction that is off by default."""
        corrected = (
            one.fixed and one.concerns(package) and package.order >= version(one.fixed)
            for one in self.affected
        )
        return bool(self.option) and not self.is_open_in(package) and any(corrected)

    def fixed_for(self, package: Package) -> str:
        """Return the first version with the correction; empty if there is none."""
        return next((one.fixed for one in self.affected if one.has(package)), "")


_KEYS: Final = {
    "id": "string",
    "aliases": "array of strings",
    "date": "date",
    "title": "string",
    "side": "string",
    "affected": "array of tables",
    "product": "string",
    "shown_by": "array of strings",
    "option": "string",
    "cure": "string",
    "untested": "string",
    "source": "string",
    "read": "date",
}
_AFFECTED: Final = {"registry": "string", "package": "string", "from": "string", "fixed": "string"}


@cache
def advisories() -> tuple[Advisory, ...]:
    """Return all advisories, in the order of the files.

    Raises:
        CatalogueError: a file is no TOML, or a row is incomplete or contradicts itself.
    """
    return tuple(one for path in sorted(HOME.glob("*.toml")) for one in load(path))


@cache
def by_name() -> dict[str, Advisory]:
    """Return all advisories by their ids and aliases."""
    return {name: one for one in advisories() for name in one.names}


def find(name: str) -> Advisory | None:
    """Return an advisory by any of its ids, in capitals or not; None if the table has none."""
    return {known.casefold(): one for known, one in by_name().items()}.get(name.casefold())


def load(path: Path) -> list[Advisory]:
    """Read one file.

    Raises:
        CatalogueError: the file is no TOML, or a row is incomplete or contradicts itself.
    """
    where = f"advisories/{path.name}"
    table = read_table(path, where)
    check_keys(table, {"advisory": "array of tables"}, ("advisory",), where)
    return [_advisory(row, where) for row in table["advisory"]]


def _advisory(row: Mapping[str, Any], where: str) -> Advisory:
    where = f"{where}: {row.get('id') or '(no id)'}"
    check_keys(row, _KEYS, ("id", "date", "title", "source", "read"), where)
    for name in ("shown_by", "untested"), ("affected", "product"):
        if sum(bool(row.get(key)) for key in name) != 1:
            raise CatalogueError(f"{where}: exactly one of {' and '.join(name)} is needed")
    if row.get("side", SERVER) not in {SERVER, CLIENT}:
        raise CatalogueError(f"{where}: side is neither {SERVER!r} nor {CLIENT!r}")
    return Advisory(
        id=row["id"],
        aliases=tuple(row.get("aliases", ())),
        published=row["date"],
        title=row["title"],
        side=row.get("side", SERVER),
        affected=tuple(_affected(one, where) for one in row.get("affected", ())),
        product=row.get("product", ""),
        shown_by=tuple(row.get("shown_by", ())),
        option=row.get("option", ""),
        cure=row.get("cure", ""),
        untested=row.get("untested", ""),
        source=row["source"],
        read=row["read"],
    )


def _affected(row: Mapping[str, Any], where: str) -> Affected:
    check_keys(row, _AFFECTED, ("registry", "package"), f"{where}: affected")
    for key in ("from", "fixed"):
        if not re.fullmatch(r"[0-9][0-9A-Za-z.+-]*", row.get(key, "0")):
            raise CatalogueError(f"{where}: affected: {key} {row[key]!r} is no version")
    return Affected(
        registry=row["registry"],
        package=row["package"],
        since=row.get("from", ""),
        fixed=row.get("fixed", ""),
    )


@cache
def packages(registry: str) -> frozenset[str]:
    """Return the names of the packages of a registry that the table has."""
    ranges = (one for advisory in advisories() for one in advisory.affected)
    return frozenset(one.package for one in ranges if one.registry == registry)


@cache
def seen_in(rule: str) -> tuple[str, ...]:
    """Return the ids of the advisories whose fault a clause or threat shows."""
    return tuple(one.id for one in advisories() if rule in one.shown_by)


def applying(known: Iterable[Package], side: str = SERVER) -> list[tuple[Advisory, Package]]:
    """Return the advisories on one of these packages, each with the package.

    An advisory whose correction is off by default applies to corrected versions too.
    """
    return [
        (advisory, package)
        for package in known
        for advisory in advisories()
        if advisory.side == side
        and (advisory.is_open_in(package) or advisory.is_optional_in(package))
    ]
