"""Golden recordings on the terminal: the replies, fields and schemas that changed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.recordings.json_diff import NOTHING, VOLATILE, Difference, where
from mcp_touchstone.recordings.recorder import GoldenResult
from mcp_touchstone.recordings.requests import title
from mcp_touchstone.report.text import cut, plural, safe

WIDTH: Final = 96
SHOWN: Final = 12
"""Differences shown of one answer; the rest are counted."""

Found = Mapping[tuple[str, str], list[Difference]]
"""(revision, stop) -> the differences there."""


def recorded(result: GoldenResult) -> Iterator[str]:
    """Yield lines that list the recorded replies."""
    for revision, stops in result.now.items():
        unsteady = [name for name, document in stops.items() if _has_mark(document)]
        told = f", volatile in part: {', '.join(unsteady)}" if unsteady else ""
        yield f"  {revision}  {plural(len(stops), 'answer')}{told}"
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
    told = "new     " if result.create else "MISSING "
    for revision, name in result.missing:
        yield f"{told} {revision}/{name}.json: never recorded"
    if verbose:
        yield from _not_called(result)
    yield _summary(result)


def _summary(result: GoldenResult) -> str:
    count = sum(len(stops) for stops in result.now.values())
    told = [f"{plural(count, 'answer')} in {plural(len(result.now), 'revision')}"]
    told += [
        f"{len(found)} {word}"
        for word, found in (
            ("changed", result.differing), ("unsteady", result.unsteady), ("unused", result.unused),
            ("new" if result.create else "missing", result.missing),
        )
        if found
    ]  # fmt: skip
    if len(told) == 1:
        told.append("as recorded" if not result.written and not result.removed else "taken over")
    if result.written or result.removed:
        told.append(f"{plural(len(result.written), 'file')} written, {len(result.removed)} removed")
    if result.differing or result.unused:
        told.append("`golden verify --update` takes this over")
    elif result.exit_code:
        told.append("`golden verify --create` records it")
    return f"{result.folder}: {'; '.join(told)}"


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
    for (revision, name), changes in found.items():
        subject = title(name, result.now[revision][name])
        group = groups.setdefault(f"{subject} {changes}", (subject, changes, []))
        group[2].append(revision)
    yield from groups.values()


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
