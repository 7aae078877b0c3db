"""Known failures: the entries of a baseline and their check. Pure; reads no file.

An entry excuses the failures of one clause or threat, in some revisions or in all, and says why.
It applies as long as the failure occurs. After that it is *stale*, and a stale entry fails the
gate too, so that a baseline never excuses more than necessary.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Catalogue, CatalogueError, check_keys, nearest
from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.catalog.scenario import Registry
from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.gate.toml_text import listed, quoted, value
from mcp_touchstone.results.run import Run, Settlement, Stale, Verdict
from mcp_touchstone.results.verdict import Outcome

ALL: Final = "all"
UNEXPLAINED: Final = "unexplained: "
"""Prefix of a reason that a person must still write."""

HEADING: Final = """\
# Known failures. `mcp-touchstone check` shows them apart and passes. Give a reason for each.
# `check` fails if an entry no longer fails. `mcp-touchstone check --update-baseline` removes such
# entries, adds new failures and keeps your reasons.
"""
_HEADER: Final = "[[known]]"
_KEYS: Final = {
    "clause": "string", "threat": "string", "revision": "string", "reason": "string",
    "outcome": "string", "tool": "string", "argument": "string", "sometimes": "boolean",
    "owner": "string", "expires": "string",
}  # fmt: skip
_REASON: Final = 140
"""Characters of a finding used as a preliminary reason."""


class BaselineError(UserError, ValueError):
    """A baseline cannot be used; the message names the file, the entry and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFailure:
    """One known failure.

    Attributes:
        rule: id of the clause or threat.
        threat: whether it is a threat.
        revisions: the revisions in which it fails, oldest first; empty means all.
        broken: whether the entry accepts that the rule cannot be judged; excuses no failure.
        tools: the tools in which it is accepted, sorted; empty means all.
        arguments: tool -> its arguments in which it is accepted, sorted; a tool that it lacks is
            accepted in all arguments.
        sometimes: whether the failure appears by chance; then the entry never gets stale.
        owner: the person or team that removes it; empty if nobody is named.
        expires: the last day on which it applies; None for no end.
        reason: the reason it is accepted.
    """

    rule: str
    threat: bool = False
    revisions: tuple[str, ...] = ()
    broken: bool = False
    tools: tuple[str, ...] = ()
    arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sometimes: bool = False
    owner: str = ""
    expires: date | None = None
    reason: str

    def __str__(self) -> str:
        """Return its name, as reports print it."""
        return f"{self.rule} ({', '.join(self.revisions) or 'all revisions'})"

    def covers(self, verdict: Verdict) -> bool:
        """Return whether it applies to a verdict."""
        return (
            self.rule == verdict.clause.id
            and (not self.revisions or verdict.revision in self.revisions)
            and self.broken is (verdict.outcome is Outcome.BROKEN)
            and all(map(self._accepts, verdict.tools, verdict.tools.values()))
        )

    def _accepts(self, tool: str, arguments: frozenset[str]) -> bool:
        """Return whether the failure is accepted in these arguments of a tool."""
        if self.tools and tool not in self.tools:
            return False
        return tool not in self.arguments or arguments <= {*self.arguments[tool]}

    def text(self) -> str:
        """Return it as TOML."""
        where = quoted(ALL) if not self.revisions else listed(self.revisions)
        lines = [
            _HEADER,
            f"{'threat' if self.threat else 'clause'} = {quoted(self.rule)}",
            f"revision = {where}",
            *(['outcome = "broken"'] if self.broken else []),
            *([f"tool = {value(_word(self.tools))}"] if self.tools else []),
            *([f"argument = {self._argument()}"] if self.arguments else []),
            *(["sometimes = true"] if self.sometimes else []),
            *([f"owner = {quoted(self.owner)}"] if self.owner else []),
            *([f"expires = {self.expires}"] if self.expires else []),
            f"reason = {quoted(self.reason)}",
        ]
        return "\n".join(lines) + "\n"

    def _argument(self) -> str:
        """Return the arguments as TOML: for all tools alike, or a table by tool."""
        rows = {tool: _word(names) for tool, names in self.arguments.items()}
        if {*self.arguments} == {*self.tools} and len({*self.arguments.values()}) == 1:
            return value(next(iter(rows.values())))
        return value(rows)


