"""Count the rows of a fleet: failures to start, rules by the servers they applied to."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog.loader import SECURITY, rows
from mcp_touchstone.catalog.threat import Severity, Threat
from mcp_touchstone.fleet.drive import OUTCOMES, FleetError, read
from mcp_touchstone.fleet.entry import Start

Row = Mapping[str, Any]

HELD: Final = ("pass", "note")


BROKEN: Final = ("fail", "warn")


FEW: Final = 20
"""Servers that are listed one by one on a terminal."""


@dataclass(slots=True)
class Counts:
    """The servers to which a rule applied.

    Attributes:
        held: it was kept.
        broken: it was not, in at least one revision.
        failed: of those, where this is a failure and no warning.
        unseen: they never did what it is about.
        unchecked: it could not be checked.
        sdk: of the broken ones, where this is a known fault of the SDK.
    """

    held: int = 0
    broken: int = 0
    failed: int = 0
    unseen: int = 0
    unchecked: int = 0
    sdk: int = 0

    @property
    def applied(self) -> int:
        """The number of servers."""
        return self.held + self.broken + self.unseen + self.unchecked

    @property
    def judged(self) -> int:
        """The number of servers on which there is a verdict."""
        return self.held + self.broken

    def add(self, outcome: str, *, sdk: bool = False) -> None:
        """Count one server."""
        self.sdk += sdk
        if outcome in HELD:
            self.held += 1
        elif outcome in BROKEN:
            self.broken += 1
            self.failed += outcome == "fail"
        elif outcome == "unseen":
            self.unseen += 1
        else:
            self.unchecked += 1


@dataclass(slots=True)
class Group:
    """Servers that have something in common: all, or those of one SDK, language or registry.

    Attributes:
        failing: servers that broke a rule.
        excused: those of them that have only known faults of their SDK.
    """

    servers: int = 0
    started: int = 0
    failing: int = 0
    excused: int = 0
    rules: dict[str, Counts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of one server.

    Attributes:
        state: what its check came to and what was not checked, or why it did not start.
        own: the number of its own failures.
        theirs: the number of failures of its SDK.
        threats: the threats to which it is open, by severity: ``2 critical, 1 high``.
        files: the folder of its reports; empty if none were kept.
        install: the first word of its security report; empty if nothing was attacked.
    """

    state: str
    own: int
    theirs: int
    threats: str
    files: str = ""
    install: str = ""


@dataclass(slots=True)
class Fleet:
    """The rows of a fleet, counted; no row is kept.

    Attributes:
        tool: version and catalogue of the rows.
        starts: class -> servers.
        groups: kind of group -> its name -> the group; ``all`` has one group with an empty name.
        revisions: revision -> rule -> counts.
        startup: seconds to the first reply, of servers that started.
        run: seconds of ``check``, of servers that started.
        partial: servers whose check ended at its deadline.
        found: server -> the threats found.
        failing: server -> the clauses it broke, failures only, with the mark of its SDK's faults.
        servers: server -> what came of it; of the first ``FEW``.
        unstarted: server -> class and line, of the first ``FEW`` servers that did not start.
    """

    tool: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    starts: Counter[str] = field(default_factory=Counter)
    groups: dict[str, dict[str, Group]] = field(default_factory=dict)
    revisions: dict[str, dict[str, Counts]] = field(default_factory=dict)
    startup: list[float] = field(default_factory=list)
    run: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    partial: int = 0
    found: dict[str, list[str]] = field(default_factory=dict)
    failing: dict[str, list[str]] = field(default_factory=dict)
    servers: dict[str, Judged] = field(default_factory=dict)
    unstarted: dict[str, str] = field(default_factory=dict)

    @property
    def whole(self) -> Group:
        """All servers."""
        return self.groups.get("all", {}).get("", Group())


def gather(paths: Iterable[Path]) -> Fleet:
    """Count the rows of files. Of several rows with one key, the last one counts.

    Raises:
        FleetError: a file cannot be read, or the rows are of several versions or settings.
    """
    last: dict[str, tuple[int, int]] = {}
    files = list(paths)
    for number, path in enumerate(files):
        for line, row in enumerate(read(path)):
            last[row["key"]] = (number, line)
    fleet = Fleet()
    threats = {row.id: row.severity for row in rows(SECURITY) if isinstance(row, Threat)}
    for number, path in enumerate(files):
        for line, row in enumerate(read(path)):
            if last[row["key"]] == (number, line):
                _same(fleet, row, path)
                _count(fleet, row, threats)
    if not fleet.starts:
        raise FleetError(f"{files[0]}: it has no rows")
    return fleet


