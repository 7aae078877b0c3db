"""The report on a fleet: failures to start, rules by how many servers they applied to. Pure."""

import csv
import html as markup
import io
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist, quantiles
from typing import Any, Final

from mcp_touchstone.catalog.loader import SECURITY, rows
from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.fleet.drive import FleetError, read
from mcp_touchstone.fleet.entry import Start
from mcp_touchstone.runtime.printable import safe

Row = Mapping[str, Any]

HELD: Final = ("pass", "note")
BROKEN: Final = ("fail", "warn")

CONFIDENCE: Final = 0.95
"""Confidence of the intervals."""

FEW: Final = 20
"""Servers that are listed one by one on a terminal."""

KINDS: Final = ("registry", "language", "SDK", "revision")
"""Kinds of groups, beside the group of all servers."""

_RANK: Final = ("fail", "warn", "broken", "note", "pass", "unseen")


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
    checked: int = 0
    failing: int = 0
    excused: int = 0
    rules: dict[str, Counts] = field(default_factory=dict)


@dataclass(slots=True)
class Fleet:
    """The rows of a fleet, counted; no row is kept.

    Attributes:
        tool: version and catalogue of the rows.
        settings: the settings of the rows.
        starts: class -> servers.
        lines: class -> the lines that showed it, with the number of servers; the most common ones.
        groups: kind of group -> its name -> the group; ``all`` has one group with an empty name.
        revisions: revision -> rule -> counts.
        startup: seconds to the first reply, of servers that started.
        run: seconds of ``check``, of servers that started.
        total: seconds of each server.
        partial: servers whose check ended at its deadline.
        found: server -> the threats found.
        failing: server -> the clauses it broke, failures only, with the mark of its SDK's faults.
        servers: server -> what happened, its own failures, those of its SDK; of the first ``FEW``.
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
    servers: dict[str, tuple[str, int, int]] = field(default_factory=dict)
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
    threats = {row.id for row in rows(SECURITY) if isinstance(row, Threat)}
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


def _count(fleet: Fleet, row: Row, threats: set[str]) -> None:
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
    if any(rule in threats for rule in broken):
        fleet.found[row["key"]] = [rule for rule in broken if rule in threats]
    if broken:
        by_sdk = row["sdk_faults"]
        fleet.failing[row["key"]] = [f"{one} (SDK)" if one in by_sdk else one for one in broken]
    if len(fleet.servers) < FEW:
        theirs = sum(rule in row["sdk_faults"] for rule in broken)
        own = len(broken) - theirs
        word = ("failed" if own else "passed") if worst else "not checked"
        state = word if started else row["start"]["class"]
        fleet.servers[row["key"]] = (state, own, theirs)
    for kind, name in _groups(row):
        group = fleet.groups.setdefault(kind, {}).setdefault(name, Group())
        group.servers += 1
        group.started += started
        group.checked += bool(worst)
        group.failing += bool(broken)
        group.excused += bool(broken) and all(rule in row["sdk_faults"] for rule in broken)
        for rule, outcome in worst.items():
            group.rules.setdefault(rule, Counts()).add(outcome, sdk=rule in row["sdk_faults"])
    for revision, outcomes in verdicts.items():
        for rule, outcome in outcomes.items():
            fleet.revisions.setdefault(revision, {}).setdefault(rule, Counts()).add(outcome)


def gravest(verdicts: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the gravest outcome of each rule over the revisions of a server."""
    found: dict[str, str] = {}
    for outcomes in verdicts.values():
        for rule, outcome in outcomes.items():
            known = found.get(rule, outcome)
            found[rule] = min(known, outcome, key=_RANK.index)
    return found


def _groups(row: Row) -> Iterator[tuple[str, str]]:
    yield "all", ""
    yield "registry", row["registry"]
    if row["start"]["class"] != Start.STARTED:
        return
    yield "language", row["language"] or "unknown"
    sdk = row["sdk"][0] if row["sdk"] else None
    yield "SDK", "unknown" if sdk is None else f"{sdk['name']} {_minor(sdk['version'])}"
    for revision in row["revisions"]:
        yield "revision", revision


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def interval(part: int, whole: int) -> tuple[float, float]:
    """Return the Wilson score interval of a share, as two shares.

    Wilson, E. B. (1927): Probable inference, the law of succession, and statistical inference.
    """
    if not whole:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    share = part / whole
    middle = share + z * z / (2 * whole)
    spread = z * (share * (1 - share) / whole + z * z / (4 * whole * whole)) ** 0.5
    scale = 1 + z * z / whole
    return max((middle - spread) / scale, 0.0), min((middle + spread) / scale, 1.0)