def _word(words: tuple[str, ...]) -> str | tuple[str, ...]:
    return words[0] if len(words) == 1 else words


@dataclass(frozen=True, slots=True)
class Baseline:
    """A baseline as it was read: its name, its entries in order, its text."""

    name: str
    entries: tuple[KnownFailure, ...] = ()
    text: str = HEADING


@dataclass(frozen=True, slots=True)
class Renewal:
    """The result of updating a baseline."""

    baseline: Baseline
    added: tuple[KnownFailure, ...]
    removed: tuple[KnownFailure, ...]


# --- reading


def read(text: str, name: str) -> Baseline:
    """Read a baseline.

    Raises:
        BaselineError: it is not TOML, or an entry is invalid.
    """
    try:
        table = tomllib.loads(text)
        check_keys(table, {"known": "array of tables"}, (), name)
        entries = tuple(
            _entry(row, f"{name}: entry {number}")
            for number, row in enumerate(table.get("known", []), 1)
        )
    except (tomllib.TOMLDecodeError, CatalogueError) as error:
        where = "" if name in str(error) else f"{name}: "
        raise BaselineError(f"{where}{error}; docs/guides/baseline.md shows an entry") from error
    for number, entry in enumerate(entries, 1):
        for before, other in enumerate(entries[: number - 1], 1):
            if _meet(entry, other):
                raise BaselineError(
                    f"{name}: entry {number} repeats entry {before} ({entry.rule}); keep one"
                )
    return Baseline(name, entries, text)


def _entry(row: Mapping[str, Any], where: str) -> KnownFailure:
    named = [key for key in ("clause", "threat") if row.get(key)]
    where = f"{where} ({row[named[0]]})" if len(named) == 1 else where
    revisions = row.get("revision", ALL)
    if isinstance(revisions, list) and revisions:
        row = {**row, "revision": ALL}
    tools = row.get("tool", [])
    if isinstance(tools, list) and tools and all(isinstance(tool, str) for tool in tools):
        row = {**row, "tool": tools[0]}
    row = {**row, "expires": str(row["expires"])} if "expires" in row else row
    arguments = _arguments(row, tools, where)
    check_keys({**row, "argument": ""}, _KEYS, (), where)
    if len(named) != 1:
        raise CatalogueError(f'{where}: write clause = "…" or threat = "…", one of them')
    if not str(row.get("reason", "")).strip():
        raise CatalogueError(f"{where}: reason is missing: say why the failure is accepted")
    if row.get("outcome", "broken") != "broken":
        raise CatalogueError(f'{where}: outcome is "broken" or left out')
    found = [revisions] if isinstance(revisions, str) else revisions
    for revision in found:
        if found != [ALL] and revision not in rev.ALL:
            hint = nearest(str(revision), (ALL, *rev.ALL))
            raise CatalogueError(f"{where}: unknown revision {revision!r}{hint}")
    return KnownFailure(
        rule=row[named[0]],
        threat=named == ["threat"],
        revisions=() if found == [ALL] else tuple(r for r in rev.ALL if r in found),
        broken="outcome" in row,
        tools=tuple(sorted({tools} if isinstance(tools, str) else {*tools})),
        arguments=arguments,
        sometimes=row.get("sometimes", False),
        owner=row.get("owner", ""),
        expires=_day(row["expires"], where) if "expires" in row else None,
        reason=row["reason"],
    )


def _arguments(row: Mapping[str, Any], tools: Any, where: str) -> dict[str, tuple[str, ...]]:
    """Return tool -> arguments of an entry: names for all its tools, or a table by tool."""
    given = row.get("argument", {})
    listed_tools = [tools] if isinstance(tools, str) else tools
    table = given if isinstance(given, dict) else dict.fromkeys(listed_tools, given)
    rows = {tool: [one] if isinstance(one, str) else one for tool, one in table.items()}
    if "argument" in row and not rows:
        raise CatalogueError(f"{where}: argument needs the tool that has it: add tool = …")
    for tool, names in rows.items():
        if tool not in listed_tools:
            raise CatalogueError(f"{where}: argument: {tool!r} is not in tool")
        if not (isinstance(names, list) and names and all(isinstance(n, str) for n in names)):
            raise CatalogueError(f"{where}: argument is a name, a list, or a table by tool")
    return {tool: tuple(sorted({*names})) for tool, names in sorted(rows.items())}


