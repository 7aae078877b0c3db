"""Known failures: the entries of a baseline, their text and their check. Pure; reads no file.

An entry excuses the failures of one clause or threat, in some revisions or in all, and says why;
or it excuses that a scenario for clients is not judged to its end.
It applies as long as the failure occurs. After that it is *stale*, and a stale entry fails the
gate too, so that a baseline never excuses more than necessary.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Catalogue, CatalogueError, check_keys, nearest
from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.catalog.loader import CLIENTS, load
from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.gate.toml_text import listed, quoted, value
from mcp_touchstone.results.played import IN_TROUBLE, PlayedScenario, ScenarioOutcome
from mcp_touchstone.results.run import Verdict
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.input_file import parsed_toml

ALL: Final = "all"
HEADING: Final = """\
# Known failures. mcp-touchstone shows them apart and passes. Give a reason for each.
# It fails if an entry no longer fails. The same command with --update-baseline removes such
# entries, adds new failures and keeps your reasons.
"""
HEADER: Final = "[[known]]"
_KEYS: Final = {
    "clause": "string",
    "threat": "string",
    "scenario": "string",
    "revision": "string",
    "reason": "string",
    "outcome": "string",
    "tool": "string",
    "argument": "string",
    "sometimes": "boolean",
    "owner": "string",
    "expires": "string",
}


class BaselineError(InputError):
    """A baseline cannot be used; the message names the file, the entry and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFailure:
    """One known failure.

    Attributes:
        rule: id of the clause or threat, or name of the scenario for clients.
        threat: whether it is a threat.
        scenario: what may come of the scenario in place of a judgement; None for a rule.
        revisions: the revisions in which it fails, oldest first; empty means all.
        broken: whether the entry accepts that the rule cannot be judged; excuses no failure.
        tools: the tools in which it is accepted, sorted; empty means all.
        arguments: tool -> its arguments in which it is accepted, sorted; a tool that it lacks is
            accepted in all arguments.
        sometimes: whether the failure appears by chance; then the entry never gets stale.
        owner: the person or team that removes it; empty if nobody is named.
        expires: the last day on which it applies; None for no end.
    """

    rule: str
    threat: bool = False
    scenario: ScenarioOutcome | None = None
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
            (self.rule, self.scenario) == (verdict.clause.id, None)
            and (not self.revisions or verdict.revision in self.revisions)
            and self.broken is (verdict.outcome is Outcome.BROKEN)
            and all(map(self._accepts, verdict.tools, verdict.tools.values()))
        )

    def expects(self, played: PlayedScenario) -> bool:
        """Return whether it applies to what came of a scenario."""
        return self.concerns(played) and played.outcome is self.scenario

    def concerns(self, played: PlayedScenario) -> bool:
        """Return whether it is about a scenario that was played."""
        named = self.scenario is not None and self.rule == played.name
        return named and (not self.revisions or played.revision in self.revisions)

    def _accepts(self, tool: str, arguments: frozenset[str]) -> bool:
        """Return whether the failure is accepted in these arguments of a tool."""
        if self.tools and tool not in self.tools:
            return False
        return tool not in self.arguments or arguments <= {*self.arguments[tool]}

    def text(self) -> str:
        """Return it as TOML."""
        where = quoted(ALL) if not self.revisions else listed(self.revisions)
        kind = "scenario" if self.scenario else "threat" if self.threat else "clause"
        lines = [
            HEADER,
            f"{kind} = {quoted(self.rule)}",
            f"revision = {where}",
            *([f"outcome = {quoted(self.scenario)}"] if self.scenario else []),
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


# --- reading


def read(text: str, name: str) -> Baseline:
    """Read a baseline.

    Raises:
        BaselineError: it is not TOML, or an entry is invalid.
    """
    table = parsed_toml(text, name, "docs/guides/baseline.md shows an entry")
    try:
        check_keys(table, {"known": "array of tables"}, (), name)
        entries = tuple(
            _entry(row, f"{name}: entry {number}")
            for number, row in enumerate(table.get("known", []), 1)
        )
    except CatalogueError as error:
        where = "" if name in str(error) else f"{name}: "
        raise BaselineError(f"{where}{error}; docs/guides/baseline.md shows an entry") from error
    for number, entry in enumerate(entries, 1):
        for before, other in enumerate(entries[: number - 1], 1):
            if meet(entry, other):
                raise BaselineError(
                    f"{name}: entry {number} repeats entry {before} ({entry.rule}); keep one"
                )
    return Baseline(name, entries, text)


def _entry(row: Mapping[str, Any], where: str) -> KnownFailure:
    named = [key for key in ("clause", "threat", "scenario") if row.get(key)]
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
        what = 'clause = "…", threat = "…" or scenario = "…"'
        raise CatalogueError(f"{where}: write {what}, one of them")
    if not str(row.get("reason", "")).strip():
        raise CatalogueError(f"{where}: reason is missing: say why the failure is accepted")
    played = named == ["scenario"]
    if played and row.get("outcome") not in IN_TROUBLE:
        known = ", ".join(quoted(one) for one in IN_TROUBLE)
        raise CatalogueError(f"{where}: outcome must be one of {known}")
    if not played and row.get("outcome", "broken") != "broken":
        raise CatalogueError(f'{where}: outcome is "broken" or left out')
    found = [revisions] if isinstance(revisions, str) else revisions
    for revision in found:
        if found != [ALL] and revision not in rev.ALL:
            hint = nearest(str(revision), (ALL, *rev.ALL))
            raise CatalogueError(f"{where}: unknown revision {revision!r}{hint}")
    return KnownFailure(
        rule=row[named[0]],
        threat=named == ["threat"],
        scenario=ScenarioOutcome(row["outcome"]) if played else None,
        revisions=() if found == [ALL] else tuple(r for r in rev.ALL if r in found),
        broken="outcome" in row and not played,
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


def meet(one: KnownFailure, other: KnownFailure) -> bool:
    """Return whether two entries excuse the same failure in one revision."""
    same = (one.rule, one.broken, one.scenario) == (other.rule, other.broken, other.scenario)
    return same and (
        not one.revisions
        or not other.revisions
        or not set(one.revisions).isdisjoint(other.revisions)
    )


def check(baseline: Baseline, catalogue: Catalogue) -> None:
    """Reject entries whose rule or revision does not exist.

    Args:
        catalogue: all clauses and threats, whether the run judges them or not.

    Raises:
        BaselineError: an entry is rejected; names it and the closest valid word.
    """
    for number, entry in enumerate(baseline.entries, 1):
        wrong = unknown(entry, catalogue)
        if wrong:
            raise BaselineError(f"{baseline.name}: entry {number}: {wrong}")


def unknown(entry: KnownFailure, catalogue: Catalogue) -> str:
    """Return why an entry names nothing that is judged; empty if it does."""
    kind = "scenario" if entry.scenario else "threat" if entry.threat else "clause"
    names = load(CLIENTS).parts if entry.scenario else [clause.id for clause in catalogue]
    if entry.rule not in names:
        now = renamed(catalogue).get(entry.rule)
        moved = f"{entry.rule} is now part of {now}; `check --update-baseline` renames it"
        hint = nearest(entry.rule, names)
        return moved if now else f"no {kind} is called {entry.rule!r}{hint}"
    if entry.scenario:
        return ""
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


def renamed(catalogue: Catalogue) -> dict[str, str]:
    """Return the old ids of clauses that were merged, with the new ones."""
    return {old: clause.id for clause in catalogue for old in clause.replaces}
