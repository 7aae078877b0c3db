"""Clause rows: loading from TOML, validation, revisions. Executes nothing.

A chapter file contains ``title``, ``summary``, optionally ``deferred`` (a reason for all of its
clauses), ``transport`` (the only transport they apply to), ``draft`` (the proposal that they are
of) and ``decision`` (with which that of each clause begins), and a list of ``[[clause]]`` tables.
A row of a deferred chapter that is judged nevertheless has ``judged = true``.
``CONTRIBUTING.md`` describes each key.
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.catalog.needs import choices

SITE: Final = "https://modelcontextprotocol.io/specification"
SCHEMAS: Final = "https://github.com/modelcontextprotocol/modelcontextprotocol/blob/main/schema"

_AUTH: Final = "ext-auth/blob/{}/specification/draft"
EXTENSIONS: Final = {
    name: f"https://github.com/modelcontextprotocol/{path}"
    for name, path in {
        "ext-tasks": "ext-tasks/blob/main/specification/draft/tasks.md",
        "ext-skills": "ext-skills/blob/main/specification/stable/skills.mdx",
        "ext-apps": "ext-apps/blob/main/specification/2026-01-26/apps.mdx",
        "ext-server-card": "experimental-ext-server-card/blob/main/docs/discovery.md",
        "ext-server-card/schema": "experimental-ext-server-card/blob/main/schema.ts",
        **{
            f"ext-auth/{page}": f"{_AUTH.format(branch)}/{page}.mdx"
            for page, branch in {
                "enterprise-managed-authorization": "main",
                "oauth-client-credentials": "main",
                "dpop-extension": "pieterkas-dpop-extension",
                "workload-identity-federation": "pieterkas-wif-extension",
            }.items()
        },
    }.items()
}
"""Pages of sources that are texts of extensions -> their address."""

_ID: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")


class Level(StrEnum):
    """Requirement level of the specification's text (BCP 14), or SCHEMA for a structural rule."""

    MUST = "MUST"
    MUST_NOT = "MUST NOT"
    SCHEMA = "SCHEMA"
    SHOULD = "SHOULD"
    SHOULD_NOT = "SHOULD NOT"
    MAY = "MAY"
    TRANSPARENCY = "transparency"
    """What a gateway need not pass on by the text, and its users count on."""


class Breach(StrEnum):
    """How a broken clause counts."""

    FAIL = "fail"
    WARN = "warn"
    NOTE = "note"


class Observable(StrEnum):
    """Visibility of a kept or broken clause to a client."""

    YES = "yes"
    """On every server that meets the needs of the clause."""

    CONDITIONAL = "conditional"
    """On servers with the behaviour that the clause covers."""

    NO = "no"
    """Never: no message can show it."""


class Transport(StrEnum):
    """A transport of the protocol."""

    STDIO = "stdio"
    HTTP = "http"


BREACH_OF: Final = {
    Level.MUST: Breach.FAIL,
    Level.MUST_NOT: Breach.FAIL,
    Level.SCHEMA: Breach.FAIL,
    Level.SHOULD: Breach.WARN,
    Level.SHOULD_NOT: Breach.WARN,
    Level.MAY: Breach.NOTE,
    Level.TRANSPARENCY: Breach.WARN,
}
"""Level -> how a breach counts, unless the row says otherwise."""


class CatalogueError(UserError, ValueError):
    """A clause file is invalid; the message names the file, the clause and the key."""