def _day(word: str, where: str) -> date:
    try:
        return date.fromisoformat(word)
    except ValueError as error:
        raise CatalogueError(f"{where}: expires is {word!r}; write a day as 2027-01-31") from error


def _meet(one: KnownFailure, other: KnownFailure) -> bool:
    return (
        (one.rule, one.broken) == (other.rule, other.broken)
        and (not one.revisions or not other.revisions
             or not set(one.revisions).isdisjoint(other.revisions))
    )  # fmt: skip


def check(baseline: Baseline, catalogue: Catalogue) -> None:
    """Reject entries whose rule or revision does not exist.

    Args:
        baseline: the baseline.
        catalogue: all clauses and threats, whether the run judges them or not.

    Raises:
        BaselineError: an entry is rejected; names it and the closest valid word.
    """
    for number, entry in enumerate(baseline.entries, 1):
        wrong = _unknown(entry, catalogue)
        if wrong:
            raise BaselineError(f"{baseline.name}: entry {number}: {wrong}")


def _unknown(entry: KnownFailure, catalogue: Catalogue) -> str:
    kind = "threat" if entry.threat else "clause"
    if entry.rule not in catalogue:
        now = _renamed(catalogue).get(entry.rule)
        if now:
            return f"{entry.rule} is now part of {now}; `check --update-baseline` renames it"
        hint = nearest(entry.rule, (clause.id for clause in catalogue))
        return f"no {kind} is called {entry.rule!r}{hint}"
    clause = catalogue[entry.rule]
    if isinstance(clause, Threat) is not entry.threat:
        other = "clause" if entry.threat else "threat"
        return f'{entry.rule} is a {other}: write {other} = "{entry.rule}"'
    if not clause.judged:
        return f"{entry.rule} is not judged: {clause.deferred or clause.unobservable}"
    outside = [r for r in entry.revisions if r not in clause.revisions]
    if outside:
        holds = ", ".join(clause.revisions)
        return f"{entry.rule} says nothing in {outside[0]}; it holds in {holds}"
    return ""


def _renamed(catalogue: Catalogue) -> dict[str, str]:
    return {old: clause.id for clause in catalogue for old in clause.replaces}


# --- comparing a run with it


def settle(baseline: Baseline, run: Run, registry: Registry, choice: Choice) -> None:
    """Mark the known failures of a run and find the stale entries; store both in the run.

    Rules that the choice excludes are neither known nor stale.
    """
    for verdict in run.verdicts:
        counted = run.floor.counts(verdict.clause, verdict.outcome)
        if counted or verdict.outcome is Outcome.BROKEN:
            for entry in baseline.entries:
                if entry.covers(verdict):
                    verdict.known = entry.reason
    view = _View(run, registry, choice)
    stale = [
        Stale(entry.rule, entry.revisions, entry.reason, why)
        for entry in baseline.entries
        if (why := view.stale(entry))
    ]
    run.settled = Settlement(baseline.name, len(baseline.entries), stale)


