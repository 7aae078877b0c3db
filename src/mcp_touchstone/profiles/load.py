"""The profiles: they are read from ``<client>.toml`` beside this file, and checked."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog.clause import CatalogueError, check_keys, nearest
from mcp_touchstone.profiles.measure import MEASURES
from mcp_touchstone.profiles.rule import Box, Effect, Profile, Rule

HERE: Final = Path(__file__).parent

ALL: Final = "all"
"""The word for every profile."""

DIRECTORIES: Final = "directories"
"""The word for every profile of a directory."""

_TABLES: Final = dict.fromkeys(("rule", "box"), "array of tables")
_PROFILE_KEYS: Final = {"name": "string", "summary": "string", **_TABLES}
_BOX_KEYS: Final = {"says": "string", "source": "string", "read": "date"}
_TEXTS: Final = ("id", "measures", "effect", "says", "cure", "source", "version")
_RULE_KEYS: Final = {
    **dict.fromkeys((*_TEXTS, "pattern", "prefix"), "string"),
    "limit": "integer",
    "server": "integer",
    "words": "array of strings",
    "read": "date",
}


def names() -> tuple[str, ...]:
    """Return the names of all profiles, sorted."""
    return tuple(sorted(path.stem for path in HERE.glob("*.toml")))


def chosen(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the profiles that words such as ``vscode,cursor`` and ``directories`` name, each once.

    Raises:
        ValueError: a name is unknown; the message has the nearest one.
    """
    found: dict[str, None] = {}
    for name in (name.strip() for word in words for name in word.split(",")):
        known = (*names(), DIRECTORIES, ALL)
        if name not in known:
            hint = nearest(name, known) or f"; choose from {', '.join(known)}"
            raise ValueError(f"no client is called {name!r}{hint}")
        if name == DIRECTORIES:
            found |= dict.fromkeys(one for one in names() if profile(one).boxes)
        else:
            found |= dict.fromkeys(names() if name == ALL else [name])
    return tuple(found)


@cache
def profile(client: str) -> Profile:
    """Read a profile.

    Raises:
        CatalogueError: a rule is incomplete, or has an invalid value.
    """
    path = HERE / f"{client}.toml"
    return parse(client, tomllib.loads(path.read_text("utf-8")))


def parse(client: str, table: Mapping[str, Any]) -> Profile:
    """Build a profile from its table; the message of an error names client, rule and key.

    Raises:
        CatalogueError: a rule is incomplete, or has an invalid value.
    """
    where = f"profiles/{client}.toml"
    check_keys(table, _PROFILE_KEYS, ("name", "summary"), where)
    rules = tuple(_rules(client, table.get("rule", []), where))
    boxes = tuple(_boxes(table.get("box", []), where))
    return Profile(client, table["name"], table["summary"], rules, boxes)


def _boxes(rows: list[dict[str, Any]], where: str) -> Iterator[Box]:
    for row in rows:
        check_keys(row, _BOX_KEYS, tuple(_BOX_KEYS), f"{where}: a box")
        if not row["source"].startswith("https://"):
            raise CatalogueError(f"{where}: {row['says']!r}: source is no address")
        yield Box(**row)


def _rules(client: str, rows: list[dict[str, Any]], where: str) -> Iterator[Rule]:
    seen: set[str] = set()
    for row in rows:
        place = f"{where}: {row.get('id')}"
        check_keys(row, _RULE_KEYS, (*_TEXTS, "read"), place)
        for key, known in (("measures", MEASURES), ("effect", tuple(map(str, Effect)))):
            if row[key] not in known:
                raise CatalogueError(f"{place}: {key} {row[key]!r}{nearest(row[key], known)}")
        uses = {"limit", "pattern", "words"} & {*row}
        if uses != MEASURES[row["measures"]].uses:
            wanted = ", ".join(sorted(MEASURES[row["measures"]].uses)) or "none of them"
            raise CatalogueError(f"{place}: of limit, pattern and words, it needs {wanted}")
        if not row["source"].startswith("https://") or row["id"] in seen:
            raise CatalogueError(f"{place}: source is no address, or the id is used twice")
        try:
            re.compile(row.get("pattern", ""))
        except re.error as error:
            raise CatalogueError(f"{place}: pattern: {error}") from error
        seen.add(row["id"])
        values = {**row, "effect": Effect(row["effect"]), "words": tuple(row.get("words", ()))}
        yield Rule(client=client, **values)


def rule(name: str) -> Rule:
    """Return a rule by its name, such as ``vscode/array-items``.

    Raises:
        CatalogueError: there is no such profile or rule; the message has the nearest one.
    """
    client, _, rule_id = name.partition("/")
    if client not in names():
        raise CatalogueError(f"no client is called {client!r}{nearest(client, names())}")
    rules = {one.id: one for one in profile(client).rules}
    if rule_id not in rules:
        raise CatalogueError(
            f"no rule of {client} is called {rule_id!r}{nearest(rule_id, rules)}; it has "
            f"{', '.join(rules)}"
        )
    return rules[rule_id]