@dataclass(frozen=True, kw_only=True)
class Clause:
    """One rule of the specification, in our own words.

    Attributes:
        id: stable identifier, prefixed by its chapter; never reused.
        group: directory of the chapter file (``basic``, ``server``, ``questions``).
        chapter: stem of the chapter file.
        level: requirement level of the text.
        breach: how a breach counts; follows the level unless the row overrides it.
        strict: whether ``--strict`` raises a warning of this clause to a failure.
        source: revision -> pages (``page#anchor`` below that revision, ``schema.ts#Name``, or
            ``ext-tasks#anchor`` for the text of an extension).
        statement: the rule.
        needs: features the server must offer for the rule to apply; empty means every server.
        conditional: whether the rule applies only to some behaviour (``needs`` or ``how``).
        how: the stimulus, and the behaviour that breaks the rule.
        not_flagged: behaviour that is accepted, with the reason.
        decision: the decision on a dispute about a real server; empty if there was none.
        cure: the usual correction of a server that breaks it; empty if none is usual.
        replaces: ids merged into this row; they are never reused.
        deferred: the reason the clause is not judged yet; empty if it is.
        unobservable: the reason no message can show it; empty if one can.
        transports: the transports on which it applies.
        draft: the proposal that it is of, which may change or be dropped; it is judged only where
            it is selected by more than its group. Empty for a rule that is in force.
        same_as: the clause on servers whose rule judges this one on clients, or that on clients or
            servers whose rule judges this one on gateways; empty for none.
        compares: what its rule compares, as ``STEP ...: PATH``: the members at a path of the
            answers to steps of an exchange.
    """

    id: str
    group: str
    chapter: str
    level: Level
    breach: Breach
    strict: bool = True
    source: Mapping[str, tuple[str, ...]]
    statement: str
    needs: tuple[str, ...] = ()
    conditional: bool = False
    how: str = ""
    not_flagged: str = ""
    decision: str = ""
    cure: str = ""
    replaces: tuple[str, ...] = ()
    deferred: str = ""
    unobservable: str = ""
    transports: tuple[Transport, ...] = tuple(Transport)
    draft: str = ""
    same_as: str = ""
    compares: tuple[str, ...] = ()

    @property
    def grade(self) -> str:
        """Its weight in a report: the level of the text."""
        return str(self.level)

    @property
    def place(self) -> str:
        """Its group and its chapter: ``basic/ping``."""
        return f"{self.group}/{self.chapter}"

    @property
    def is_raised(self) -> bool:
        """Whether ``--strict`` raises its warnings; a mild breach of a MUST stays a warning."""
        return self.strict and self.breach is Breach.WARN

    @property
    def file(self) -> str:
        """Its chapter file: ``basic/ping.toml``."""
        return f"{self.place}.toml"

    @cached_property
    def revisions(self) -> tuple[str, ...]:
        """Revisions in which the clause applies, oldest first."""
        return tuple(self.source)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names by which it can be selected."""
        group = () if self.draft else (self.group,)
        return frozenset((self.id, self.chapter, self.place, *group, *self.sections))

    @cached_property
    def sections(self) -> tuple[str, ...]:
        """The sections of the specification that it is from, of all revisions: ``page#anchor``."""
        found = (one for pages in self.source.values() for one in pages if "#" in one)
        return tuple(dict.fromkeys(found))

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of its needs, with all alternatives."""
        return frozenset(word for need in self.needs for word in choices(need))

    @property
    def observable(self) -> Observable:
        """Whether a client can observe that it is kept or broken."""
        if self.unobservable:
            return Observable.NO
        return Observable.CONDITIONAL if self.conditional else Observable.YES

    @property
    def judged(self) -> bool:
        """Whether some scenario or ambient rule judges this clause."""
        return not (self.deferred or self.unobservable)

    def links(self, revision: str) -> tuple[str, ...]:
        """Return the URLs of the text in one revision; empty if the clause does not apply there."""
        return tuple(address(revision, page) for page in self.source.get(revision, ()))


@dataclass(frozen=True, slots=True)
class Chapter:
    """One clause file: its path, its heading, its rows."""

    group: str
    name: str
    title: str
    summary: str
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Every clause of a suite, by id, in the order of the files."""

    chapters: tuple[Chapter, ...]
    _by_id: dict[str, Clause] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the rows; reject an id that is used twice, or used again after it was retired."""
        rows: dict[str, Clause] = {}
        for clause in self:
            known = rows.setdefault(clause.id, clause)
            if known is not clause:
                raise CatalogueError(
                    f"{clause.file}: {clause.id}: the id is used twice, also in {known.file}"
                )
        for clause in self:
            for old in clause.replaces:
                if old in rows:
                    raise CatalogueError(
                        f"{rows[old].file}: {old}: id is retired by replaces of {clause.id} in "
                        f"{clause.file}; pick another"
                    )
        object.__setattr__(self, "_by_id", rows)

    def __iter__(self) -> Iterator[Clause]:
        """Iterate over the clauses in the order of the files."""
        for chapter in self.chapters:
            yield from chapter.clauses

    def __len__(self) -> int:
        """Return the number of clauses."""
        return len(self._by_id)

    def __contains__(self, clause_id: object) -> bool:
        """Return whether an id is in use."""
        return clause_id in self._by_id

    def __getitem__(self, clause_id: str) -> Clause:
        """Return a clause by its id; an unknown id raises CatalogueError with the closest id."""
        try:
            return self._by_id[clause_id]
        except KeyError:
            raise CatalogueError(
                f"no clause is called {clause_id!r}{nearest(clause_id, self._by_id)}"
            ) from None


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the closest known words as a hint: ``; did you mean 'x' or 'y'?``, or nothing.

    Up to two more words are named if they are almost as close as the first. A section of the
    specification is named for a word that looks like one.
    """
    alike = [one for one in known if ("#" in one) is ("#" in word)]
    close = difflib.get_close_matches(word, alike, n=3)
    ratios = [difflib.SequenceMatcher(a=one, b=word).ratio() for one in close]
    shown = [one for one, ratio in zip(close, ratios, strict=True) if ratio > ratios[0] - 0.1]
    return f"; did you mean {' or '.join(map(repr, shown))}?" if shown else ""


