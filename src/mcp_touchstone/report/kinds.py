"""The reports one can ask for, and the writing of several of them: ``--report KIND:PATH``."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.clause import nearest
from mcp_touchstone.report import badge, html, junit, machine, markdown, sarif, save
from mcp_touchstone.report.recorded import ReportError
from mcp_touchstone.report.text import masked
from mcp_touchstone.results import Run

JSON: Final = "json"
TRANSCRIPTS: Final = "transcripts"

RENDERERS: Final[Mapping[str, Callable[[Run], str]]] = {
    "badge": badge.render,
    "html": html.render,
    "junit": junit.render,
    "markdown": markdown.render,
    "sarif": sarif.render,
}
"""Kind -> what makes the text of the file; JSON also holds the witness and is made apart."""

KINDS: Final = tuple(sorted({*RENDERERS, JSON}))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A report that was asked for: its kind and its file."""

    kind: str
    path: Path


def wanted(
    words: Iterable[str], json_path: Path | None = None, transcripts: Path | None = None
) -> list[Wanted]:
    """Read ``KIND:PATH`` words, the file of ``--json``, and the folder of ``--save``.

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
    if transcripts is not None:
        _check_folder(transcripts)
        found.append(Wanted(TRANSCRIPTS, transcripts))
    return found


def write(
    reports: Iterable[Wanted],
    run: Run,
    interop: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[str]:
    """Write all reports; give a line for each that could not be written.

    Args:
        reports: what was asked for.
        run: what was found.
        interop: what the official client says, where it was asked.
        environment: our variables; values that look secret are kept out, transcripts apart.
    """
    known = {**(environment or {}), **run.target.env}
    lost = []
    for report in reports:
        try:
            _write(report, run, interop, known)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            lost.append(f"{report.path}: {report.kind} could not be written: {reason}")
    return lost


def _write(
    report: Wanted, run: Run, interop: Mapping[str, Any] | None, environment: Mapping[str, str]
) -> None:
    if report.kind == TRANSCRIPTS:
        save.transcripts(run.connections, report.path)
        return
    if report.kind == JSON:
        text = json.dumps(machine.document(run, interop), indent=2) + "\n"
    else:
        text = RENDERERS[report.kind](run)
    report.path.write_text(masked(text, environment), encoding="utf-8", newline="\n")


def _read(word: str) -> Wanted:
    kind, colon, path = word.partition(":")
    if not colon or not path:
        raise ReportError(f"--report {word}: write KIND:PATH, where KIND is {_or(KINDS)}")
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


def _or(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
