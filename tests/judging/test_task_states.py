"""Task states are found in every message that contains one."""

import itertools
from typing import Any

from mcp_touchstone.wire.framing import Line, encode
from mcp_touchstone.wire.task_states import STATUS, sightings
from mcp_touchstone.wire.transcript import Transcript

WHEN = "2026-01-02T03:04:05Z"


def state(own: Any, status: Any = "working") -> dict[str, Any]:
    times = {"createdAt": WHEN, "lastUpdatedAt": WHEN, "ttl": None}
    return {"taskId": own, "status": status, **times}


class Wire:
    """A transcript that is written by hand."""

    def __init__(self) -> None:
        counter = itertools.count()
        self.transcript = Transcript("2025-11-25", clock=lambda: float(next(counter)))
        self._id = 0

    def ask(self, method: str, result: Any) -> None:
        self._id += 1
        request = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": {"task": {}}}
        self.transcript.said(encode(request), request)
        self.hear({"id": self._id, "result": result})

    def hear(self, message: dict[str, Any]) -> None:
        raw = encode({"jsonrpc": "2.0", **message}).removesuffix(b"\n")
        self.transcript.heard(Line(raw, len(raw)))

    def seen(self) -> list[tuple[str, str, str, int | None]]:
        return [(one.method, one.id, one.status, one.asked) for one in sightings(self.transcript)]


def test_states_are_found_in_results_and_notifications() -> None:
    wire = Wire()
    wire.ask("tools/call", {"task": state("a")})
    wire.hear({"method": STATUS, "params": state("a", "input_required")})
    wire.ask("tasks/get", state("a", "working"))
    wire.ask("tasks/list", {"tasks": [state("a", "completed"), state("b", "failed")]})
    wire.ask("tasks/cancel", state("b", "cancelled"))

    assert wire.seen() == [
        ("tools/call", "a", "working", 1),
        (STATUS, "a", "input_required", None),
        ("tasks/get", "a", "working", 4),
        ("tasks/list", "a", "completed", 6),
        ("tasks/list", "b", "failed", 6),
        ("tasks/cancel", "b", "cancelled", 8),
    ]


def test_malformed_or_unrelated_values_are_not_states() -> None:
    wire = Wire()
    wire.ask("tools/call", {"content": [], "task": state("a")})
    wire.ask("tools/call", {"task": "a"})
    wire.ask("tasks/list", {"tasks": {"a": state("a")}})
    wire.ask("tasks/list", {"tasks": ["a"]})
    wire.ask("tasks/get", None)
    wire.ask("tasks/result", state("a"))
    wire.hear({"method": STATUS, "params": None})
    wire.hear({"method": "notifications/tasks", "params": state("a")})

    assert wire.seen() == []


def test_mistyped_id_or_status_of_a_state_is_empty() -> None:
    wire = Wire()
    wire.ask("tasks/get", state(7, "running"))
    wire.ask("tasks/get", state("a", ["working"]))

    assert [seen[1:3] for seen in wire.seen()] == [("", ""), ("a", "")]
