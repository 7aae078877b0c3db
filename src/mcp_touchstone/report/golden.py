"""Golden recordings on the terminal: the replies, fields and schemas that changed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.recordings.json_diff import NOTHING, VOLATILE, Difference, where
from mcp_touchstone.recordings.recorder import Held
from mcp_touchstone.recordings.requests import title
from mcp_touchstone.report.text import cut, plural, safe

WIDTH: Final = 96
SHOWN: Final = 12
"""Differences shown of one answer; the rest are counted."""

Found = Mapping[tuple[str, str], list[Difference]]
"""(revision, stop) -> the differences there."""


def recorded(held: Held) -> Iterator[str]:
    """Yield lines that list the recorded replies."""
    for revision, stops in held.now.items():
        unsteady = [name for name, document in stops.items() if _has_mark(document)]
        told = f", volatile in part: {', '.join(unsteady)}" if unsteady else ""
        yield f"  {revision}  {plural(len(stops), 'answer')}{told}"
    yield from _not_called(held)
    yield (
        f"{plural(len(held.written), 'file')} written, {len(held.removed)} removed in {held.folder}"
    )


def verified(held: Held, *, verbose: bool = False) -> Iterator[str]:
    """Yield lines that list the differences, or one line if there are none."""
    for subject, found, revisions in _grouped(held, held.differing):
        yield f"CHANGED  {safe(subject)}    {_window(revisions, held)}"
        yield from _changes(found, len(found) if verbose else SHOWN)
    for subject, found, revisions in _grouped(held, held.unsteady):
        yield f"unsteady {safe(subject)}    {_window(revisions, held)}"
        yield f"    it differed in one of two tours at {_places(found)}"
    if held.unsteady:
        yield f"    write {json.dumps(VOLATILE)} there, or let `golden verify --update` do it"
    for revision, name in held.unused:
        yield f"UNUSED   {revision}/{name}.json: nothing asks for it any more"
    told = "new     " if held.create else "MISSING "
    for revision, name in held.missing:
        yield f"{told} {revision}/{name}.json: never recorded"
    if verbose:
        yield from _not_called(held)
    yield _summary(held)


def _summary(held: Held) -> str:
    count = sum(len(stops) for stops in held.now.values())
    told = [f"{plural(count, 'answer')} in {plural(len(held.now), 'revision')}"]
    told += [
        f"{len(found)} {word}"
        for word, found in (
            ("changed", held.differing), ("unsteady", held.unsteady), ("unused", held.unused),
            ("new" if held.create else "missing", held.missing),
        )
        if found
    ]  # fmt: skip
    if len(told) == 1:
        told.append("as recorded" if not held.written and not held.removed else "taken over")
    if held.written or held.removed:
        told.append(f"{plural(len(held.written), 'file')} written, {len(held.removed)} removed")
    if held.differing or held.unused:
        told.append("`golden verify --update` takes this over")
    elif held.exit_code:
        told.append("`golden verify --create` records it")
    return f"{held.folder}: {'; '.join(told)}"


def _not_called(held: Held) -> Iterator[str]:
    if held.silent_tools:
        names = ", ".join(held.silent_tools)
        yield f"  not called: {safe(names)} (not annotated read-only, or without success)"
        yield "  `--call NAME` or `--call 'NAME={...}'` says that a tool may be called, and how"


def _grouped(held: Held, found: Found) -> Iterator[tuple[str, list[Difference], list[str]]]:
    """Yield subject, changes, revisions; a change that several revisions share comes once."""
    groups: dict[str, tuple[str, list[Difference], list[str]]] = {}
    for (revision, name), changes in found.items():
        subject = title(name, held.now[revision][name])
        group = groups.setdefault(f"{subject} {changes}", (subject, changes, []))
        group[2].append(revision)
    yield from groups.values()


def _window(revisions: list[str], held: Held) -> str:
    if len(revisions) > 1 and revisions == list(held.now):
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
