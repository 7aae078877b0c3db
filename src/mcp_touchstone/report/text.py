"""Escaping and shortening of text for reports, above all text from a server. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from html import escape
from typing import Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.runtime.secrets import SEARCHED, secrets

NAMELESS: Final = "it reports no name"


def masked(text: str, environment: Mapping[str, str]) -> str:
    """Replace secrets of an environment by ``HIDDEN-NAME``.

    A server may print its environment, and people publish reports and logs.
    """
    return _of(frozenset(environment.items())).masked(text)


@lru_cache(maxsize=8)
def _of(environment: frozenset[tuple[str, str]]) -> "Masks":
    found = Masks()
    for name, value in secrets(dict(sorted(environment))):
        found.add(name, value)
    return found


class Masks:
    """Values that are replaced in texts, whatever escapes they have there.

    Args:
        most: greatest number of values; the oldest ones are forgotten.
    """

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._names: dict[str, str] = {}
        self._forms: list[tuple[str, str]] = []

    def __contains__(self, value: str) -> bool:
        return value in self._names

    def add(self, name: str, value: str) -> None:
        """Replace a value by ``HIDDEN-NAME``."""
        if value in self._names:
            return
        self._names[value] = name
        forms = [(form, name) for form in _forms(value)]
        if len(self._names) > self._most:
            oldest = next(iter(self._names))
            del self._names[oldest]
            gone = set(_forms(oldest))
            self._forms = [one for one in self._forms if one[0] not in gone]
        self._forms = sorted([*self._forms, *forms], key=lambda one: -len(one[0]))

    def masked(self, text: str) -> str:
        """Return a text without the values."""
        for form, name in self._forms:
            if form in text:
                text = text.replace(form, f"HIDDEN-{name}")
        if len(text) <= SEARCHED and ESCAPED.search(text):
            for value, name in self._names.items():
                text = _anyhow(value).sub(f"HIDDEN-{name}", text)
        return text


ESCAPED: Final = re.compile(r"\\u00[0-7]|%[2-7]|&#")
"""Escapes of characters that need none."""


@lru_cache(maxsize=2048)
def _anyhow(value: str) -> re.Pattern[str]:
    """Return the pattern of a value with any of its characters escaped for JSON, URLs or HTML."""
    return re.compile("".join(map(_anyhow_one, value)))


def _anyhow_one(char: str) -> str:
    code = ord(char)
    json_or_url = rf"\\{{1,8}}u(?i:{code:04x})|%(?i:{code:02x})"
    escapes = rf"{json_or_url}|&#0{{0,8}}{code};|&#[xX]0{{0,8}}(?i:{code:x});"
    return f"(?:{re.escape(char)}|{escapes})"


def _forms(value: str) -> Iterator[str]:
    plain = [value]
    for _ in range(3):  # a text in a result in a report
        plain.append(json.dumps(plain[-1])[1:-1])
    for one in dict.fromkeys(plain):
        yield from dict.fromkeys((cell(one), escape(one), escape(one, quote=False), one))


def cut(text: str, width: int) -> str:
    """Shorten a line to a width, marking the cut."""
    return text if len(text) <= width else text[: max(1, width - 1)] + "…"


def last_lines(text: str, most: int = 12) -> list[str]:
    """Return the last lines of a text that are not empty.

    Indented ones are left out if there are too many: the frames of a stack, which follow its reason
    in Go, JavaScript, Java and Rust.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > most:
        lines = [line for line in lines if not line[0].isspace()] or lines
    return lines[-most:]


def middle(text: str, most: int) -> str:
    """Replace the middle of a text of more than ``most`` characters by its length."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    return f"{text[:head]} … ({len(text):,} characters) … {text[head - most :]}"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 clause``, ``2 clauses``, ``3 processes``."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}es" if noun.endswith("s") else f"{count} {noun}s"


def window(revisions: tuple[str, ...]) -> str:
    """Return the names of revisions; one word for all of them."""
    return "all revisions" if revisions in {(), rev.ALL} else ", ".join(revisions)


_LINKED: Final = re.compile(
    r"@|(?<=:)(?=//)|(?<=www)(?=\.)|(?<=[#!$%&~])(?=\d)|(?<=GH-)(?=\d)", re.IGNORECASE
)
"""Places where GitHub and GitLab begin to read a name, an address or a number as a link."""


def cell(text: str) -> str:
    """Return one line of Markdown that shows the text unchanged, also in a table.

    Nothing in it is markup, an address, a name of a user or the number of an issue: a space without
    width parts these.
    """
    flat = _LINKED.sub("\\g<0>\u200b", safe(" ".join(text.split()))).replace("&", "&amp;")
    for char in "\\|<>`*_[]~$":
        flat = flat.replace(char, f"&#{ord(char)};" if char in "<>`" else f"\\{char}")
    return flat.replace("\u200b", "&#8203;")


def prose(text: str) -> str:
    """Return a sentence of ours as Markdown; text between backticks stays code."""
    return re.sub("&#96;([^&\\\\]*)&#96;", r"`\1`", cell(text))
