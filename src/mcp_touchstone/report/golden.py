"""Golden recordings on the terminal: the replies, fields and schemas that changed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.golden.recorder import GoldenResult
from mcp_touchstone.golden.requests import Document, title
from mcp_touchstone.report.text import cut, plural
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.wire.json_diff import NOTHING, VOLATILE, Difference, Path, where

WIDTH: Final = 96
SHOWN: Final = 12
"""Differences shown of one answer; the rest are counted."""

Found = Mapping[tuple[str, str], list[Difference]]
"""(revision, stop) -> the differences there."""


def recorded(result: GoldenResult) -> Iterator[str]:
    """Yield lines that list the recorded replies."""
    for revision, stops in result.now.items():
        volatile = [name for name, document in stops.items() if _has_mark(document)]
        marked = f", volatile in part: {', '.join(volatile)}" if volatile else ""
        count = sum(map(_answers, stops.values()))
        yield f"  {revision}  {plural(count, 'answer')}{marked}"
    yield from _not_called(result)
    written = plural(len(result.written), "file")
    yield f"{written} written, {len(result.removed)} removed in {result.folder}"


def verified(result: GoldenResult, *, verbose: bool = False) -> Iterator[str]:
    """Yield lines that list the differences, or one line if there are none."""
    for subject, found, revisions in _grouped(result, result.differing):
        yield f"CHANGED  {safe(subject)}    {_window(revisions, result)}"
        yield from _changes(found, len(found) if verbose else SHOWN)
    for subject, found, revisions in _grouped(result, result.unsteady):
        yield f"unsteady {safe(subject)}    {_window(revisions, result)}"
        yield f"    it differed in one of two tours at {_places(found)}"
    if result.unsteady:
        yield f"    write {json.dumps(VOLATILE)} there, or let `golden verify --update` do it"
    for revision, name in result.unused:
        yield f"UNUSED   {revision}/{name}.json: nothing asks for it any more"
    word = "new     " if result.create else "MISSING "
    for revision, name in result.missing:
        yield f"{word} {revision}/{name}.json: never recorded"
    if verbose:
        yield from _not_called(result)
    yield _summary(result)


def _summary(result: GoldenResult) -> str:
    count = sum(_answers(document) for stops in result.now.values() for document in stops.values())
    summary = [f"{plural(count, 'answer')} in {plural(len(result.now), 'revision')}"]
    summary += [
        f"{len(found)} {word}"
        for word, found in (
            ("changed", result.differing),
            ("unsteady", result.unsteady),
            ("unused", result.unused),
            ("new" if result.create else "missing", result.missing),
        )
        if found
    ]
    if len(summary) == 1:
        summary.append("taken over" if result.written or result.removed else "as recorded")
    if result.written or result.removed:
        written = plural(len(result.written), "file")
        summary.append(f"{written} written, {len(result.removed)} removed")
    if result.differing or result.unused:
        summary.append("`golden verify --update` takes this over")
    elif result.exit_code:
        summary.append("`golden verify --create` records it")
    return f"{result.folder}: {'; '.join(summary)}"


def _answers(document: Document) -> int:
    """Return the number of answers in a document: one, or those of its scenarios."""
    if "ask" in document or "heard" in document:
        return 1
    return sum(len(one) for one in document.values() if isinstance(one, list))


def _not_called(result: GoldenResult) -> Iterator[str]:
    if result.silent_tools:
        names = ", ".join(result.silent_tools)
        yield f"  not called: {safe(names)} (not annotated read-only, or without success)"
        yield "  `--call NAME` or `--call 'NAME={...}'` says that a tool may be called, and how"


def _grouped(
    result: GoldenResult, found: Found
) -> Iterator[tuple[str, list[Difference], list[str]]]:
    """Yield subject, changes, revisions; a change that several revisions share comes once."""
    groups: dict[str, tuple[str, list[Difference], list[str]]] = {}
    for (revision, name), whole in found.items():
        for subject, changes in _subjects(name, result.now[revision][name], whole):
            group = groups.setdefault(f"{subject} {changes}", (subject, changes, []))
            group[2].append(revision)
    yield from groups.values()


def _subjects(
    name: str, document: Document, found: list[Difference]
) -> Iterator[tuple[str, list[Difference]]]:
    """Yield the subjects of a document with their differences: its question, or its scenarios."""
    if "ask" in document or "heard" in document:
        yield title(name, document), found
        return
    scenarios: dict[str, list[Difference]] = {}
    for one in found:
        exchange = _exchange(document, one.path)
        shown = replace(one, path=(*exchange, *one.path[2:])) if exchange else one
        scenarios.setdefault(one.path[0] if one.path else name, []).append(shown)
    for scenario, changes in scenarios.items():
        yield f"{name} {scenario}", changes


def _exchange(document: Document, path: Path) -> tuple[str, ...]:
    """Return the number and the question of an exchange; empty if there is none."""
    if len(path) < 2:  # noqa: PLR2004  (scenario and exchange)
        return ()
    exchanges = document.get(path[0])
    place = int(path[1].strip("[]"))
    if not isinstance(exchanges, list) or place >= len(exchanges):
        return (f"exchange {place + 1}",)
    return (f"exchange {place + 1}, {title('', exchanges[place]) or 'invalid line'}",)


def _window(revisions: list[str], result: GoldenResult) -> str:
    if len(revisions) > 1 and revisions == list(result.now):
        return "in all revisions"
    return ", ".join(sorted(revisions, key=rev.ALL.index))


def _changes(found: Sequence[Difference], most: int) -> Iterator[str]:
    for one in found[:most]:
        yield f"    {safe(_place(one))}"
        if one.old is not NOTHING:
            yield f"      - {_value(one.old)}"
        if one.new is not NOTHING:
            yield f"      + {_value(one.new)}"
    if len(found) > most:
        yield f"    and {len(found) - most} more; -v shows them"


def _places(found: Sequence[Difference]) -> str:
    return safe(", ".join(_place(one) for one in found[:SHOWN]))


def _place(one: Difference) -> str:
    """Return the name of a place: the tool (or other listed item) first, then the field."""
    path = one.path
    if path and path[0].startswith("exchange "):
        return f"{path[0]}: {where(path[1:]) or ('new' if one.old is NOTHING else 'gone')}"
    if path[:2] == ("answer", "result"):
        path = path[2:]
    if len(path) > 1 and path[0] in ("tools", "resources", "resourceTemplates", "prompts"):
        return f"{path[1]}: {where(path[2:]) or ('new' if one.old is NOTHING else 'gone')}"
    return where(path) or "the whole answer"


def _value(value: Any) -> str:
    return cut(safe(json.dumps(value, ensure_ascii=False)), WIDTH)


def _has_mark(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_mark, value.values()))
    if isinstance(value, list):
        return any(map(_has_mark, value))
    return bool(value == VOLATILE)