class _View:
    """The verdicts of a run, as they concern the entries of a baseline."""

    def __init__(self, run: Run, registry: Registry, choice: Choice) -> None:
        self._run = run
        self._outcomes = {(v.clause.id, v.revision): v.outcome for v in run.verdicts}
        self._absent = {(row.clause, row.revision): row.why for row in run.absent}
        self._narrowed = bool(choice.revisions) or choice.quick
        self._whole = {clause.id for case in registry.cases() for clause in case.clauses}
        for case in registry.cases():
            for clause in case.clauses:
                left_out = choice.cases is not None and case.id not in choice.cases
                draws = choice.draws(case) and choice.fires(clause)
                if left_out or not draws or not choice.takes(case, clause):
                    self._whole.discard(clause.id)
        self._holds = {clause.id: clause.revisions for clause in registry.catalogue}

    def judged(self, rule: str) -> list[str]:
        """Return the revisions in which a rule has a verdict."""
        known = {revision for name, revision in (*self._outcomes, *self._absent) if name == rule}
        return [revision for revision in rev.ALL if revision in known]

    def stale(self, entry: KnownFailure) -> str:
        """Return the reason an entry is stale; empty if it still applies or was not checked."""
        if entry.expires and self._run.started[:10] > str(entry.expires):
            return f"it expired on {entry.expires}" + (f"; ask {entry.owner}" * bool(entry.owner))
        over = not (self._run.trouble or self._run.interrupted)
        if entry.sometimes or not over or entry.rule not in self._whole:
            return ""
        judged = self.judged(entry.rule)
        profile = self._run.profile
        silent = {*profile.asked} - {*profile.spoken}
        concerned = [r for r in self._holds[entry.rule] if r not in silent]
        if not entry.revisions:
            if self._narrowed and not set(concerned) <= set(judged):
                return ""
            if not concerned:
                return "the server speaks no revision in which it holds"
        said = {r: self._gone(entry, r, judged) for r in entry.revisions or judged}
        if not said or not all(said.values()):
            return ""
        return next(iter(dict.fromkeys(said.values())))

    def trimmed(self, entry: KnownFailure) -> KnownFailure:
        """Return an entry without the tools and arguments in which its failure is gone."""
        found = _places(
            verdict
            for verdict in self._run.verdicts
            if replace(entry, tools=(), arguments={}).covers(verdict)
        )
        still = tuple(tool for tool in entry.tools if tool in found)
        if not still or entry.sometimes:
            return entry
        arguments = {
            tool: tuple(n for n in names if n in found[tool]) or names
            for tool, names in entry.arguments.items()
            if tool in still
        }
        return replace(entry, tools=still, arguments=arguments)

    def stale_in(self, entry: KnownFailure, revision: str) -> bool:
        """Return whether it no longer applies to a revision."""
        return bool(self.stale(replace(entry, revisions=(revision,))))

    def _gone(self, entry: KnownFailure, revision: str, judged: list[str]) -> str:
        outcome = self._outcomes.get((entry.rule, revision))
        if outcome is Outcome.PASS:
            return "it passes now"
        if outcome is not None:
            findings = {Outcome.FAIL, Outcome.WARN, Outcome.NOTE}
            return "it can be judged now" if entry.broken and outcome in findings else ""
        if (entry.rule, revision) in self._absent:
            return self._absent[entry.rule, revision]
        profile = self._run.profile
        if revision in profile.asked and revision not in profile.spoken:
            return f"the server does not speak {revision}"
        return "" if self._narrowed else f"it is not judged in {revision}" if judged else ""


# --- updating it


def renew(
    baseline: Baseline, run: Run, registry: Registry, choice: Choice, catalogue: Catalogue
) -> Renewal:
    """Return a baseline that excuses exactly the present failures and keeps its reasons.

    Entries of rules that the choice excludes are kept. An entry of an unknown rule is removed;
    an entry whose clause was merged into another is renamed.
    """
    view = _View(run, registry, choice)
    names = _renamed(catalogue)
    kept: list[KnownFailure | None] = []
    for entry in baseline.entries:
        moved = replace(entry, rule=names.get(entry.rule, entry.rule))
        if any(verdict.sometimes and moved.covers(verdict) for verdict in run.verdicts):
            moved = replace(moved, sometimes=True, revisions=())
        meets = any(other is not None and _meet(moved, other) for other in kept)
        kept.append(None if meets or _unknown(moved, catalogue) else _trimmed(moved, view))
    added: list[KnownFailure] = []
    for fresh in _unexcused([entry for entry in kept if entry], run, view, choice):
        at = next(
            (
                n
                for n, entry in enumerate(kept)
                if entry and (entry.rule, entry.broken) == (fresh.rule, fresh.broken)
            ),
            None,
        )
        added.append(fresh)
        if at is None:
            kept.append(fresh)
        else:
            entry = kept[at] or fresh
            both = {*entry.revisions, *fresh.revisions}
            each = entry.revisions and fresh.revisions
            wide = tuple(r for r in rev.ALL if r in both) if each else ()
            tools = {*entry.tools, *fresh.tools} if entry.tools else set[str]()
            arguments = {
                tool: tuple(sorted({*entry.arguments.get(tool, ()), *names}))
                for tool, names in sorted({**entry.arguments, **fresh.arguments}.items())
                if tool not in entry.tools or tool in entry.arguments
            }
            kept[at] = replace(
                entry,
                revisions=wide,
                tools=tuple(sorted(tools)),
                arguments=arguments if tools else {},
                sometimes=entry.sometimes or fresh.sometimes,
            )
    removed = tuple(e for e, now in zip(baseline.entries, kept, strict=False) if now is None)
    text = _text(baseline, kept)
    entries = tuple(entry for entry in kept if entry)
    return Renewal(Baseline(baseline.name, entries, text), tuple(added), removed)


