"""Promises of a server and their terms: words for its command, a limit, tools. Pure.

A command line has ``NAME``, or ``NAME={"args": [...], "limit": N}``; a configuration has a table
with the same keys.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.catalog.threat import DECLARED, LIMITS, Promise
from mcp_touchstone.target import deny_list


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseTerms:
    """The terms of one promise.

    Attributes:
        args: words that the promise adds to the command.
        env: variables that it sets.
        limit: promised maximum: bytes of a file, or characters of an answer.
        tools: names of the tools that promise it; empty for all.
        deny: entries of a deny list; empty for the usual names.
    """

    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    tools: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def binds(self, tool: str) -> bool:
        """Return whether a tool promises it; resources, which have no name, only with all tools."""
        return not self.tools or tool in self.tools


def shown(name: str, terms: PromiseTerms) -> str:
    """Write a promise as a word of a command line."""
    given = {key: value for key, value in asdict(terms).items() if value}
    return f"{name}={json.dumps(given)}" if given else name


def read(text: str) -> tuple[str, PromiseTerms]:
    """Parse a promise with its terms.

    Raises:
        ValueError: the promise is unknown, or its terms are invalid.
    """
    name, equals, rest = text.partition("=")
    if name not in DECLARED:
        raise ValueError(
            f"nothing is promised by {name!r}{nearest(name, DECLARED)}; "
            f"known are {', '.join(DECLARED)}"
        )
    try:
        given = json.loads(rest) if equals else {}
        pairs = [*given.items()]
    except (ValueError, AttributeError) as error:
        how = f"""{name}='{{"args": ["--word"]}}'"""
        raise ValueError(f"{name}: write {how}, or {name} alone") from error
    for key, value in pairs:
        _check(name, key, value)
    found: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in pairs}
    terms = PromiseTerms(**found)
    if name in LIMITS and terms.limit is None:
        raise ValueError(f"""{name}: say which: {name}='{{"limit": {LIMITS[Promise(name)]}}}'""")
    return name, terms


def _check(name: str, key: str, value: Any) -> None:
    kinds: Mapping[str, tuple[str, object]] = {
        "args": ("an array of strings", _is_texts(value)),
        "env": ("a table of strings", isinstance(value, dict) and _is_texts([*value.values()])),
        "limit": ("a whole number above 0", type(value) is int and value > 0),
        "tools": ("an array of names", _is_texts(value)),
        "deny": ("an array of names and globs, or leave it out", _is_texts(value) and value),
    }
    if key not in kinds:
        raise ValueError(f"{name}: unknown key {key!r}; the keys are {', '.join(kinds)}")
    kind, fits = kinds[key]
    if not fits:
        raise ValueError(f"{name}: {key} is {json.dumps(value)}; write {kind}")
    if key == "deny":
        _check_denied(name, value)


def _check_denied(name: str, entries: list[str]) -> None:
    if name != Promise.DENY_LIST:
        raise ValueError(f"{name}: deny belongs to {Promise.DENY_LIST}; move it there")
    if len(entries) > deny_list.MOST:
        raise ValueError(f"{name}: deny has {len(entries)} entries; name {deny_list.MOST} at most")
    for entry in entries:
        try:
            deny_list.entry(entry)
        except ValueError as error:
            raise ValueError(f"{name}: deny: {error}") from error


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
