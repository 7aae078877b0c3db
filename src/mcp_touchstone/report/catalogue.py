"""The catalogue on the terminal: ``list`` and ``explain``."""

import fnmatch
import textwrap
from collections import Counter
from collections.abc import Sequence

from mcp_touchstone.advisories.table import SERVER, Advisory, find, seen_in
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.attack_level import MEANING, Tier, option
from mcp_touchstone.catalog.clause import Catalogue, CatalogueError, Clause, Observable, nearest
from mcp_touchstone.catalog.loader import BOTH, CLIENTS, GATEWAYS, renamed, rows, suite_of
from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.profiles.load import profile, rule
from mcp_touchstone.profiles.measure import MEASURES
from mcp_touchstone.profiles.rule import EFFECTS, Rule
from mcp_touchstone.runtime.console import say

WIDTH = 96


def catalogue() -> Catalogue:
    """Read the clauses and the threats; imports no suite file."""
    return rows(BOTH)


LEGEND = (
    "+ checked   ~ checked if the server shows the behaviour   d draft, if selected   "
    ". not yet   - not observable"
)


def listing(words: Sequence[str], *, suite: str = "all", levels: Sequence[str] = ()) -> None:
    """Print one line for each clause that a word names; without words, for every clause.

    Args:
        words: ids, chapters, groups or patterns of them.
        suite: the suite to list: ``conformance``, ``security`` or ``all``.
        levels: levels of clauses and severities of threats to list; all if empty.

    Raises:
        CatalogueError: a word matches no clause.
    """
    known = catalogue()
    kinds = [suite] if suite in _NOUNS else list(_NOUNS)
    wanted = [c for c in known if not words or any(_named(word, c) for word in words)]
    for word in words:
        if not any(_named(word, clause) for clause in known):
            names = {name for clause in known for name in _names(clause)}
            raise CatalogueError(f"nothing is called {word!r}{nearest(word, names)}")
    say(LEGEND, "")
    for chapter in known.chapters:
        shown = [
            clause
            for clause in wanted
            if clause.place == f"{chapter.group}/{chapter.name}"
            and _kind(clause) in kinds
            and (not levels or _grade(clause) in levels)
        ]
        if not shown:
            continue
        say(f"{chapter.group}/{chapter.name}: {chapter.summary}")
        for clause in shown:
            say(f"  {_state(clause)}  {clause.grade:<10}  {_where(clause):<22}  {clause.id}")
        say("")
    for kind in kinds:
        named = [clause for clause in wanted if _kind(clause) == kind]
        if not named:
            continue
        count = Counter(map(_state, named))
        of_drafts = f", {count['d']} of drafts (d)" * bool(count["d"])
        say(
            f"{len(named)} {_NOUNS[kind]}: {count['+'] + count['~']} judged "
            f"(+; {count['~']} of them on condition: ~), {count['.']} not judged yet (.), "
            f"{count['-']} out of reach of a client (-){of_drafts}"
        )


_NOUNS = {
    "conformance": "clauses",
    CLIENTS: "clauses of clients",
    GATEWAYS: "clauses of gateways",
    "security": "threats",
}
"""Suite -> what its rules are called."""


def _kind(clause: Clause) -> str:
    return "security" if isinstance(clause, Threat) else suite_of(clause.group)


def explain(clause_id: str) -> None:
    """Print one clause in full, one rule of a profile (``vscode/array-items``), or one advisory.

    Raises:
        CatalogueError: there is none.
    """
    if is_of_profile(clause_id):
        _explain_profile(rule(clause_id))
    elif advisory := find(clause_id):
        _explain_advisory(advisory)
    else:
        _explain_clause(clause_id)


