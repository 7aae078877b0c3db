"""The catalogue on the terminal: ``list`` and ``explain``."""

import fnmatch
import textwrap
from collections.abc import Sequence

from mcp_touchstone import revision as rev
from mcp_touchstone.clause import (
    Catalogue,
    CatalogueError,
    Clause,
    Observable,
    load_catalogue,
    nearest,
)
from mcp_touchstone.loader import home

WIDTH = 96


def catalogue() -> Catalogue:
    """Read the clause files; imports no suite file."""
    return load_catalogue(home() / "conformance")


def listing(words: Sequence[str]) -> None:
    """Print one line for each clause that one of the words names; all without words.

    Raises:
        CatalogueError: a word names nothing.
    """
    rows = catalogue()
    for word in words:
        if not any(_named(word, clause) for clause in rows):
            names = {name for clause in rows for name in _names(clause)}
            raise CatalogueError(f"nothing is called {word!r}{nearest(word, names)}")
    for chapter in rows.chapters:
        shown = [c for c in chapter.clauses if not words or any(_named(w, c) for w in words)]
        if not shown:
            continue
        print(f"{chapter.group}/{chapter.name}: {chapter.summary}")
        for clause in shown:
            print(f"  {_state(clause)}  {clause.level:<10}  {_window(clause):<22}  {clause.id}")
        print()
    judged = sum(clause.judged for clause in rows)
    conditional = sum(clause.conditional for clause in rows if clause.judged)
    deferred = sum(bool(clause.deferred) for clause in rows)
    print(
        f"{len(rows)} clauses: {judged} judged (+; {conditional} of them on condition: ~), "
        f"{deferred} not judged yet (.), "
        f"{len(rows) - judged - deferred} out of reach of a client (-)"
    )


def explain(clause_id: str) -> None:
    """Print one clause in full.

    Raises:
        CatalogueError: there is no such clause.
    """
    rows = catalogue()
    renamed = {old: clause.id for clause in rows for old in clause.replaces}
    if clause_id in renamed:
        print(f"{clause_id} is now part of {renamed[clause_id]}\n")
        clause_id = renamed[clause_id]
    clause = rows[clause_id]
    breach = {"fail": "a failure", "warn": "a warning", "note": "a note"}[clause.breach]
    print(clause.id)
    _paragraph("", clause.statement)
    _paragraph("level", f"{clause.level}; breaking it is {breach}")
    _paragraph("revisions", ", ".join(clause.revisions))
    _paragraph("needs", ", ".join(clause.needs))
    _paragraph("observable", _OBSERVABLE[clause.observable])
    _paragraph("judged", clause.how)
    _paragraph("not flagged", clause.not_flagged)
    _paragraph("settled", clause.decision)
    _paragraph("not yet", clause.deferred)
    _paragraph("out of reach", clause.unobservable)
    links = dict.fromkeys(link for r in clause.revisions for link in clause.links(r))
    print()
    for link in links:
        print(f"  {link}")
    print(f"\n  mcp-touchstone check --select {clause.id} -- your server" if clause.judged else "")


_OBSERVABLE = {
    Observable.YES: "on every server that offers what it needs",
    Observable.CONDITIONAL: "on servers that do what it speaks of",
    Observable.NO: "no",
}


def _paragraph(label: str, text: str) -> None:
    if text:
        print()
        lines = textwrap.wrap(text, WIDTH - 15, break_on_hyphens=False)
        for number, line in enumerate(lines):
            print(f"  {label if not number else '':<13}{line}")


def _names(clause: Clause) -> tuple[str, ...]:
    return (clause.id, clause.chapter, f"{clause.group}/{clause.chapter}", clause.group)


def _named(word: str, clause: Clause) -> bool:
    return any(fnmatch.fnmatchcase(name, word) for name in _names(clause))


def _state(clause: Clause) -> str:
    if clause.judged:
        return "~" if clause.conditional else "+"
    return "." if clause.deferred else "-"


def _window(clause: Clause) -> str:
    revisions = clause.revisions
    if revisions == rev.ALL:
        return "all revisions"
    if len(revisions) == 1:
        return revisions[0]
    joined = rev.ALL[rev.ALL.index(revisions[0]) : rev.ALL.index(revisions[-1]) + 1] == revisions
    return f"{revisions[0]} … {revisions[-1][2:]}" if joined else f"{len(revisions)} revisions"
