"""Completions (server/utilities/completion) for prompt arguments and template variables.

Only paths that the workspace lists are suggested, so never a denied path or one outside the roots.
A value that leads to such a path has no completions, like a value that leads nowhere. The
specification requires a rate limit: a request examines a limited number of files, and the number of
concurrent requests is limited (``Settings.workers``).
"""

from __future__ import annotations

from ..content.uris import LINES_TEMPLATE, TEMPLATE
from ..failure import ToolError
from ..protocol.envelope import object_of, string_of
from ..protocol.errors import invalid_params, quote
from ..tools.text import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeAlias

    from ..protocol.calls import Call
    from ..surface import Surface

    Values: TypeAlias = dict[str, str]

MOST_VALUES = 100
"""Maximum number of values in one answer (schema.ts#CompleteResult)."""

MOST_FILES = 20_000
"""Maximum number of files examined for one answer."""

CONTEXT_SINCE = "2025-06-18"

_TEMPLATES = {TEMPLATE: ("path",), LINES_TEMPLATE: ("path", "first", "last")}


class Suggestions:
    """Values in the order of relevance. The first ones are kept, and all are counted.

    Attributes:
        complete: False if the search was ended early.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self.complete = True
        self._best: list[str] = []
        self._others: list[str] = []
        self._count = 0
        for value in values:
            self.add(value)

    def add(self, value: str, *, best: bool = True) -> None:
        self._count += 1
        values = self._best if best else self._others
        if len(values) < MOST_VALUES:
            values.append(value)

    def result(self) -> dict[str, Any]:
        values = [*self._best, *self._others][:MOST_VALUES]
        completion: dict[str, Any] = {"values": values}
        if self.complete:
            completion["total"] = self._count
        completion["hasMore"] = not self.complete or self._count > len(values)
        return {"completion": completion}


class Completion:
    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._suggest: dict[str, Callable[[Call, str, Values], Suggestions]] = {
            "path": self._paths,
            "first": lambda _call, typed, _chosen: _beginning(typed, ["1"]),
            "last": self._last_line,
        }

    def complete(self, call: Call) -> dict[str, Any]:
        known = self._variables(object_of(call.params, "ref"))
        argument = object_of(call.params, "argument")
        name, typed = string_of(argument, "name"), string_of(argument, "value")
        chosen = _chosen(call)
        if name not in known:
            raise invalid_params(f"nothing to complete has an argument {quote(name)}")
        suggest = self._suggest.get(name)
        if known[name] or suggest is None:
            return _beginning(typed, known[name]).result()
        return suggest(call, typed, chosen).result()

    def _variables(self, ref: dict[str, Any]) -> dict[str, Sequence[str]]:
        """Return what can be completed, with its values if they are fixed."""
        kind = string_of(ref, "type")
        if kind == "ref/prompt":
            name = string_of(ref, "name")
            prompt = self._surface.part("content.prompts").find(name)
            if prompt is None:
                raise invalid_params(f"unknown prompt {quote(name)}")
            return {one.name: one.values for one in prompt.arguments}
        if kind == "ref/resource":
            uri = string_of(ref, "uri")
            if uri not in _TEMPLATES:
                raise invalid_params(f"unknown resource template {quote(uri)}")
            return dict.fromkeys(_TEMPLATES[uri], ())
        raise invalid_params(f"unknown type of reference {quote(kind)}")

    def _paths(self, call: Call, typed: str, _chosen: Values) -> Suggestions:
        """Suggest files whose path begins with the input, then files whose name does."""
        found = Suggestions()
        if typed.startswith("/"):
            return found  # paths are relative, and the directories of the roots are not published
        directory = typed.rpartition("/")[0]
        try:
            files = self._surface.workspace.walk(directory, check=call.check)
            for seen, entry in enumerate(files):
                if seen == MOST_FILES:
                    found.complete = False
                    break
                if entry.path.startswith(typed) or "/".join(entry.at.parts).startswith(typed):
                    found.add(entry.path)
                elif entry.name.startswith(typed):
                    found.add(entry.path, best=False)
        except ToolError:
            return Suggestions()
        return found

    def _last_line(self, call: Call, typed: str, chosen: Values) -> Suggestions:
        try:
            snap = self._surface.workspace.read(chosen.get("path", ""), check=call.check)
            lines = read_text(snap).line_count
        except ToolError:
            return Suggestions()
        return _beginning(typed, [str(lines)])


def build(surface: Surface) -> Completion:
    """Build the part ``completion``."""
    return Completion(surface)


def _beginning(typed: str, values: Iterable[str]) -> Suggestions:
    typed = typed.casefold()
    return Suggestions(value for value in values if value.casefold().startswith(typed))


def _chosen(call: Call) -> Values:
    """Return the arguments chosen before; revisions before 2025-06-18 have none."""
    if call.revision < CONTEXT_SINCE or "context" not in call.params:
        return {}
    context = object_of(call.params, "context")
    chosen = object_of(context, "arguments", {})
    for name in chosen:
        string_of(chosen, name)
    return chosen
