"""Text of strangers made printable: no word of a server or of a list controls a terminal. Pure."""

import unicodedata
from typing import Final

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Unicode categories of characters that control the display and are not displayed."""


def safe(text: str) -> str:
    """Escape control characters, escape sequences, bidirectional marks and lone surrogates."""
    if text.isprintable():  # none of them is
        return text
    return "".join(
        char.encode("unicode_escape").decode("ascii")
        if unicodedata.category(char) in _HIDDEN
        else char
        for char in text
    )


def printable(text: str) -> str:
    """Escape each line of a text; line feeds stay."""
    return "\n".join(map(safe, text.split("\n")))