def _share(part: int, whole: int) -> str:
    low, high = interval(part, whole)
    return f"{part / whole:.0%} ({low:.0%} to {high:.0%})" if whole else "-"


def _ordered(rules: Mapping[str, Counts]) -> list[tuple[str, Counts]]:
    """Order rules: those that most servers broke first."""
    return sorted(rules.items(), key=lambda pair: (-pair[1].failed, -pair[1].broken, pair[0]))


def changed(new: Fleet, old: Fleet) -> list[str]:
    """Return a line for each rule whose share of servers that break it changed."""
    lines = []
    for rule in sorted({*new.whole.rules, *old.whole.rules}):
        now, then = (one.whole.rules.get(rule, Counts()) for one in (new, old))
        if (now.broken, now.judged) != (then.broken, then.judged):
            lines.append(
                f"{rule}: {then.broken} of {then.judged} before, {now.broken} of {now.judged} now"
            )
    return lines


# --- text


def text(fleet: Fleet, old: Fleet | None, *, names: bool) -> Iterator[str]:
    """Yield the lines of the report for a terminal."""
    whole = fleet.whole
    yield (
        f"{whole.servers} servers, {whole.started} started, {_broke(whole)}  "
        f"(mcp-touchstone {fleet.tool['version']}, rules {fleet.tool['catalogue'][:8]})"
    )
    if fleet.partial:
        yield f"{fleet.partial} checks ended at their deadline: their verdicts until then count"
    yield ""
    if rows := _servers(fleet, names=names):
        wide = max(len(key) for key, *_ in rows)
        yield f"  {'server':{wide}}  {'verdict':14}  own  of the SDK"
        for key, state, own, theirs in rows:
            yield f"  {key:{wide}}  {state:14} {own:4} {theirs:11}"
        yield ""
    for kind, count in fleet.starts.most_common():
        yield f"  {kind:14} {count:5}  {_share(count, whole.servers)}"
    for label, seconds in (("start-up", fleet.startup), ("check", fleet.run)):
        if seconds:
            low, middle, high = _quartiles(seconds)
            yield f"  {label:14} {low:.1f} s, {middle:.1f} s, {high:.1f} s (quartiles)"
    yield from _tables(fleet)
    if whole.servers <= FEW:
        yield ""
        for key, line in sorted([*fleet.unstarted.items(), *_failing(fleet, names=names)]):
            yield f"  {key}: {line}"
    if fleet.found:
        yield ""
        yield f"  {len(fleet.found)} servers with a security finding; --names names them"
    for key, found in sorted(fleet.found.items()) if names else ():
        yield f"  {key}: {', '.join(found)}"
    if old is not None:
        yield ""
        yield "since the older rows:"
        yield from (f"  {line}" for line in changed(fleet, old) or ["no rule changed"])


def _tables(fleet: Fleet) -> Iterator[str]:
    yield ""
    yield f"  {'broken':>6} {'of':>5}  {'share (95 % interval)':22} {'unseen':>6}  rule"
    for rule, counts in _ordered(fleet.whole.rules):
        if counts.broken:
            share = _share(counts.broken, counts.judged)
            mark = "" if counts.failed else "  (warning)"
            mark += f"  ({counts.sdk} by the SDK)" if counts.sdk else ""
            yield (
                f"  {counts.broken:6} {counts.judged:5}  {share:22} {counts.unseen:6}  {rule}{mark}"
            )
    for kind in KINDS:
        yield ""
        yield f"  {kind:24} servers started failing"
        for name, group in sorted(fleet.groups.get(kind, {}).items()):
            yield f"  {name:24} {group.servers:7} {group.started:7} {group.failing:7}"


def _quartiles(seconds: Sequence[float]) -> tuple[float, float, float]:
    if len(seconds) == 1:
        return seconds[0], seconds[0], seconds[0]
    low, middle, high = quantiles(seconds, n=4, method="inclusive")
    return low, middle, high


# --- CSV


COLUMNS: Final = (
    "group",
    "name",
    "rule",
    "applied",
    "held",
    "broken",
    "failed",
    "sdk",
    "unseen",
    "unchecked",
    "low",
    "high",
)


