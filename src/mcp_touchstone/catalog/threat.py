"""Threat rows: effect, severity and cause of an attack; read from TOML.

A threat is a clause of another catalogue: it names an effect that a server must prevent, and it is
judged and reported like a clause. It differs in two points: the promise and the severity.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.attack_level import Tier
from mcp_touchstone.catalog.clause import (
    Breach,
    Catalogue,
    CatalogueError,
    Chapter,
    Clause,
    Level,
    Transport,
    check_keys,
    flow,
    nearest,
    read_table,
)

CWE: Final = "https://cwe.mitre.org/data/definitions/{}.html"
OWASP: Final = "https://owasp.org/www-project-mcp-top-10/"

PAYLOADS: Final = "payloads"
"""Folder of a suite that holds payloads, not threats."""


class Severity(StrEnum):
    """Severity of a successful attack."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"


_BREACH_OF: Final = {
    Severity.CRITICAL: Breach.FAIL,
    Severity.HIGH: Breach.FAIL,
    Severity.MEDIUM: Breach.FAIL,
    Severity.LOW: Breach.WARN,
    Severity.INFO: Breach.NOTE,
}


class Promise(StrEnum):
    """A claim of a server; a threat is judged against one of these."""

    CONTAINMENT = "containment"
    DENY_LIST = "deny-list"
    READ_ONLY = "read-only"
    DRY_RUN = "dry-run"
    PATCH_ONLY = "patch-only"
    WHOLE_WRITES = "whole-writes"
    SIZE_LIMIT = "size-limit"
    READ_LIMIT = "read-limit"
    LIVENESS = "liveness"
    FRAMING = "framing"
    SECRECY = "secrecy"
    HONESTY = "honesty"
    REDACTION = "redaction"
    AUDIT = "audit"


LIMITS: Final = {Promise.SIZE_LIMIT: 10485760, Promise.READ_LIMIT: 500000}
"""Promises with a number, each with an example: bytes of a file, characters of an answer."""

MODES: Final = frozenset({Promise.READ_ONLY, Promise.DRY_RUN, Promise.AUDIT, *LIMITS})
"""Promises that cannot be observed; threats that need one are not judged without it."""

ASSUMED: Final = frozenset(
    {
        Promise.CONTAINMENT,
        Promise.LIVENESS,
        Promise.FRAMING,
        Promise.SECRECY,
        Promise.HONESTY,
    }
)
"""Promises of every server, the first one if it is given a root; the others are declared."""

DECLARED: Final = tuple(str(promise) for promise in Promise if promise not in ASSUMED)
"""Promises that a user declares for a server."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Threat(Clause):
    """One attack and its effect.

    Attributes:
        promise: the promise a server must make for it to count; otherwise it is a note.
        effect: the gain of the attacker if it succeeds.
        cause: the usual fault that permits it.
        cwe: numbers of the weaknesses.
        owasp: entries of the OWASP MCP Top 10.
        tier: its level of attacks; a level other than core is judged on request.
    """

    severity: Severity
    promise: Promise
    effect: str
    cause: str
    cwe: tuple[int, ...]
    owasp: tuple[str, ...] = ()
    tier: Tier = Tier.CORE

    def applies_to(self, promises: Collection[str]) -> bool:
        """Return whether it applies to a server with these promises.

        Only the promises show the mode and the limits of a server.
        """
        return self.promise not in MODES or self.promise in promises

    @property
    def grade(self) -> str:
        """Its weight in a report."""
        return str(self.severity)

    @property
    def weakness(self) -> str:
        """Its weaknesses and its entries of the OWASP list, as text."""
        names = [f"CWE-{number}" for number in self.cwe]
        return ", ".join([*names, *(f"OWASP {one}" for one in self.owasp)])

    def links(self, revision: str) -> tuple[str, ...]:
        """Return its weaknesses; they are the same in every revision."""
        del revision
        return tuple(CWE.format(number) for number in self.cwe)


_KEYS: Final = {
    "id": "string",
    "severity": "string",
    "promise": "string",
    "statement": "string",
    "effect": "string",
    "cause": "string",
    "cwe": "array of integers",
    "owasp": "array of strings",
    "needs": "array of strings",
    "how": "string",
    "not_flagged": "string",
    "decision": "string",
    "cure": "string",
    "deferred": "string",
    "conditional": "boolean",
    "tier": "string",
    "transport": "string",
}
_REQUIRED: Final = ("id", "severity", "promise", "statement", "effect", "cause", "cwe", "how")


def load_family(path: Path) -> Chapter:
    """Read one threat file.

    Raises:
        CatalogueError: the file is not TOML, or a row is incomplete.
    """
    where = f"{path.parent.name}/{path.name}"
    table = read_table(path, where)
    keys = {
        "title": "string",
        "summary": "string",
        "transport": "string",
        "threat": "array of tables",
    }
    check_keys(table, keys, ("title", "summary", "threat"), where)
    common = {name: table[name] for name in ("transport",) if name in table}
    rows = tuple(_threat({**common, **row}, path, where) for row in table["threat"])
    return Chapter(path.parent.name, path.stem, table["title"], table["summary"], rows)


def load_threats(directory: Path) -> Catalogue:
    """Read every ``<group>/<family>.toml`` below a directory, in path order; no payloads."""
    paths = sorted(p for p in directory.glob("*/*.toml") if p.parent.name != PAYLOADS)
    return Catalogue(tuple(load_family(path) for path in paths))


def _threat(row: Mapping[str, Any], path: Path, where: str) -> Threat:
    where = f"{where}: {row.get('id') or '(no id)'}"
    check_keys(row, _KEYS, _REQUIRED, where)
    for key, known in (
        ("severity", Severity),
        ("promise", Promise),
        ("tier", Tier),
        ("transport", Transport),
    ):
        names = [str(one) for one in known]
        if row.get(key, names[0]) not in names:
            raise CatalogueError(
                f"{where}: {key} {row[key]!r} is unknown{nearest(row[key], names)}"
            )
    severity = Severity(row["severity"])
    return Threat(
        id=row["id"],
        group=path.parent.name,
        chapter=path.stem,
        level=Level.MUST_NOT,
        breach=_BREACH_OF[severity],
        source=dict.fromkeys(rev.ALL, ()),
        statement=flow(row["statement"]),
        needs=tuple(row.get("needs", ())),
        transports=(Transport(row["transport"]),) if "transport" in row else tuple(Transport),
        conditional=row.get("conditional", False),
        how=flow(row["how"]),
        not_flagged=flow(row.get("not_flagged", "")),
        decision=flow(row.get("decision", "")),
        cure=flow(row.get("cure", "")),
        deferred=flow(row.get("deferred", "")),
        severity=severity,
        promise=Promise(row["promise"]),
        effect=flow(row["effect"]),
        cause=flow(row["cause"]),
        cwe=tuple(row["cwe"]),
        owasp=tuple(row.get("owasp", ())),
        tier=Tier(row.get("tier", Tier.CORE)),
    )