def _trimmed(entry: KnownFailure, view: _View) -> KnownFailure | None:
    if not entry.revisions:
        return None if view.stale(entry) else view.trimmed(entry)
    still = tuple(r for r in entry.revisions if not view.stale_in(entry, r))
    return view.trimmed(replace(entry, revisions=still)) if still else None


def _unexcused(
    entries: list[KnownFailure], run: Run, view: _View, choice: Choice
) -> Iterator[KnownFailure]:
    groups: dict[tuple[str, bool], list[Verdict]] = {}
    for verdict in run.verdicts:
        broken = verdict.outcome is Outcome.BROKEN
        red = broken or run.floor.counts(verdict.clause, verdict.outcome)
        if (
            red
            and not run.is_of_sdk(verdict)
            and not any(entry.covers(verdict) for entry in entries)
        ):
            groups.setdefault((verdict.clause.id, broken), []).append(verdict)
    for (rule, broken), verdicts in groups.items():
        where = [verdict.revision for verdict in verdicts]
        everywhere = not choice.revisions and not choice.quick and where == view.judged(rule)
        actual = " ".join((verdicts[-1].gravest.actual or "see the report").split())
        shown = actual if len(actual) <= _REASON else actual[: _REASON - 1] + "…"
        chance = any(verdict.sometimes for verdict in verdicts)
        places = _places(verdicts)
        yield KnownFailure(
            rule=rule,
            threat=isinstance(verdicts[-1].clause, Threat),
            revisions=() if everywhere or chance else tuple(where),
            broken=broken,
            tools=tuple(places),
            arguments={tool: names for tool, names in places.items() if names},
            sometimes=chance,
            reason=UNEXPLAINED + shown,
        )


def _places(verdicts: Iterable[Verdict]) -> dict[str, tuple[str, ...]]:
    """Return the tools in which verdicts were found, each with its arguments, all sorted."""
    found: dict[str, frozenset[str]] = {}
    for verdict in verdicts:
        for tool, names in verdict.tools.items():
            found[tool] = found.get(tool, frozenset()) | names
    return {tool: tuple(sorted(names)) for tool, names in sorted(found.items())}


def _text(baseline: Baseline, kept: list[KnownFailure | None]) -> str:
    """Return the new text; unchanged entries keep their wording and their comments."""
    head, *blocks = _blocks(baseline.text)
    wanted = tuple(entry for entry in kept if entry)
    if len(blocks) == len(baseline.entries):
        pieces = [head]
        for number, now in enumerate(kept):
            before = baseline.entries[number] if number < len(blocks) else None
            if now is not None:
                old = blocks[number] if number < len(blocks) else ""
                pieces.append(old if now == before else _above(old) + now.text())
        text = _joined(pieces)
        try:
            if read(text, baseline.name).entries == wanted:
                return text
        except BaselineError:
            pass
    return _joined([HEADING, *(entry.text() for entry in wanted)])


def _blocks(text: str) -> list[str]:
    """Split a text before each header; comments right above a header belong to it."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip().startswith(_HEADER):
            above: list[str] = []
            while blocks[-1] and blocks[-1][-1].lstrip().startswith("#"):
                above.insert(0, blocks[-1].pop())
            blocks.append([*above, line])
        else:
            blocks[-1].append(line)
    return ["\n".join(block) for block in blocks]


def _above(block: str) -> str:
    """Return the comments above the header of an entry."""
    return block.partition(_HEADER)[0]


def _joined(pieces: list[str]) -> str:
    return "\n\n".join(piece.strip("\n") for piece in pieces if piece.strip()) + "\n"