def table(fleet: Fleet) -> str:
    """Return CSV, a line for each group and rule; low and high limit the share that broke it."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    named = [(kind, name, group.rules) for kind, groups in fleet.groups.items()
             for name, group in groups.items()]  # fmt: skip
    named += [("verdicts in", revision, rules) for revision, rules in fleet.revisions.items()]
    for kind, name, rules in named:
        for rule, one in sorted(rules.items()):
            low, high = interval(one.broken, one.judged)
            counts = (one.applied, one.held, one.broken, one.failed, one.sdk, one.unseen)
            limits = (f"{low:.4f}", f"{high:.4f}")
            words = map(_plain, (kind, name, rule))
            writer.writerow((*words, *counts, one.unchecked, *limits))
    return file.getvalue()


def _plain(text: str) -> str:
    """Return a cell that no spreadsheet reads as a formula."""
    shown = safe(text)
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown


# --- Parquet


VERDICT: Final = (
    "key",
    "registry",
    "package",
    "version",
    "language",
    "sdk",
    "sdk_version",
    "start",
    "revision",
    "rule",
    "outcome",
)
"""Columns of the Parquet file; the last three are empty for a server without verdicts."""


def parquet(paths: Iterable[Path], file: Path) -> None:
    """Write a Parquet file with one line for each server, revision and rule.

    Raises:
        FleetError: DuckDB is not installed, or a file cannot be read or written.
    """
    try:
        import duckdb  # noqa: PLC0415  (an extra)
    except ImportError:
        raise FleetError("--parquet requires DuckDB: pip install 'mcp-touchstone[fleet]'") from None
    with tempfile.TemporaryDirectory(prefix="mcp-touchstone-") as folder:
        flat = Path(folder, "verdicts.csv")
        with flat.open("w", encoding="utf-8", errors="replace", newline="") as lines:
            writer = csv.writer(lines)
            writer.writerow(VERDICT)
            for path in paths:
                writer.writerows(line for row in read(path) for line in _verdicts(row))
        try:
            table = duckdb.read_csv(str(flat), header=True, all_varchar=True)
            table.write_parquet(str(file))
        except duckdb.Error as error:
            raise FleetError(f"{file}: {error}") from error


def _verdicts(row: Row) -> Iterator[tuple[str, ...]]:
    sdk = row["sdk"][0] if row["sdk"] else {"name": "", "version": ""}
    same = (
        *(row[name] for name in ("key", "registry", "package", "version", "language")),
        sdk["name"],
        sdk["version"],
        row["start"]["class"],
    )
    if not row["verdicts"]:
        yield (*same, "", "", "")
    for revision, verdicts in row["verdicts"].items():
        for rule, outcome in verdicts.items():
            yield (*same, revision, rule, outcome)


# --- HTML


STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 2rem }
th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid #8883 }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
svg { display: block } code { font-size: 90% } .w { opacity: .6 }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd } }
"""


def html(fleet: Fleet, old: Fleet | None, *, names: bool) -> str:
    """Return a page that needs nothing else; its pictures are SVG."""
    return "\n".join(_page(fleet, old, names=names)) + "\n"


def _broke(whole: Group) -> str:
    by_sdk = f", {whole.excused} of them only by faults of the SDK" if whole.excused else ""
    return f"{whole.failing} broke a rule{by_sdk}"


def _page(fleet: Fleet, old: Fleet | None, *, names: bool) -> Iterator[str]:
    whole, tool = fleet.whole, fleet.tool
    share = f"share ({CONFIDENCE:.0%} interval)"
    yield "<!doctype html><html lang=en><meta charset=utf-8><title>A fleet of MCP servers</title>"
    yield f"<style>{STYLE}</style><h1>{whole.servers} MCP servers</h1>"
    yield f"<p>{whole.started} started, {_broke(whole)}."
    yield f"{fleet.partial} checks ended at their deadline. mcp-touchstone {_e(tool['version'])},"
    yield f"rules <code>{_e(tool['catalogue'][:12])}</code>,"
    yield f"settings <code>{_e(json.dumps(fleet.settings))}</code></p>"
    if rows := _servers(fleet, names=names):
        yield "<h2>Servers</h2>"
        yield _table(("server", "verdict", "own failures", "failures of the SDK"), rows)
    yield "<h2>Starting</h2>"
    yield _table(
        ("class", "servers", share, ""),
        (
            (kind, count, _share(count, whole.servers), _Bar(count, 0, whole.servers))
            for kind, count in fleet.starts.most_common()
        ),
    )
    yield "<h2>Rules that were broken</h2>"
    yield _table(
        ("rule", "broken", "failures", "by the SDK", "judged", "unseen", share, ""),
        ((rule, *_cells(one)) for rule, one in _ordered(whole.rules) if one.broken),
    )
    yield "<h2>Groups</h2>"
    for kind in KINDS:
        groups = sorted(fleet.groups.get(kind, {}).items())
        yield _table(
            (kind, "servers", "started", "broke a rule", ""),
            (
                (name, one.servers, one.started, one.failing, _Bar(one.failing, 0, one.started))
                for name, one in groups
            ),
        )
    yield "<h2>Times</h2>"
    times = {"the first reply": fleet.startup, "a check": fleet.run, "a server": fleet.total}
    for label, seconds in times.items():
        yield f"<h3>Seconds of {label}</h3>{_histogram(seconds)}"
    yield "<h2>Servers that broke a rule</h2>"
    yield _table(("server", "rules"), _failing(fleet, names=names))
    if fleet.found and not names:
        yield f"<p>{len(fleet.found)} servers have a security finding and are not named.</p>"
    if old is not None:
        yield "<h2>Changes since the older rows</h2><ul>"
        yield from (f"<li>{_e(line)}</li>" for line in changed(fleet, old) or ["none"])
        yield "</ul>"
    kept = sorted(rule for rule, one in whole.rules.items() if one.held and not one.broken)
    yield f"<h2>Rules that every server kept</h2><p>{_e(', '.join(kept))}</p>"


