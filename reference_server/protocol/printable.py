"""Makes a client's text safe for a log line or a dialog. Pure."""

from __future__ import annotations


def printable(text: str, most: int) -> str:
    r"""Return a text without characters that control a terminal or a dialog.

    Control characters, line breaks, bidirectional marks and lone surrogates become escapes such
    as ``\n`` or ``\u202e``. The text stays on one line and in its order.

    Args:
        most: Maximum number of characters; a longer text is cut and ends in ``…``.
    """
    cut = text[:most]
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
    return shown if len(shown) <= most and len(cut) == len(text) else shown[:most] + "…"
