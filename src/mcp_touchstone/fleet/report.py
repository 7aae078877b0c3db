"""The report on a fleet as text, HTML, CSV and Parquet."""

import csv
import html as markup
import io
import os
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist, quantiles
from typing import Any, Final
from urllib.parse import quote

from mcp_touchstone.fleet.counts import FEW, Counts, Fleet, Group, Row
from mcp_touchstone.fleet.drive import FleetError, read
from mcp_touchstone.fleet.judge import PAGE
from mcp_touchstone.runtime.printable import safe

CONFIDENCE: Final = 0.95
"""Confidence of the intervals."""

NAME: Final = 24
"""Characters of the names of groups, at least."""

KINDS: Final = ("registry", "language", "SDK", "revision")
"""Kinds of groups, beside the group of all servers."""


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
    """Yield the lines of the report for a terminal.

    Args:
        names: whether to name the servers of a large fleet that have a security finding.
    """
    whole = fleet.whole
    names = names or whole.servers <= FEW
    yield (
        f"{whole.servers} servers, {whole.started} started, {_broke(whole)}  "
        f"(mcp-touchstone {fleet.tool['version']}, rules {fleet.tool['catalogue'][:8]})"
    )
    if fleet.partial:
        yield f"{fleet.partial} checks ended at their deadline: their verdicts until then count"
    yield ""
    if rows := _servers(fleet):
        wide = max(len(row[0]) for row in rows)
        most = max(len(row[1]) for row in rows)
        words = {key: one.install for key, one in fleet.servers.items()}
        room = max(len(word) for word in (*words.values(), "install?"))
        head = f"{'install?':{room}}  " if any(words.values()) else ""
        yield f"  {'server':{wide}}  {head}{'verdict':{most}}   own  of the SDK  open to"
        for key, state, own, theirs, threats in rows:
            word = f"{words[key] or '-':{room}}  " if head else ""
            yield f"  {key:{wide}}  {word}{state:{most}} {own:5} {theirs:11}  {threats}".rstrip()
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
    if fleet.found and whole.servers > FEW:
        yield ""
        hint = "" if names else "; --names names them"
        yield f"  {len(fleet.found)} servers with a security finding{hint}"
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
        groups = fleet.groups.get(kind, {})
        wide = max([NAME, *map(len, groups)])
        yield ""
        yield f"  {kind:{wide}} servers started failing"
        for name, group in sorted(groups.items()):
            yield f"  {name:{wide}} {group.servers:7} {group.started:7} {group.failing:7}"


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
    named = [
        (kind, name, group.rules)
        for kind, groups in fleet.groups.items()
        for name, group in groups.items()
    ]
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
dt { opacity: .6 } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
svg { display: block } code { font-size: 90% } .w { opacity: .6 }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd } }
"""


def html(fleet: Fleet, old: Fleet | None, *, names: bool, folder: Path | None = None) -> str:
    """Return a page that needs nothing else; its pictures are SVG.

    Args:
        folder: where the page is to be, for links to the reports of servers; None for no links.
    """
    return "\n".join(_page(fleet, old, names=names, folder=folder)) + "\n"


def _broke(whole: Group) -> str:
    by_sdk = f", {whole.excused} of them only by faults of the SDK" if whole.excused else ""
    return f"{whole.failing} broke a rule{by_sdk}"


def _page(fleet: Fleet, old: Fleet | None, *, names: bool, folder: Path | None) -> Iterator[str]:
    whole, tool = fleet.whole, fleet.tool
    few = whole.servers <= FEW
    names = names or few
    share = f"share ({CONFIDENCE:.0%} interval)"
    shared = -2 if few else None  # a share of few servers says nothing: no interval, no bar
    yield "<!doctype html><html lang=en><meta charset=utf-8><title>A fleet of MCP servers</title>"
    yield f"<style>{STYLE}</style><h1>{whole.servers} MCP servers</h1>"
    yield f"<p>{whole.started} started, {_broke(whole)}."
    yield f"{fleet.partial} checks ended at their deadline.</p>" if fleet.partial else "</p>"
    if rows := _servers(fleet):
        yield "<h2>Servers</h2>"
        heads = ("server", "verdict", "own failures", "failures of the SDK", "open to", "install?")
        known = [fleet.servers[row[0]] for row in rows]
        ends = ((one.install or "-", _Link.to(one.files, folder)) for one in known)
        body = ((*row, *end) for row, end in zip(rows, ends, strict=True))
        yield _table((*heads, "report"), body)
    yield "<h2>Starting</h2>"
    yield _table(
        ("class", "servers", share, "")[:shared],
        (
            (kind, count, _share(count, whole.servers), _Bar(0, 0, whole.servers, count))[:shared]
            for kind, count in fleet.starts.most_common()
        ),
    )
    yield "<h2>Rules that were broken</h2>"
    yield _table(
        ("rule", "broken", "failures", "by the SDK", "judged", "unseen", share, "")[:shared],
        ((rule, *_cells(one))[:shared] for rule, one in _ordered(whole.rules) if one.broken),
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
    yield f"<h2>How it was checked</h2><dl><dt>mcp-touchstone<dd>{_e(tool['version'])}"
    yield f"<dt>digest of the rules<dd><code>{_e(tool['catalogue'][:12])}</code>"
    for name, value in fleet.settings.items():
        text = shlex.join(map(str, value)) if isinstance(value, list) else str(value)
        yield f"<dt>{_e(name)}<dd>{_e(text)}"
    yield "</dl>"


def _cells(one: Counts) -> tuple[Any, ...]:
    bar = _Bar(one.failed, one.broken, one.judged)
    numbers = (one.broken, one.failed, one.sdk, one.judged, one.unseen)
    return (*numbers, _share(one.broken, one.judged), bar)


def _servers(fleet: Fleet) -> list[tuple[str, str, int, int, str]]:
    """Return the row of each server of a small fleet."""
    if fleet.whole.servers > FEW:
        return []
    return [
        (key, one.state, one.own, one.theirs, one.threats)
        for key, one in sorted(fleet.servers.items())
    ]


def _failing(fleet: Fleet, *, names: bool) -> Iterator[tuple[str, str]]:
    """Yield the servers that broke a rule; those with a security finding only if wanted."""
    for key, broken in sorted(fleet.failing.items()):
        if names or key not in fleet.found:
            yield key, ", ".join(broken)


@dataclass(frozen=True, slots=True)
class _Bar:
    """A bar: a dark part, a light part up to a second number, and the rest; or a plain part."""

    dark: int
    light: int
    whole: int
    plain: int = 0

    def __str__(self) -> str:
        scale = 120 / max(self.whole, 1)
        widths = (
            ("#8884", self.whole),
            ("#2c7fb8", self.plain),
            ("#e8a33d", max(self.light, self.dark)),
            ("#c0392b", self.dark),
        )
        boxes = "".join(
            f'<rect width="{width * scale:.1f}" height="10" fill="{color}"/>'
            for color, width in widths
        )
        return f'<svg width="120" height="10" role="img">{boxes}</svg>'


@dataclass(frozen=True, slots=True)
class _Link:
    """A link to the report of a server; empty if there is none."""

    address: str

    @classmethod
    def to(cls, files: str, folder: Path | None) -> "_Link":
        """Return the link from a page in a folder to a report in another one."""
        if not files or folder is None or not Path(files, PAGE).is_file():
            return cls("")
        return cls("./" + quote(os.path.relpath(Path(files, PAGE), folder)))

    def __str__(self) -> str:
        return f'<a href="{_e(self.address)}">report</a>' if self.address else ""


def _table(head: Sequence[str], body: Iterable[Sequence[Any]]) -> str:
    heads = "".join(f"<th>{_e(name)}</th>" for name in head)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in body)
    return f"<table><tr>{heads}</tr>{rows}</table>"


def _cell(value: Any) -> str:
    if isinstance(value, _Bar | _Link):
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
