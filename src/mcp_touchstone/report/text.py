"""Escaping and shortening of text for reports, above all text from a server. Pure."""

import json
import re
from collections.abc import Mapping
from html import escape
from typing import Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.runtime.secrets import secrets

NAMELESS: Final = "it reports no name"


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
