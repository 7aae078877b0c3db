"""Generate the reference pages of the site from the suite files and the mutants.

``scripts/mkdocs_hook.py`` calls `pages` when the site is built. None of these pages is committed;
``mcp-touchstone explain`` shows the same text offline.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from mcp_touchstone.advisories.table import advisories, seen_in
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.attack_level import MEANING, Tier
from mcp_touchstone.catalog.clause import BREACH_OF, Chapter, Clause, Observable, address
from mcp_touchstone.catalog.loader import CLIENTS, GATEWAYS, SECURITY, home, load
from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.profiles.load import names, profile
from mcp_touchstone.profiles.measure import MEASURES
from mcp_touchstone.profiles.rule import EFFECTS
from mcp_touchstone.results.sdk_faults import Release, releases
from mcp_touchstone.security import payload
from scripts import advisory_runs, sentences
from scripts import clause_coverage as coverage

STATES: Final = {
    "\U0001f7e2": "judged",
    "\U0001f7e1": "judged in part: only some programs show it, a breach counts for less, or "
    "only one of two sides is judged",
    "\u26aa": "not observable: no message shows it",
    "\u2796": "not ours: it permits something, or other programs must keep it",
    "\U0001f534": "open: a message shows it, and no clause judges it",
}
"""Colour of a sentence on the pages of sections -> its meaning."""

JUDGED, PART, UNSEEN, APART, OPEN = STATES
FATES: Final = {"hidden": UNSEEN, "apart": APART, "open": OPEN}

OBSERVABLE: Final = {
    Observable.YES: "visible on every server that offers the feature",
    Observable.CONDITIONAL: "visible on servers that do what the clause is about",
    Observable.NO: "not visible to a client over stdio",
}


def pages() -> dict[str, str]:
    """Generate all reference pages.

    Returns:
        Path below the root of the site (``clauses/basic/ping.md``) -> Markdown.
    """
    return {
        name: "\n".join(lines) + "\n"
        for name, lines in (
            *_clause_pages().items(),
            *_threat_pages().items(),
            *_section_pages().items(),
            ("sdk-faults.md", _sdk_faults()),
            ("profile-rules.md", _profiles()),
            ("advisories.md", _advisories()),
        )
    }


def _path(suite: str, chapter: Chapter) -> str:
    return f"{suite}/{chapter.group}/{chapter.name}.md"


# --- SDKs


def _sdk_faults() -> Iterator[str]:
    """Write the faults of each SDK: a row for a clause, a column for a release."""
    yield "# Faults of SDKs\n"
    yield (
        "A minimal server on each release was judged with the default suite, on stdio and, but for "
        "`@modelcontextprotocol/server`, over HTTP. **F** is a failure, *w* a warning. "
        "[Faults of your SDK](guides/sdk.md) says what that means for your server.\n"
    )
    lines: dict[str, list[Release]] = {}
    for release in releases(http=True):
        lines.setdefault(release.sdk.name, []).append(release)
    for name, found in lines.items():
        yield f"## {name}\n"
        versions = [one.sdk.version for one in found]
        yield f"| clause | revisions | corrected in | {' | '.join(versions)} |"
        yield f"|---|---|---|{'---|' * len(found)}"
        clauses = sorted({fault.clause for one in found for fault in one.faults})
        for clause in clauses:
            faults = [[fault for fault in one.faults if fault.clause == clause] for one in found]
            where = sorted({fault.revision for each in faults for fault in each})
            marks = [
                "" if not each else "**F**" if any(f.outcome == "fail" for f in each) else "*w*"
                for each in faults
            ]
            last = max(n for n, mark in enumerate(marks) if mark)
            fixed = versions[last + 1] if last + 1 < len(versions) else ""
            yield f"| `{clause}` | {', '.join(where)} | {fixed} | {' | '.join(marks)} |"
        yield ""


# --- advisories


def _advisories() -> Iterator[str]:
    """Write the table of advisories: a row for each."""
    yield "# Known advisories\n"
    yield (
        "Published advisories on MCP software, and the clauses and threats that show their faults. "
        "[Advisories](guides/advisories.md) says how a run uses them.\n"
    )
    yield "| advisory | fault | affected | correction off by default | shown by |"
    yield "|---|---|---|---|---|"
    for one in sorted(advisories(), key=lambda known: known.published, reverse=True):
        ranges = [
            f"{each.package} {each.since and f'from {each.since} '}"
            f"{each.fixed and f'before {each.fixed}'}".strip()
            for each in one.affected
        ]
        cells = (
            f"[{one.id}]({one.source}), {one.published} {' '.join(one.aliases)}".strip(),
            f"{one.title} ({one.side})",
            "; ".join(ranges) or one.product,
            one.option and f"`{one.option}`",
            ", ".join(f"`{rule}`" for rule in one.shown_by) or f"not tested: {one.untested}",
        )
        yield f"| {' | '.join(cells)} |"
    yield from advisory_runs.page()


# --- profiles


def _profiles() -> Iterator[str]:
    """Write the rules of clients: a row for what is measured, a column for a client."""
    known = [profile(name) for name in names()]
    yield "# Rules of clients\n"
    yield (
        "What clients and directories do with a server, as far as a source says so. "
        "[Profiles of clients](guides/profiles.md) says how to use them. An empty cell means that "
        "no source was found, not that the client accepts everything.\n"
    )
    yield f"| measured | {' | '.join(one.id for one in known)} |"
    yield f"|---|{'---|' * len(known)}"
    for kind, measure in MEASURES.items():
        cells = [
            ", ".join(
                dict.fromkeys(
                    f"{rule.limit or ''} {rule.effect}".strip()
                    for rule in one.rules
                    if rule.measures == kind
                )
            )
            for one in known
        ]
        yield f"| {measure.what} | {' | '.join(cells)} |"
    yield ""
    yield from (f"- **{effect}**: {meaning}" for effect, meaning in EFFECTS.items())
    for one in known:
        yield f"\n## {one.id}\n"
        yield f"{one.name}. {one.summary}\n"
        for rule in one.rules:
            accepted = f" Accepted: `{rule.accepted}`." if rule.accepted else ""
            yield f"- `{rule.id}`, {rule.effect}. {rule.says}{accepted} *What helps:* {rule.cure}"
            yield f"  Source, read on {rule.read} ({rule.version}): <{rule.source}>"
        for box in one.boxes:
            yield f"- By hand: {box.says} Source, read on {box.read}: <{box.source}>"


# --- clauses


def _clause_pages() -> dict[str, Iterator[str]]:
    measured = coverage.measure(load(), coverage.mutants())
    clients = coverage.measure(load(CLIENTS), {})
    gateways = coverage.measure(load(GATEWAYS), {})
    chapters = {
        _path("clauses", chapter): _clause_chapter(chapter, of)
        for of in (measured, clients, gateways)
        for chapter in of.catalogue.chapters
    }
    return {"clauses.md": _clause_index(measured, clients, gateways), **chapters}


def _clause_index(
    measured: coverage.Coverage, clients: coverage.Coverage, gateways: coverage.Coverage
) -> Iterator[str]:
    yield "# The clauses\n"
    yield (
        f"The specification is divided into {measured.share().clauses} clauses. "
        f"`mcp-touchstone check` judges {measured.share().judged} of them. "
        "`mcp-touchstone explain CLAUSE` shows one clause in the terminal.\n"
    )
    shares = measured.shares()
    yield "| observable | judged | meaning |\n|---|---|---|"
    for kind, meaning in OBSERVABLE.items():
        yield f"| {kind} | {shares[kind]} | {meaning} |"
    yield f"| all | {shares[None]} | |\n"
    survivors = ", ".join(f"`{name}`" for name in measured.survivors) or "none"
    yield (
        f"The tests have {measured.mutants} mutants: servers that each break certain clauses on "
        f"purpose. Judged clauses that no mutant breaks: {survivors}.\n"
    )
    listed = ", ".join(f"[{revision}](sections/{revision}.md)" for revision in rev.ALL)
    yield f"By section of the specification: {listed}.\n"
    yield "## Chapters\n"
    yield "Each cell counts the judged clauses; *not observable* counts clauses.\n"
    yield "| chapter | | observable | conditional | not observable | all |"
    yield "|---|---|---|---|---|---|"
    for chapter in measured.catalogue.chapters:
        cells = " | ".join(measured.shares(chapter.clauses).values())
        link = f"[{chapter.group}/{chapter.name}]({_path('clauses', chapter)})"
        yield f"| {link} | {chapter.title} | {cells} |"
    yield "\n## Rules on clients\n"
    yield (
        "`mcp-touchstone judge` and `client` judge them. A mutant breaks each one and no other, "
        "and a client that keeps all of them is silent.\n"
    )
    for chapter in clients.catalogue.chapters:
        link = f"[{chapter.group}/{chapter.name}]({_path('clauses', chapter)})"
        yield f"- {link}: {chapter.title}, {len(chapter.clauses)} clauses"
    yield "\n## Rules on gateways\n"
    yield (
        "`mcp-touchstone gateway` judges them. A faulty gateway breaks each one and no other, and "
        "one that passes everything on is silent.\n"
    )
    for chapter in gateways.catalogue.chapters:
        link = f"[{chapter.group}/{chapter.name}]({_path('clauses', chapter)})"
        yield f"- {link}: {chapter.title}, {len(chapter.clauses)} clauses"


def _clause_chapter(chapter: Chapter, measured: coverage.Coverage) -> Iterator[str]:
    yield f"# {chapter.group}/{chapter.name}: {chapter.title}\n"
    yield f"{chapter.summary}\n"
    yield f"| clause | level | {' | '.join(rev.ALL)} |"
    yield "|---|---|" + ":-:|" * len(rev.ALL)
    for clause in chapter.clauses:
        marks = " | ".join(map(measured.rows[clause.id].mark, rev.ALL))
        yield f"| [{clause.id}](#{clause.id}) | {clause.level} | {marks} |"
    yield (
        f"\n{coverage.BROKEN} judged, and a mutant breaks it in this revision; {coverage.JUDGED} "
        f"judged; {coverage.PUT_OFF} not judged; empty: the clause does not exist in this revision."
    )
    for clause in chapter.clauses:
        yield from _clause(measured.rows[clause.id])


def _clause(row: coverage.Row) -> Iterator[str]:
    clause = row.clause
    window = "all revisions" if clause.revisions == rev.ALL else ", ".join(clause.revisions)
    yield f"\n## {clause.id}\n"
    yield f"**{clause.level}** in {window}. {clause.statement}\n"
    if clause.how:
        yield f"- *How it is judged:* {clause.how}"
    if clause.not_flagged:
        yield f"- *Not flagged:* {clause.not_flagged}"
    if clause.conditional and clause.judged:
        yield "- *Conditional:* checked only if the server exhibits the behaviour."
    if clause.decision:
        yield f"- *Decision:* {clause.decision}"
    if clause.cure:
        yield f"- *Usual cure:* {clause.cure}"
    if clause.deferred:
        yield f"- *Not judged yet:* {clause.deferred}"
    if clause.unobservable:
        yield f"- *Not observable:* {clause.unobservable}"
    if row.cases:
        yield f"- *Judged by:* {', '.join(f'`{case}`' for case in row.cases)}"
    if row.mutants:
        yield f"- *Broken by the mutants:* {', '.join(f'`{one.name}`' for one in row.mutants)}"
    newest = clause.revisions[-1]
    yield f"- *Specification:* {', '.join(f'<{link}>' for link in clause.links(newest))}"


# --- sections of the specification


def _section_pages() -> dict[str, Iterator[str]]:
    """Return a page for each revision: its normative sentences, and the clauses behind each."""
    catalogue = [*load().catalogue, *load(CLIENTS).catalogue]
    clauses = {clause.id: clause for clause in catalogue}
    return {f"sections/{revision}.md": _sections(clauses, revision) for revision in rev.ALL}


def _sections(clauses: Mapping[str, Clause], revision: str) -> Iterator[str]:
    found: dict[str, tuple[list[sentences.Row], list[Clause]]] = {}
    for row in sentences.rows():
        if revision in row.places:
            found.setdefault(row.section, ([], []))[0].append(row)
    for clause in clauses.values():
        for section in clause.source.get(revision, ()):
            found.setdefault(section, ([], []))[1].append(clause)
    yield f"# Sections of {revision}\n"
    yield (
        "Each line is a normative sentence of the specification: its number in the section, its "
        "key word, and whom it binds. An item of a list counts as a sentence if the words before "
        "the list have a key word. *More* are clauses from words without one. `mcp-touchstone "
        "check --section basic/lifecycle` judges what a page or section says.\n"
    )
    rows = [row for listed, _ in found.values() for row in listed]
    sides = {side: [*_counts(rows, clauses, revision, side)] for side in ("server", "client")}
    yield "| | | server | client |\n|---|---|---|---|"
    for n, (mark, meaning) in enumerate(STATES.items()):
        yield f"| {mark} | {meaning} | {sides['server'][n]} | {sides['client'][n]} |"
    for section, (listed, cited) in sorted(found.items(), key=lambda one: one[0].partition("#")[0]):
        yield f"\n## [{section}]({address(revision, section)})\n"
        yield "| | | binds | | clauses |\n|---|---|---|---|---|"
        for row in sorted(listed, key=lambda row: row.places[revision]):
            links = _links(
                clauses[one]
                for one in row.fate
                if one in clauses and revision in clauses[one].source
            )
            mark = _mark(row, clauses, revision)
            cells = str(row.places[revision]), row.keyword, row.binds, mark, links
            yield f"| {' | '.join(cells)} |"
        named = {one for row in listed for one in row.fate}
        if more := _links(clause for clause in cited if clause.id not in named):
            yield f"| *more* | | | | {more} |"


def _counts(
    rows: Iterable[sentences.Row], clauses: Mapping[str, Clause], revision: str, side: str
) -> Iterator[int]:
    bound = [_half(row, clauses, side) for row in rows if row.binds in {side, "both"}]
    marks = [_mark(row, clauses, revision) for row in bound]
    yield from (marks.count(mark) for mark in STATES)


def _half(row: sentences.Row, clauses: Mapping[str, Clause], side: str) -> sentences.Row:
    """Return what a sentence for both sides asks of one of them."""
    if row.binds != "both" or row.fate[0] in FATES:
        return row
    fate = tuple(one for one in row.fate if (clauses[one].group == CLIENTS) == (side == "client"))
    if not fate:
        fate = ("open",) if any(clauses[one].judged for one in row.fate) else row.fate
    return replace(row, binds=side, fate=fate)


def _links(clauses: Iterable[Clause]) -> str:
    return ", ".join(
        f"[{one.id}](../clauses/{one.group}/{one.chapter}.md#{one.id})" for one in clauses
    )


def _mark(row: sentences.Row, clauses: Mapping[str, Clause], revision: str) -> str:
    if row.fate[0] in FATES:
        return FATES[row.fate[0]]
    cited = [clauses[one] for one in row.fate if revision in clauses[one].source]
    if not any(one.judged for one in cited):
        return UNSEEN if cited else OPEN
    sides = {one.group == CLIENTS for one in cited}
    whole = (row.binds != "both" or sides == {True, False}) and all(
        one.judged and not one.conditional and one.breach is BREACH_OF[one.level] for one in cited
    )
    return JUDGED if whole else PART


# --- threats


def _threat_pages() -> dict[str, Iterator[str]]:
    chapters = load(SECURITY).catalogue.chapters
    return {
        "threats.md": _threat_index(chapters),
        **{_path("threats", chapter): _threat_chapter(chapter) for chapter in chapters},
    }


def _threat_index(chapters: tuple[Chapter, ...]) -> Iterator[str]:
    threats = [row for chapter in chapters for row in chapter.clauses if isinstance(row, Threat)]
    yield "# The threats\n"
    yield (
        f"`mcp-touchstone check --suite security` judges {len(threats)} threats. A finding "
        "rests on an effect: bytes from outside the root in an answer, a changed file outside "
        "the root, a process that ended. The wording of a refusal is not evaluated. "
        "`mcp-touchstone explain THREAT` shows one threat in the terminal.\n"
    )
    yield "## Levels\n"
    yield "The level `core` always runs. `--attacks LEVEL` adds another level.\n"
    yield "`--attack-commands` adds the level `commands`.\n"
    yield "| level | threats | payloads | meaning |\n|---|---|---|---|"
    rows = _payloads()
    fired = [row for row in rows if not row.instead]
    for tier, meaning in MEANING.items():
        counts = [sum(row.tier is tier for row in some) for some in (threats, fired)]
        yield f"| `{tier}` | {counts[0]} | {counts[1]} | {meaning} |"
    yield "\n## Families\n"
    yield "| family | | threats |\n|---|---|---|"
    for chapter in chapters:
        link = f"[{chapter.group}/{chapter.name}]({_path('threats', chapter)})"
        yield f"| {link} | {chapter.title} | {len(chapter.clauses)} |"
    yield from _unused(rows, _pages_by_id("threats", chapters))


def _pages_by_id(suite: str, chapters: tuple[Chapter, ...]) -> dict[str, str]:
    return {row.id: _path(suite, chapter) for chapter in chapters for row in chapter.clauses}


def _payloads() -> list[payload.Payload]:
    library = payload.load(home() / "security_suite" / "payloads")
    return [row for group in library.values() for row in group]


def _unused(rows: list[payload.Payload], places: Mapping[str, str]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.instead:
            by = ", ".join(f"[{threat}]({places[threat]}#{threat})" for threat in row.instead)
            reasons.setdefault(f"covered by {by}", []).append(row.id)
    if not reasons:
        return
    yield "\n## Payloads that are not used\n"
    yield f"{sum(map(len, reasons.values()))} payloads in the suite files are sent by no attack.\n"
    yield "| payloads | reason |\n|---|---|"
    for reason, ids in sorted(reasons.items(), key=lambda pair: pair[1]):
        groups: dict[str, list[str]] = {}
        for one in ids:
            group, _, number = one.rpartition("-")
            groups.setdefault(group, []).append(number)
        names = "; ".join(f"`{group}` {' '.join(numbers)}" for group, numbers in groups.items())
        yield f"| {names} | {reason} |"


def _threat_chapter(chapter: Chapter) -> Iterator[str]:
    yield f"# {chapter.group}/{chapter.name}: {chapter.title}\n"
    yield f"{chapter.summary}\n"
    for threat in chapter.clauses:
        if isinstance(threat, Threat):
            yield from _threat(threat)


def _threat(threat: Threat) -> Iterator[str]:
    yield f"\n## {threat.id}\n"
    level = "" if threat.tier is Tier.CORE else f", level `{threat.tier}`"
    yield f"**{threat.severity}**, promise `{threat.promise}`{level}. {threat.statement}\n"
    yield f"- *Effect:* {threat.effect}"
    yield f"- *Usual cause:* {threat.cause}"
    yield f"- *How it is judged:* {threat.how}"
    if threat.not_flagged:
        yield f"- *Not flagged:* {threat.not_flagged}"
    if threat.decision:
        yield f"- *Decision:* {threat.decision}"
    weaknesses = [
        f"[CWE-{n}]({link})" for n, link in zip(threat.cwe, threat.links(""), strict=True)
    ]
    yield f"- *Catalogues:* {', '.join([*weaknesses, *(f'OWASP {name}' for name in threat.owasp)])}"
    if found := seen_in(threat.id):
        yield f"- *Seen in:* {', '.join(found)}"
