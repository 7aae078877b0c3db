"""Events that come again on a stream that goes on are no new messages of a call."""

import sys
from types import SimpleNamespace
from typing import Any

from mcp_touchstone.catalog.loader import load

MODULE = "mcp_touchstone._suites.conformance.basic.cancellation_calls"


def entry(n: int, raw: bytes, event: str | None) -> Any:
    origin = SimpleNamespace(event=None if event is None else SimpleNamespace(id=event))
    return SimpleNamespace(n=n, raw=raw, origin=origin, messages=())


def test_an_event_that_is_delivered_again_is_no_new_progress() -> None:
    load()
    entries = [
        entry(1, b"half", "a"),
        entry(2, b"half", "a"),
        entry(3, b"more", "a"),
        entry(4, b"more", None),
        entry(5, b"more", None),
    ]
    talk = SimpleNamespace(
        wire=SimpleNamespace(transcript=entries), modern=False, since=lambda _line: entries
    )
    pending = SimpleNamespace(line=0, progress=lambda: [(one, None) for one in entries])

    reports = sys.modules[MODULE]._reports(talk, pending)

    assert [one.n for one in reports] == [1, 3, 4, 5]