def _same(fleet: Fleet, row: Row, path: Path) -> None:
    if not fleet.tool:
        fleet.tool, fleet.settings = dict(row["tool"]), dict(row["settings"])
    if fleet.tool != row["tool"]:
        raise FleetError(
            f"{path}: rows of mcp-touchstone {row['tool']['version']} with the rules "
            f"{row['tool']['catalogue'][:8]} and of {fleet.tool['version']} with "
            f"{fleet.tool['catalogue'][:8]}; report on each alone, or compare them with --since"
        )
    if fleet.settings != row["settings"]:
        raise FleetError(f"{path}: rows with different settings; report on each alone")


def _count(fleet: Fleet, row: Row, threats: Mapping[str, Severity]) -> None:
    started = row["start"]["class"] == Start.STARTED
    fleet.starts[row["start"]["class"]] += 1
    fleet.total.append(row["seconds"]["total"])
    # A program that prints its usage is no server, so the rules on output do not apply to it.
    verdicts = row["verdicts"] if started else {}
    worst = gravest(verdicts)
    if started:
        fleet.startup.append(row["seconds"]["startup"])
        fleet.run.append(row["seconds"]["run"])
        fleet.partial += bool(row["interrupted"])
    elif len(fleet.unstarted) < FEW:
        fleet.unstarted[row["key"]] = f"{row['start']['class']}: {row['start']['line']}"
    broken = sorted(rule for rule, outcome in worst.items() if outcome == "fail")
    if found := [rule for rule in broken if rule in threats]:
        fleet.found[row["key"]] = found
    if broken:
        by_sdk = row["sdk_faults"]
        fleet.failing[row["key"]] = [f"{one} (SDK)" if one in by_sdk else one for one in broken]
    if len(fleet.servers) < FEW:
        theirs = sum(rule in row["sdk_faults"] for rule in broken)
        own = len(broken) - theirs
        grades = Counter(threats[rule] for rule in broken if rule in threats)
        open_to = ", ".join(f"{grades[one]} {one}" for one in Severity if grades[one])
        fleet.servers[row["key"]] = Judged(
            _state(row), own, theirs, open_to, row["files"], row.get("install", "")
        )
    for kind, name in _groups(row):
        group = fleet.groups.setdefault(kind, {}).setdefault(name, Group())
        group.servers += 1
        group.started += started
        group.failing += bool(broken)
        group.excused += bool(broken) and all(rule in row["sdk_faults"] for rule in broken)
        for rule, outcome in worst.items():
            group.rules.setdefault(rule, Counts()).add(outcome, sdk=rule in row["sdk_faults"])
    for revision, outcomes in verdicts.items():
        for rule, outcome in outcomes.items():
            fleet.revisions.setdefault(revision, {}).setdefault(rule, Counts()).add(outcome)


def _state(row: Row) -> str:
    if row["start"]["class"] != Start.STARTED:
        return str(row["start"]["class"])
    gap = row.get("gap")
    return f"{row.get('conclusion') or 'not recorded'}{f': {gap}' if gap else ''}"


def gravest(verdicts: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the gravest outcome of each rule over the revisions of a server."""
    found: dict[str, str] = {}
    for outcomes in verdicts.values():
        for rule, outcome in outcomes.items():
            known = found.get(rule, outcome)
            found[rule] = min(known, outcome, key=OUTCOMES.index)
    return found


def _groups(row: Row) -> Iterator[tuple[str, str]]:
    yield "all", ""
    yield "registry", row["registry"]
    if row["start"]["class"] != Start.STARTED:
        return
    yield "language", row["language"] or "unknown"
    sdk = row["sdk"][0] if row["sdk"] else None
    minor = "" if sdk is None else ".".join(sdk["version"].split(".")[:2])
    yield "SDK", "unknown" if sdk is None else f"{sdk['name']} {minor}"
    for revision in row["revisions"]:
        yield "revision", revision
