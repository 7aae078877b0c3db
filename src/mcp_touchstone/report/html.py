"""A run as one HTML file: no network, no dependency, dark and light, printable.

The picture on top has a row for each chapter and a column for each revision; a click on a square
shows its findings. All text from a server is escaped. The content security policy of the page
allows the one script below, by its hash, and blocks everything else.
"""

import base64
import hashlib
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.loader import BOTH, renamed, rows
from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.report import clients, install, standing
from mcp_touchstone.report.comparison import SHOWN
from mcp_touchstone.report.digest import (
    again,
    by_clause,
    findings,
    noun,
    severity,
    starts,
    tally,
)
from mcp_touchstone.report.finding import PAGE, WORDS, Finding
from mcp_touchstone.report.text import plural, window
from mcp_touchstone.results.advice import Word
from mcp_touchstone.results.clause_sets import kept
from mcp_touchstone.results.run import Conclusion, Run, Verdict
from mcp_touchstone.results.verdict import Outcome, WireLine
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.version import __version__

HERE: Final = Path(__file__).parent
STYLE: Final = HERE / "page.css"
SCRIPT: Final = HERE / "page.js"

_SIGNS: Final = {
    Outcome.FAIL: "✗",
    Outcome.BROKEN: "?",
    Outcome.WARN: "!",
    Outcome.NOTE: "i",
    Outcome.PASS: "✓",
    Outcome.UNSEEN: "…",
}
_FOUND: Final = (Outcome.FAIL, Outcome.BROKEN, Outcome.WARN, Outcome.NOTE)
_SIDES: Final = {"→": "client", "←": "server", "·": "event"}
_LOOKS: Final = {Conclusion.PASSED: "good", Conclusion.FAILED: "bad"}


def render(run: Run) -> str:
    """Render the file."""
    return "\n".join(_page(run)) + "\n"


