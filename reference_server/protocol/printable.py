"""Text from strangers, made fit for a log line or a dialog. Pure."""

from __future__ import annotations


def printable(text: str, most: int) -> str:
    r"""Give a text with nothing in it that a terminal or a dialog would obey.

    Control characters, line breaks, bidirectional marks and lone surrogates become escapes such
    as ``\n`` or ``\u202e``, so that one line stays one line and is read in its order.

    Args:
        text: Anything.
        most: Characters kept; what is longer ends in ``…``.
    """
    cut = text[:most]
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
    return shown if len(shown) <= most and len(cut) == len(text) else shown[:most] + "…"