def _cells(one: Counts) -> tuple[Any, ...]:
    bar = _Bar(one.failed, one.broken, one.judged)
    numbers = (one.broken, one.failed, one.sdk, one.judged, one.unseen)
    return (*numbers, _share(one.broken, one.judged), bar)


def _servers(fleet: Fleet, *, names: bool) -> list[tuple[str, str, int, int]]:
    """Return the row of each server of a small fleet; one with a security finding if wanted."""
    if fleet.whole.servers > FEW:
        return []
    return [
        (key, *row) for key, row in sorted(fleet.servers.items()) if names or key not in fleet.found
    ]


def _failing(fleet: Fleet, *, names: bool) -> Iterator[tuple[str, str]]:
    """Yield the servers that broke a rule; those with a security finding only if wanted."""
    for key, broken in sorted(fleet.failing.items()):
        if names or key not in fleet.found:
            yield key, ", ".join(broken)


@dataclass(frozen=True, slots=True)
class _Bar:
    """A bar: a dark part, a light part up to a second number, and the rest."""

    dark: int
    light: int
    whole: int

    def __str__(self) -> str:
        scale = 120 / max(self.whole, 1)
        widths = (
            ("#8884", self.whole),
            ("#e8a33d", max(self.light, self.dark)),
            ("#c0392b", self.dark),
        )
        boxes = "".join(
            f'<rect width="{width * scale:.1f}" height="10" fill="{color}"/>'
            for color, width in widths
        )
        return f'<svg width="120" height="10" role="img">{boxes}</svg>'


def _table(head: Sequence[str], body: Iterable[Sequence[Any]]) -> str:
    rows_of_cells = []
    for row in body:
        cells = "".join(_cell(value) for value in row)
        rows_of_cells.append(f"<tr>{cells}</tr>")
    heads = "".join(f"<th>{_e(name)}</th>" for name in head)
    return f"<table><tr>{heads}</tr>{''.join(rows_of_cells)}</table>"


def _cell(value: Any) -> str:
    if isinstance(value, _Bar):
        return f"<td>{value}</td>"
    kind = " class=n" if isinstance(value, int) else ""
    return f"<td{kind}>{_e(str(value))}</td>"


def _histogram(values: Sequence[float], bins: int = 30) -> str:
    """Draw how many values fall into equal parts of their range."""
    if not values:
        return "<p>none</p>"
    top = max(values) or 1.0
    counts = [0] * bins
    for value in values:
        counts[min(int(value / top * bins), bins - 1)] += 1
    high = max(counts)
    bars = "".join(
        f'<rect x="{20 * number}" y="{100 - 100 * count / high:.1f}" width="18" '
        f'height="{100 * count / high:.1f}" fill="#2c7fb8"/>'
        for number, count in enumerate(counts)
    )
    return (
        f'<svg viewBox="0 0 {20 * bins} 118" width="100%" height="140" role="img">{bars}'
        f'<text x="0" y="116" font-size="12" fill="currentColor">0</text>'
        f'<text x="{20 * bins}" y="116" font-size="12" fill="currentColor" text-anchor="end">'
        f"{top:.1f} s</text></svg>"
    )


def _e(text: str) -> str:
    return markup.escape(safe(text))