def _explain_clause(clause_id: str) -> None:
    known = catalogue()
    if now := renamed().get(clause_id):
        say(f"{clause_id} is now part of {now}", "")
        clause_id = now
    try:
        clause = known[clause_id]
    except CatalogueError as error:
        chapter = f" {clause_id}" if is_listed(clause_id) else ""
        raise CatalogueError(f"{error}; `mcp-touchstone list{chapter}` shows them") from None
    breach = {"fail": "a failure", "warn": "a warning", "note": "a note"}[clause.breach]
    say(clause.id)
    _paragraph("", clause.statement)
    if isinstance(clause, Threat):
        _paragraph("severity", f"{clause.severity}; found, it is {breach}")
        _paragraph("promise", str(clause.promise))
        _paragraph("attacks", f"{clause.tier}: {MEANING[clause.tier]}")
        _paragraph("effect", clause.effect)
        _paragraph("cause", clause.cause)
        _paragraph("weakness", clause.weakness)
    else:
        _paragraph("level", f"{clause.level}; breaking it is {breach}")
        _paragraph("revisions", ", ".join(clause.revisions))
    _paragraph("draft", clause.draft and f"{clause.draft}: judged only if it is selected")
    _paragraph("seen in", ", ".join(seen_in(clause.id)))
    _paragraph("needs", ", ".join(clause.needs))
    testable = _OBSERVABLE[clause.observable]
    if clause.group == CLIENTS:
        testable = testable.replace("has the features it needs", "or the client gives occasion")
    elif clause.group == GATEWAYS:
        testable = "in an exchange with our server, held directly and through the gateway"
    _paragraph("testable", testable)
    _paragraph("checked by", clause.how)
    _paragraph("not flagged", clause.not_flagged)
    _paragraph("decision", clause.decision)
    _paragraph("usual cure", clause.cure)
    _paragraph("not yet", clause.deferred)
    _paragraph("not testable", clause.unobservable)
    links = dict.fromkeys(link for r in clause.revisions for link in clause.links(r))
    say("")
    for link in links:
        say(f"  {link}")
    suite = "--suite security " if isinstance(clause, Threat) else ""
    if isinstance(clause, Threat) and clause.tier is not Tier.CORE:
        suite += f"{option(clause.tier)} "
    again = f"  mcp-touchstone check {suite}--select {clause.id} -- COMMAND"
    if _kind(clause) == CLIENTS:
        again = f"  mcp-touchstone client --select {clause.id} -- your client {{server}}"
    elif _kind(clause) == GATEWAYS:
        again = f"  mcp-touchstone gateway --select {clause.id} -- your gateway {{server}}"
    say("", *([again] if clause.judged else ()))


def _explain_profile(one: Rule) -> None:
    say(one.name)
    _paragraph("", one.says)
    _paragraph("client", profile(one.client).name)
    _paragraph("measured", MEASURES[one.measures].what)
    _paragraph("accepted", one.accepted)
    _paragraph("effect", f"{one.effect}: {EFFECTS[one.effect]}")
    _paragraph("usual cure", one.cure)
    _paragraph("version", one.version)
    _paragraph("last read", one.read.isoformat())
    say("", f"  {one.source}", "", f"  mcp-touchstone check --for {one.client} -- COMMAND")


def _explain_advisory(one: Advisory) -> None:
    say(one.id)
    _paragraph("", one.title)
    _paragraph("other ids", ", ".join(one.aliases))
    _paragraph("published", one.published.isoformat())
    _paragraph("software", "; ".join(map(str, one.affected)) or one.product)
    _paragraph("option", f"{one.option}; off by default" if one.option else "")
    _paragraph("usual cure", one.cure)
    _paragraph("shown by", ", ".join(one.shown_by))
    _paragraph("not tested", one.untested)
    say("", f"  {one.source}")
    if one.shown_by:
        rules = " ".join(f"--select {rule}" for rule in one.shown_by)
        word = "check --suite all" if one.side == SERVER else "client"
        command = "COMMAND" if one.side == SERVER else "your client {server}"
        say("", f"  mcp-touchstone {word} --advisories {rules} -- {command}")


_OBSERVABLE = {
    Observable.YES: "always, if the server has the features it needs",
    Observable.CONDITIONAL: "only if the server shows the behaviour",
    Observable.NO: "no",
}


def _paragraph(label: str, text: str) -> None:
    if text:
        say("")
        lines = textwrap.wrap(text, WIDTH - 15, break_on_hyphens=False)
        for number, line in enumerate(lines):
            say(f"  {label if not number else '':<13}{line}")


def _names(clause: Clause) -> tuple[str, ...]:
    return (clause.id, clause.chapter, clause.place, clause.group, *clause.sections)


def is_listed(word: str) -> bool:
    """Return whether ``listing`` finds clauses or threats by a word."""
    return any(_named(word, clause) for clause in catalogue())


def is_of_profile(word: str) -> bool:
    """Return whether a word can only name the rule of a profile, such as ``vscode/array-items``."""
    return word.count("/") == 1 and not is_listed(word)


def _named(word: str, clause: Clause) -> bool:
    return any(fnmatch.fnmatchcase(name, word) for name in _names(clause))


def _state(clause: Clause) -> str:
    if clause.judged and clause.draft:
        return "d"
    if clause.judged:
        return "~" if clause.conditional else "+"
    return "." if clause.deferred else "-"


def _grade(clause: Clause) -> str:
    """Return the severity of a threat, or the level of a clause; MUST includes MUST NOT."""
    return str(clause.grade).removesuffix(" NOT")


def _where(clause: Clause) -> str:
    """Return the level of attacks of a threat, or the revisions of a clause."""
    return f"attacks: {clause.tier}" if isinstance(clause, Threat) else _window(clause)


def _window(clause: Clause) -> str:
    revisions = clause.revisions
    if revisions == rev.ALL:
        return "all revisions"
    if len(revisions) == 1:
        return revisions[0]
    joined = rev.ALL[rev.ALL.index(revisions[0]) : rev.ALL.index(revisions[-1]) + 1] == revisions
    return f"{revisions[0]} … {revisions[-1][2:]}" if joined else f"{len(revisions)} revisions"