def read_table(path: Path, where: str) -> dict[str, Any]:
    """Read a TOML file; an invalid one raises CatalogueError."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CatalogueError(f"{where}: {error}") from error


def load_chapter(path: Path) -> Chapter:
    """Read one chapter file.

    Raises:
        CatalogueError: the file is no TOML, or a row is incomplete or contradicts itself.
    """
    where = f"{path.parent.name}/{path.name}"
    table = read_table(path, where)
    check_keys(table, _CHAPTER_KEYS, ("title", "summary"), where)
    inherited: dict[str, str] = {key: table[key] for key in _INHERITED if key in table}
    rows = tuple(
        _clause(row, group=path.parent.name, chapter=path.stem, inherited=inherited, where=where)
        for row in table.get("clause", [])
    )
    return Chapter(path.parent.name, path.stem, table["title"], table["summary"], rows)


def load_catalogue(directory: Path) -> Catalogue:
    """Read every ``<group>/<chapter>.toml`` below a directory, in path order."""
    return Catalogue(tuple(load_chapter(path) for path in sorted(directory.glob("*/*.toml"))))


_CHAPTER_KEYS: Final = {
    "title": "string",
    "summary": "string",
    "deferred": "string",
    "transport": "string",
    "draft": "string",
    "decision": "string",
    "clause": "array of tables",
}

_INHERITED: Final = ("deferred", "transport", "draft", "decision")
"""Keys of a chapter that its rows inherit."""

_KEYS: Final = {
    "id": "string",
    "level": "string",
    "breach": "string",
    "strict": "boolean",
    "source": "table",
    "statement": "string",
    "needs": "array of strings",
    "conditional": "boolean",
    "how": "string",
    "not_flagged": "string",
    "decision": "string",
    "cure": "string",
    "replaces": "array of strings",
    "deferred": "string",
    "unobservable": "string",
    "judged": "boolean",
    "transport": "string",
    "same_as": "string",
    "compares": "array of strings",
}


def check_keys(
    table: Mapping[str, Any], keys: Mapping[str, str], required: tuple[str, ...], where: str
) -> None:
    """Reject an unknown key, a value of the wrong type, and a missing required key."""
    for key, value in table.items():
        if key not in keys:
            raise CatalogueError(f"{where}: unknown key {key!r}{nearest(key, keys)}")
        if not _is(value, keys[key]):
            raise CatalogueError(f"{where}: {key} is no {keys[key]}")
    for key in required:
        if not table.get(key):
            raise CatalogueError(f"{where}: {key} is missing")


def _is(value: Any, kind: str) -> bool:
    if kind.startswith("array of "):
        member = kind.removeprefix("array of ").removesuffix("s")
        return isinstance(value, list) and all(_is(item, member) for item in value)
    kinds = {"string": str, "boolean": bool, "table": dict, "integer": int, "date": date}
    return isinstance(value, kinds[kind])


def _clause(
    row: Mapping[str, Any], *, group: str, chapter: str, inherited: Mapping[str, str], where: str
) -> Clause:
    deferred = inherited.get("deferred", "")
    name = row.get("id") or "(no id)"
    where = f"{where}: {name}"

    def wrong(what: str) -> CatalogueError:
        return CatalogueError(f"{where}: {what}")

    check_keys(row, _KEYS, ("id", "level", "statement", "source"), where)
    if not _ID.fullmatch(name):
        raise wrong("id is not lower-case words joined by hyphens")
    levels, breaches = ([word.value for word in words] for words in (Level, Breach))
    for key, known in (("level", levels), ("breach", breaches)):
        if key in row and row[key] not in known:
            raise wrong(f"{key} {row[key]!r} is none of {', '.join(known)}")
    transport = row.get("transport", inherited.get("transport"))
    if transport not in {None, *Transport}:
        raise wrong(f"transport {transport!r} is none of {', '.join(Transport)}")
    level = Level(row["level"])
    breach = Breach(row["breach"]) if "breach" in row else BREACH_OF[level]
    if breach is Breach.FAIL is not BREACH_OF[level]:
        raise wrong(f"a breach of a {level} is no failure: only a MUST or the schema fails")
    pages = _pages(row["source"], wrong)
    own_deferred = row.get("deferred", "")
    unobservable = row.get("unobservable", "")
    if own_deferred and unobservable:
        raise wrong("deferred and unobservable exclude each other")
    lifted = "judged" in row
    if lifted:
        _check_lifted(row, deferred, wrong)
    if not unobservable and not row.get("how"):
        raise wrong("how is missing: say what is driven and what breaks the rule")
    return Clause(
        id=name,
        group=group,
        chapter=chapter,
        level=level,
        breach=breach,
        strict=row.get("strict", True),
        source=pages,
        statement=flow(row["statement"]),
        needs=tuple(row.get("needs", ())),
        conditional=row.get("conditional", False),
        how=flow(row.get("how", "")),
        not_flagged=flow(row.get("not_flagged", "")),
        decision=flow(f"{inherited.get('decision', '')}\n{row.get('decision', '')}"),
        cure=flow(row.get("cure", "")),
        replaces=tuple(row.get("replaces", ())),
        deferred="" if unobservable or lifted else flow(own_deferred or deferred),
        unobservable=flow(unobservable),
        transports=tuple(Transport) if transport is None else (Transport(transport),),
        draft=inherited.get("draft", ""),
        same_as=row.get("same_as", ""),
        compares=tuple(row.get("compares", ())),
    )


def _pages(
    source: Mapping[str, Any], wrong: Callable[[str], CatalogueError]
) -> dict[str, tuple[str, ...]]:
    """Return the pages of each revision.

    A key ``first..last`` names all from one to another, and ``first..`` all from one on.
    """
    found: dict[str, tuple[str, ...]] = {}
    for key, cited in source.items():
        first, _, last = key.partition("..")
        ends = (first, last or (rev.ALL[-1] if key.endswith("..") else first))
        for revision in ends:
            if revision not in rev.ALL:
                raise wrong(f"source: unknown revision {revision!r}{nearest(revision, rev.ALL)}")
        if not cited or not (_is(cited, "string") or _is(cited, "array of strings")):
            raise wrong(f"source: {key} is no page and no array of pages")
        meant = [revision for revision in rev.ALL if ends[0] <= revision <= ends[1]]
        if not meant or found.keys() & {*meant}:
            raise wrong(f"source: {key} is no range, or names a revision again")
        pages = (cited,) if isinstance(cited, str) else tuple(cited)
        found |= dict.fromkeys(meant, pages)
    return {revision: found[revision] for revision in rev.ALL if revision in found}


def _check_lifted(
    row: Mapping[str, Any], deferred: str, wrong: Callable[[str], CatalogueError]
) -> None:
    """Reject a ``judged`` key that is redundant, or contradicts another key."""
    if row["judged"] is not True:
        raise wrong("judged is true or absent; a row that is not judged says deferred and why")
    for key in ("deferred", "unobservable"):
        if row.get(key):
            raise wrong(f"judged and {key} exclude each other")
    if not deferred:
        raise wrong("judged lifts the deferral of a chapter, and this chapter has none")


def flow(text: str) -> str:
    """Join the lines of a text into one."""
    return " ".join(text.split())


def address(revision: str, page: str) -> str:
    """Return the URL of a page or section of the specification, a schema, or an extension."""
    name, _, anchor = page.partition("#")
    if name in EXTENSIONS:
        return EXTENSIONS[name] + (f"#{anchor}" if anchor else "")
    if name == "schema.ts":
        return f"{SCHEMAS}/{revision}/schema.ts" + (f"#:~:text={anchor}" if anchor else "")
    return f"{SITE}/{revision}/{name.removesuffix('/index')}" + (f"#{anchor}" if anchor else "")
