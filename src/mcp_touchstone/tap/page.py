"""Recorded conversations as one HTML page: no script, and nothing is loaded."""

from collections.abc import Iterable, Iterator
from html import escape
from typing import Final

from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.tap.recording import Recording
from mcp_touchstone.tap.replay import replay
from mcp_touchstone.tap.show import Shown, View, last, shown

STYLE: Final = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em; color: #222; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; }
td { padding: 2px 8px; vertical-align: top; overflow-wrap: anywhere; }
td.at { width: 9em; color: #777; text-align: right; font-family: monospace; }
td.beside { width: 14em; color: #777; }
tr.broken { background: #fdecea; }
pre { margin: 2px 0; white-space: pre-wrap; color: #777; }
.rule { color: #b3261e; }
"""


def html(recordings: Iterable[Recording], view: View) -> str:
    """Return the page: a table for each conversation, a row for each line of it."""
    body = "".join(part for one in recordings for part in _table(one, view))
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>Recorded conversations</title><style>{STYLE}</style></head>"
        f"<body><h1>Recorded conversations</h1>{body}</body></html>\n"
    )


def _table(recording: Recording, view: View) -> Iterator[str]:
    one = replay(recording)
    found = last(shown(one, view), view.tail)
    yield f"<h2>{escape(safe(recording.path.name))}, {escape(one.revision or 'no revision')}</h2>"
    yield "<table>"
    yield from map(_row, found)
    yield "</table>"


def _row(line: Shown) -> str:
    headers = f"<pre>{escape(chr(10).join(line.headers))}</pre>" if line.headers else ""
    rules = "".join(f'<div class="rule">✗ {escape(note)}</div>' for note in line.broke)
    kind = ' class="broken"' if line.broke else ""
    return (
        f'<tr{kind}><td class="at">{escape(line.head)}</td>'
        f"<td>{escape(line.said)}{headers}{rules}</td>"
        f'<td class="beside">{escape(line.beside)}</td></tr>'
    )
