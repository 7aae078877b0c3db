"""The kinds of report, and the function that writes them: ``--report KIND:PATH``."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.config.settings import SHARED_REPORTS
from mcp_touchstone.report import badge, combined, html, junit, machine, markdown, sarif, save
from mcp_touchstone.report.combined import Part
from mcp_touchstone.report.recorded import ReportError
from mcp_touchstone.report.text import masked
from mcp_touchstone.results.run import Run
from mcp_touchstone.runtime.printable import safe

JSON: Final = "json"
TRANSCRIPTS: Final = "transcripts"
SCRIPTS: Final = "scripts"

RENDERERS: Final[Mapping[str, Callable[[Run], str]]] = {
    "badge": badge.render,
    "html": html.render,
    "junit": junit.render,
    "markdown": markdown.render,
    "sarif": sarif.render,
}
"""Kind -> function that renders the file; JSON is rendered separately."""

KINDS: Final = tuple(sorted({*RENDERERS, JSON}))


Parts = dict[Path, list[Part]]
"""Path of a report that several targets share -> the parts of the checked targets."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A requested report: its kind and its file."""

    kind: str
    path: Path


def wanted(
    words: Iterable[str],
    json_path: Path | None = None,
    transcripts: Path | None = None,
    scripts: Path | None = None,
) -> list[Wanted]:
    """Read ``KIND:PATH`` words, the file of ``--json``, and two folders.

    Raises:
        ReportError: a kind is unknown, or a file cannot be there.
    """
    found = [_read(word) for word in words]
    if json_path is not None:
        found.append(Wanted(JSON, json_path))
    files: dict[Path, str] = {}
    for one in found:
        _check(one.path)
        other = files.setdefault(one.path.absolute(), one.kind)
        if other != one.kind:
            raise ReportError(f"{one.path} would hold {other} and {one.kind}; name two files")
    for kind, folder in ((TRANSCRIPTS, transcripts), (SCRIPTS, scripts)):
        if folder is not None:
            _check_folder(folder)
            found.append(Wanted(kind, folder))
    return found


def write(
    reports: Iterable[Wanted],
    run: Run,
    environment: Mapping[str, str] | None = None,
    name: str = "",
    parts: Parts | None = None,
) -> list[str]:
    """Write all reports; return a line for each that could not be written.

    Args:
        environment: variables of ours and of the server; their secret values are masked, except
            in transcripts.
        parts: the reports that several targets share; the part of this target is added.
    """
    known = environment or {}
    lost = []
    for report in reports:
        try:
            _write(report, run, known, name, parts or {})
        except OSError as error:
            reason = error.strerror or type(error).__name__
            lost.append(f"{report.path}: {report.kind} could not be written: {reason}")
    return lost


def _write(
    report: Wanted, run: Run, environment: Mapping[str, str], name: str, parts: Parts
) -> None:
    if report.kind == TRANSCRIPTS:
        save.transcripts(run.connections, report.path, environment)
        return
    if report.kind == SCRIPTS:
        save.scripts(run, report.path, environment)
        return
    if report.kind == JSON:
        text = json.dumps(machine.document(run), indent=2) + "\n"
    else:
        text = RENDERERS[report.kind](run)
    text = masked(text, environment)
    if report.path in parts:
        parts[report.path].append(Part(name, text))
        text = combined.combine(report.kind, parts[report.path])
    report.path.write_text(text, encoding="utf-8", newline="\n")


def shared(words: Iterable[str]) -> Parts:
    """Return the reports that several targets share, without parts.

    Args:
        words: ``KIND:PATH`` words that all targets have in common.

    Raises:
        ReportError: a kind is unknown, or a file cannot be there.
    """
    return {one.path: [] for one in wanted(words) if one.kind in SHARED_REPORTS}


def write_missing(reports: Iterable[Wanted], parts: Parts, name: str, trouble: str) -> list[str]:
    """Add a target that could not be checked to shared reports; return lines as `write` does."""
    lost = []
    for report in reports:
        if report.path in parts:
            parts[report.path].append(Part(name, trouble=safe(trouble)))
            try:
                text = combined.combine(report.kind, parts[report.path])
                report.path.write_text(text, encoding="utf-8", newline="\n")
            except OSError as error:
                lost.append(f"{report.path}: {report.kind} could not be written: {error.strerror}")
    return lost


def _read(word: str) -> Wanted:
    kind, colon, path = word.partition(":")
    if not colon or not path:
        known = f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"
        raise ReportError(f"--report {word}: write KIND:PATH, where KIND is {known}")
    if kind not in KINDS:
        hint = nearest(kind, KINDS) or f"; there are {', '.join(KINDS)}"
        raise ReportError(f"--report {word}: no report is called {kind!r}{hint}")
    return Wanted(kind, Path(path))


def _check(path: Path) -> None:
    if path.is_dir():
        raise ReportError(f"{path} is a folder; name a file in it")
    _check_folder(path)


def _check_folder(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise ReportError(f"the folder {path.absolute().parent} does not exist; make it first")
