"""Compile a schema of ours: resolve each ``$ref`` and the clauses that count breaches. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

COUNTED_BY: Final = "counted-by"
NAME: Final = "defined-as"
"""Annotation of a compiled schema: the definition it came from."""

JUDGING: Final = frozenset(
    {"type", "required", "const", "enum", "anyOf", "minimum", "maximum", "maxItems"}
    | {"format", "multipleOf", "not"}
)
"""Keywords that are broken by a value itself, and not by something in it."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """The clauses that count breaches at one place of a schema: the words of ``counted-by``.

    - a keyword of the same schema: the clause counts a breach of it;
    - ``*``: the clause counts breaches here or below, unless a closer place names a clause;
    - ``**``: the clause counts all breaches here or below, without exception;
    - the id of another clause: the clause counts breaches here or below in its place.

    An empty name means no clause: the rule on the whole schema counts the breach.
    """

    rest: str = ""
    all: str = ""
    moved: tuple[Mapping[str, str], ...] = ()

    def within(self, words: Mapping[str, str]) -> "_Scope":
        moved = {word: clause for word, clause in words.items() if "-" in word}
        return _Scope(
            rest=words.get("*", self.rest),
            all=self.all or words.get("**", ""),
            moved=(moved, *self.moved) if moved else self.moved,
        )

    def clause(self, keyword: str, words: Mapping[str, str]) -> str:
        if self.all:
            return self.all
        clause = words.get(keyword, self.rest)
        for table in self.moved:
            clause = table.get(clause, clause)
        return clause


def expand(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    """Replace each ``$ref`` by its target, and add to each keyword the clause that counts it.

    A lookup would cost more than the check itself. No validated type of the protocol contains
    itself, so this ends.
    """
    found: dict[str, Any] = _expand(schema, defs, _Scope())
    return found


def _expand(schema: Any, defs: Mapping[str, Any], scope: _Scope) -> Any:
    if isinstance(schema, list):
        return [_expand(one, defs, scope) for one in schema]
    if not isinstance(schema, dict):
        return schema
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    words = schema.get(COUNTED_BY, {})
    if name:
        words = {**defs[name].get(COUNTED_BY, {}), **words}
        schema = {**defs[name], **schema}
    scope = scope.within(words)
    kept: dict[str, Any] = {NAME: name} if name else {}
    for word, below in schema.items():
        if word == "properties":
            kept[word] = {member: _expand(one, defs, scope) for member, one in below.items()}
        elif word not in {"$ref", COUNTED_BY}:
            kept[word] = _expand(below, defs, scope)
    counted = {w: clause for w in kept if w in JUDGING and (clause := scope.clause(w, words))}
    if counted:
        kept[COUNTED_BY] = counted
    return kept