def _page(run: Run) -> Iterator[str]:
    style, script = STYLE.read_text("utf-8"), SCRIPT.read_text("utf-8")
    policy = (
        f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    name = run.subject.name or run.subject.shown
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield f"<title>{_text(name)}: {_text(standing.closing(run)[0])}</title>"
    yield f"<style>{style}</style>\n</head>\n<body>"
    yield from _head(run, name)
    yield "<main>"
    yield from _locked(run)
    yield from _abilities(run)
    yield from _since(run)
    yield from _tools(run)
    yield from _clients(run)
    yield from _advisories(run)
    yield from _stale(run)
    yield from _findings(run)
    yield from _picture(run)
    yield from _all(run)
    facts = [run.execution.started, starts(run), f"{run.execution.seconds:.1f} s"]
    footer = ", ".join([f"mcp-touchstone {__version__}", *(fact for fact in facts if fact)])
    yield f"</main>\n<footer>{_text(footer)}</footer>"
    yield f"<script>{script}</script>\n</body>\n</html>"


def _head(run: Run, name: str) -> Iterator[str]:
    word, _, rest = standing.closing(run)
    good = _LOOKS.get(run.conclusion, "unknown")
    outcomes = list(by_clause(run.verdicts).values())
    answer = install.sentence(run)
    if answer:
        good = install.LOOKS.get(Word(answer[0]), "warn")
    yield f'<header class="{good}">\n<h1>{_text(name)}</h1>'
    if answer:
        yield f'<p class="install"><strong>{_text(answer[0])}</strong>{_text(answer[1])}</p>'
    yield f'<p class="standing"><strong>{_text(word)}</strong>{_linked(run, rest)}</p>'
    if run.trouble:
        yield f"<p>{_text(run.trouble)}</p>"
    if said := standing.decision(run):
        yield f"<p>{_text(said)}</p>"
    if left := standing.unattacked(run):
        yield f"<p>{_text(left)}</p>"
    yield f"<p><code>{_text(run.subject.shown)}</code></p>"
    spoken = ", ".join(run.subject.revisions) or "no revision"
    judged = len(outcomes) - outcomes.count(Outcome.UNSEEN)
    yield f"<p>Supports {_text(spoken)}. {plural(judged, noun(run))} checked:</p>"
    yield '<ul class="counts">'
    counts = tally(run)
    for outcome in Outcome:
        if count := counts[outcome]:
            yield f'<li class="{outcome}"><b>{count}</b> {WORDS[outcome]}</li>'
    for grade, count in _grades(run):
        yield f'<li class="grade"><b>{count}</b> {_text(grade)}</li>'
    if counts["known"]:
        yield f'<li class="known"><b>{counts["known"]}</b> known, in the baseline</li>'
    if counts["sdk"]:
        yield f'<li class="known"><b>{counts["sdk"]}</b> in the SDK</li>'
    yield "</ul>\n</header>"


def _grades(run: Run) -> Iterator[tuple[str, int]]:
    """Count the failed rules by severity or level, the most severe first."""
    rules = {finding.clause.id: finding.clause.grade for finding in findings(run, Outcome.FAIL)}
    grades = list(rules.values())
    yield from ((grade, grades.count(grade)) for grade in dict.fromkeys(grades))


# --- the picture


def _picture(run: Run) -> Iterator[str]:
    transport = run.subject.transport
    places = {one.id: one.place for one in rows(BOTH) if transport in one.transports}
    cells: dict[str, dict[str, list[Verdict]]] = {}
    for row in run.absent:
        if row.clause in places:
            cells.setdefault(places[row.clause], {}).setdefault(row.revision, [])
    for verdict in run.verdicts:
        place = verdict.clause.place
        cells.setdefault(place, {}).setdefault(verdict.revision, []).append(verdict)
    if not cells:
        return
    shown = [r for r in rev.ALL if any(r in row for row in cells.values())]
    yield '<section>\n<h2>Chapters and revisions</h2>\n<div class="wide"><table class="picture">'
    heads = "".join(f'<th scope="col">{revision}</th>' for revision in shown)
    yield f'<thead><tr><th scope="col">chapter</th>{heads}</tr></thead>\n<tbody>'
    for place in sorted(cells):
        squares = "".join(
            f"<td>{_square(place, revision, cells[place].get(revision))}</td>" for revision in shown
        )
        yield f'<tr><th scope="row">{_text(place)}</th>{squares}</tr>'
    yield "</tbody></table></div>"
    signs = (f'<span class="{o}">{_SIGNS[o]} {WORDS[o]}</span>' for o in Outcome)
    yield f'<p class="legend">{" ".join(signs)} <span>· not applicable</span>'
    yield "<span>numbers: rules with the worst outcome / rules checked</span></p>\n</section>"


def _square(place: str, revision: str, verdicts: list[Verdict] | None) -> str:
    if not verdicts:
        return '<span class="none" title="not applicable">·</span>'
    gravest = min((verdict.outcome for verdict in verdicts), key=lambda outcome: outcome.rank)
    counts = {o: sum(v.outcome is o for v in verdicts) for o in Outcome}
    counted = ", ".join(f"{count} {WORDS[o]}" for o, count in counts.items() if count)
    label = f"{place} in {revision}: {counted}"
    judged = len(verdicts) - counts[Outcome.UNSEEN]
    number = f"{_SIGNS[gravest]} {counts[gravest]}/{judged}" if judged else _SIGNS[gravest]
    if gravest not in _FOUND:
        return f'<span class="{gravest}" title="{_text(label)}">{number}</span>'
    return (
        f'<button type="button" class="{gravest}" data-chapter="{_text(place)}" '
        f'data-revision="{revision}" title="{_text(label)}" aria-label="{_text(label)}">'
        f"{number}</button>"
    )


# --- findings


def _since(run: Run) -> Iterator[str]:
    if run.since is None:
        return
    yield f"<section>\n<h2>Since {_text(run.since.old)}</h2>"
    yield '<div class="wide"><table class="since"><thead><tr>'
    yield "<th>change</th><th>rule</th><th>revision</th>"
    yield "<th>was → now</th><th>actual</th></tr></thead><tbody>"
    for change in SHOWN:
        for item in run.since.of(change):
            turn = f"{item.was} → {item.now}"
            rule = f"<td><code>{_text(item.rule)}</code></td>"
            rest = "".join(f"<td>{_text(one)}</td>" for one in (item.revision, turn, item.actual))
            yield f"<tr><td>{change}</td>{rule}{rest}</tr>"
    yield "</tbody></table></div>\n</section>"


def _locked(run: Run) -> Iterator[str]:
    if run.locked is not None:
        yield f'<section id="lock">\n<h2>{_text(standing.since_lock(run))}</h2>\n<dl>'
        for row in standing.locked(run):
            yield from _row(*row)
        yield "</dl>\n</section>"


def _abilities(run: Run) -> Iterator[str]:
    if not run.abilities:
        return
    yield f'<section id="abilities">\n<h2>{install.TITLE}</h2>'
    yield '<div class="wide"><table><thead><tr><th>ability</th><th>known</th><th>shown by</th></tr>'
    yield "</thead><tbody>"
    for row in install.rows(run):
        yield f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>"
    yield f"</tbody></table></div>\n<h3>{install.UNTRIED}</h3>\n<ul>"
    for text, way in install.untried(run):
        tries = f": <code>{_text(way)}</code>" if way else ""
        yield f"<li>{_text(text)}{tries}</li>"
    yield "</ul>\n</section>"


def _tools(run: Run) -> Iterator[str]:
    rows = list(run.tools.rows())
    if rows:
        yield "<section>\n<h2>Tools</h2>\n<dl>"
        for row in rows:
            yield from _row(*row)
        yield "</dl>\n</section>"


def _clients(run: Run) -> Iterator[str]:
    if not run.clients.clients:
        return
    yield f'<section id="clients">\n<h2>{_text(clients.title(run))}</h2>\n<dl>'
    for _level, label, text in clients.lines(run):
        yield from _row(label, text)
    yield "</dl>\n</section>"


def _advisories(run: Run) -> Iterator[str]:
    if not run.advisories:
        return
    yield '<section id="advisories">\n<h2>Advisories</h2>\n<dl>'
    for state, text in standing.advisories(run):
        yield f"<dt>{_text(state)}</dt><dd>{_text(text)}</dd>"
    yield "</dl>\n</section>"


def _stale(run: Run) -> Iterator[str]:
    if not run.stale:
        return
    yield f"<section>\n<h2>Entries that no longer apply in {_text(standing.file(run))}</h2>\n<ul>"
    for entry in run.stale:
        yield (
            f"<li><code>{_text(entry.rule)}</code> ({window(entry.revisions)}): "
            f"{_text(entry.why)}</li>"
        )
    yield "</ul>\n</section>"


def _findings(run: Run) -> Iterator[str]:
    found = [
        *findings(run, *_FOUND),
        *findings(run, *_FOUND, of_sdk=True),
        *findings(run, *_FOUND, known=True),
    ]
    yield '<section id="findings">\n<h2>Findings</h2>'
    if not found:
        yield "<p>None.</p>\n</section>"
        return
    yield '<form class="filters" autocomplete="off">'
    choices = {
        "outcome": {str(o): WORDS[o] for o in _FOUND if any(f.outcome is o for f in found)},
        "level": {f.clause.grade: f.clause.grade for f in sorted(found, key=severity)},
        "revision": {r: r for r in rev.ALL if any(r in f.revisions for f in found)},
        "chapter": {name: name for name in sorted(f.clause.place for f in found)},
    }
    for name, options in choices.items():
        yield f'<label>{name} <select name="{name}"><option value="">all</option>'
        for value, word in options.items():
            yield f'<option value="{_text(value)}">{_text(word)}</option>'
        yield "</select></label>"
    yield '<button type="reset">show all</button> <output aria-live="polite"></output>\n</form>'
    for finding in found:
        yield from _finding(run, finding)
    yield '<p class="nothing" hidden>No finding matches.</p>\n</section>'


def _finding(run: Run, finding: Finding) -> Iterator[str]:
    clause, judgement = finding.clause, finding.judgement
    data = {
        "outcome": str(finding.outcome),
        "level": clause.grade,
        "chapter": finding.clause.place,
        "revision": " ".join(finding.revisions),
    }
    marks = " ".join(f'data-{key}="{_text(value)}"' for key, value in data.items())
    of_sdk = finding.sdk is not None and not finding.known and not run.floor.sdk
    own = finding.outcome is Outcome.FAIL and not finding.known and not of_sdk
    unfolded = " open" if own else ""
    known = ' <span class="known">known</span>' if finding.known else ""
    if finding.sdk is not None:
        known += f' <span class="known">{_text(str(finding.sdk.sdk))}</span>'
    yield f'<details class="finding" id="{_anchor(finding)}" {marks}{unfolded}>'
    yield (
        f'<summary><span class="{finding.outcome}">{_SIGNS[finding.outcome]} '
        f"{WORDS[finding.outcome]}</span> <code>{_text(clause.id)}</code> "
        f"<small>{_text(clause.grade)} · {window(finding.revisions)}</small>{known}</summary>"
    )
    yield "<dl>"
    for label, lines in finding.rows(PAGE):
        if label == "specification":
            links = (f'<a href="{_text(one)}" rel="noreferrer">{_text(one)}</a>' for one in lines)
            name = "references" if isinstance(clause, Threat) else label
            yield f"<dt>{name}</dt><dd>{'<br>'.join(links)}</dd>"
        else:
            yield from _row(label, ", ".join(lines))
    yield "</dl>"
    if judgement.wire:
        yield f'<p class="over">the conversation, {_text(judgement.revision)}</p>'
        yield '<ol class="wire">'
        yield from map(_line, judgement.wire)
        yield "</ol>"
    if judgement.reproduction:
        script = "\n".join(map(_text, judgement.reproduction.splitlines()))
        head = "without mcp-touchstone"
        yield (
            f"<details><summary>{head}, a script for a shell</summary><pre>{script}</pre></details>"
            if judgement.reproduction.startswith("#!")
            else f'<p class="over">{head}</p><pre>{script}</pre>'
        )
    yield f'<p class="over">check it again</p><pre>{_text(again(run, finding))}</pre>\n</details>'


def _anchor(finding: Finding) -> str:
    return f"{finding.clause.id}-{finding.outcome}-{finding.revisions[-1]}"


def _linked(run: Run, text: str) -> str:
    """Render the last line of a run; the rule that it names leads to its finding."""
    shown = _prose(text)
    for finding in findings(run, Outcome.FAIL):
        command = f"<code>mcp-touchstone explain {finding.clause.id}</code>"
        shown = shown.replace(command, f'<a href="#{_anchor(finding)}">{command}</a>')
    return shown


def _line(line: WireLine) -> str:
    guilty = ' <span class="mark">this line</span>' if line.guilty else ""
    kind = _SIDES.get(line.arrow, "event") + (" guilty" if line.guilty else "")
    http = f'<span class="n">{_text(line.http)}</span>' if line.http else ""
    return (
        f'<li class="{kind}"><span class="n">{line.n} {_text(line.arrow)} '
        f"{_SIDES.get(line.arrow, 'event')}{guilty}</span>{http}"
        f"<code>{_text(line.text)}</code></li>"
    )


def _row(label: str, text: str) -> Iterator[str]:
    yield f"<dt>{label}</dt><dd>{_text(text)}</dd>"


def _all(run: Run) -> Iterator[str]:
    """Yield the list of every verdict, collapsed."""
    if not run.verdicts:
        return
    yield '<section>\n<details class="all"><summary>Every verdict</summary>'
    yield '<div class="wide"><table><thead><tr><th>rule</th><th>level</th><th>outcome</th></tr>'
    yield "</thead><tbody>"
    rules: dict[str, list[Verdict]] = {}
    for verdict in run.verdicts:
        rules.setdefault(verdict.clause.id, []).append(verdict)
    for rule, verdicts in rules.items():
        counted = " ".join(
            f'<span class="{v.outcome}" title="{v.revision}">{_SIGNS[v.outcome]} '
            f"{v.revision[2:]}</span>"
            for v in verdicts
        )
        grade = _text(verdicts[0].clause.grade)
        yield f"<tr><td><code>{_text(rule)}</code></td><td>{grade}</td><td>{counted}</td></tr>"
    yield "</tbody></table></div>"
    for one in kept(run, renamed):
        if one.figure:
            yield f"<p>{one.revision}: {one.figure} <small>(set {one.name})</small></p>"
    yield "</details>\n</section>"


def _source(text: str) -> str:
    """Return the hash of an inline style or script for the content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _prose(text: str) -> str:
    """Render text between backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", _text(text))


def _text(text: str) -> str:
    return escape(safe(text), quote=True)
