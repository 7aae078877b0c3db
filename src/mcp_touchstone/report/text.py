"""Escaping and shortening of text for reports, above all text from a server. Pure."""

import json
import re
import unicodedata
from collections.abc import Mapping
from html import escape
from typing import Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.runtime.secrets import secrets

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Unicode categories of characters that control the display and are not displayed."""


def safe(text: str) -> str:
    """Escape control characters, escape sequences, bidirectional marks and lone surrogates."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode("ascii")
        if unicodedata.category(char) in _HIDDEN
        else char
        for char in text
    )


def masked(text: str, environment: Mapping[str, str]) -> str:
    """Replace secrets of an environment by ``HIDDEN-NAME``.

    A server may print its environment, and people publish reports and logs.
    """
    for name, value in secrets(environment):
        plain = [value]
        for _ in range(3):  # a text in a result in a report
            plain.append(json.dumps(plain[-1])[1:-1])
        for one in reversed(plain):
            for form in (cell(one), escape(one), escape(one, quote=False), one):
                text = text.replace(form, f"HIDDEN-{name}")
    return text


def cut(text: str, width: int) -> str:
    """Shorten a line to a width, marking the cut."""
    return text if len(text) <= width else text[: max(1, width - 1)] + "…"


def last_lines(text: str, most: int = 12) -> list[str]:
    """Return the last lines of a text that are not empty."""
    return [line for line in text.splitlines() if line.strip()][-most:]


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


def cell(text: str) -> str:
    """Return one line of Markdown that shows the text unchanged, also in a table."""
    flat = safe(" ".join(text.split())).replace("&", "&amp;")
    for char in "\\|<>`*_[]":
        flat = flat.replace(char, f"&#{ord(char)};" if char in "<>`" else f"\\{char}")
    return flat


def prose(text: str) -> str:
    """Return a sentence of ours as Markdown; text between backticks stays code."""
    return re.sub("&#96;([^&\\\\]*)&#96;", r"`\1`", cell(text))
