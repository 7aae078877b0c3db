"""The states of the tasks of a server (2025-11-25), in the order it sent them. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.wire.framing import Kind
from mcp_touchstone.wire.lifecycle import Message, Role
from mcp_touchstone.wire.transcript import Entry, Source, Transcript

STATUSES: Final = ("working", "input_required", "completed", "failed", "cancelled")
STATUS: Final = "notifications/tasks/status"
CREATED: Final = "tools/call"
_SHOWING: Final = frozenset({CREATED, "tasks/get", "tasks/cancel", "tasks/list"})


@dataclass(frozen=True, slots=True)
class Sighting:
    """One state of one task.

    Attributes:
        entry: its line.
        method: method of the request it answers (``tools/call`` for the first state), or
            ``notifications/tasks/status``.
        state: the task object, as far as it is one.
        asked: the number of our request; None for a notification.
    """

    entry: Entry
    method: str
    state: dict[str, Any]
    asked: int | None = None

    @property
    def id(self) -> str:
        """The task's id; empty if it is invalid."""
        found = self.state.get("taskId")
        return found if isinstance(found, str) else ""

    @property
    def status(self) -> str:
        """One of the five statuses; empty for any other value."""
        found = self.state.get("status")
        return found if isinstance(found, str) and found in STATUSES else ""


def sightings(transcript: Transcript) -> Iterator[Sighting]:
    """Yield the states of tasks that a server sent on one connection."""
    for entry in transcript:
        if entry.source is Source.THEM:
            for message in entry.messages:
                yield from _of_message(entry, message)


def _of_message(entry: Entry, message: Message) -> Iterator[Sighting]:
    value, method = message.value, message.method or ""
    if message.role is Role.NOTIFICATION and method == STATUS:
        states: Iterable[Any] = (value.get("params"),)
    elif message.role is Role.ANSWER and message.kind is Kind.RESULT and method in _SHOWING:
        states = _shown(method, value["result"])
    else:
        return
    for state in states:
        if isinstance(state, dict):
            yield Sighting(entry, method, state, message.answers)


def _shown(method: str, result: Any) -> list[Any]:
    if not isinstance(result, dict):
        return []
    if method == CREATED:
        return [] if "content" in result else [result.get("task")]
    if method == "tasks/list":
        found = result.get("tasks")
        return found if isinstance(found, list) else []
    return [result]
