"""Requests of the server to its client: in a session, or in rounds of 2026-07-28. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mcp_touchstone.connection.profile import ASKED
from mcp_touchstone.wire.framing import object_in, value_in
from mcp_touchstone.wire.lifecycle import Message, Role
from mcp_touchstone.wire.transcript import Entry, Source, Transcript


@dataclass(frozen=True, slots=True)
class Question:
    """One elicitation, sampling request or roots request.

    Attributes:
        params: its params as received; of any type, or None.
        key: the id of the request, or its key in ``inputRequests``.
        value: the request, or the entry of ``inputRequests``, as received.
        answers: our line that the interim result answers; None in a session.
    """

    entry: Entry
    method: str
    params: Any
    key: Any
    value: Any
    answers: int | None = None

    @property
    def member(self) -> dict[str, Any]:
        """The params if they are an object; empty otherwise."""
        return self.params if isinstance(self.params, dict) else {}


def questions(entries: Iterable[Entry]) -> Iterator[Question]:
    """Yield the requests of the server, in the order of the transcript.

    Ten rules ask for those of a transcript, so it keeps them.
    """
    if isinstance(entries, Transcript):
        yield from entries.once(questions, lambda: [*_questions(entries)])
    else:
        yield from _questions(entries)


def _questions(entries: Iterable[Entry]) -> Iterator[Question]:
    for entry in entries:
        if entry.source is Source.THEM:
            for message in entry.messages:
                yield from _of_message(entry, message)


def _of_message(entry: Entry, message: Message) -> Iterator[Question]:
    value = message.value
    if message.role is Role.REQUEST and message.method in ASKED:
        yield Question(entry, message.method, value.get("params"), value.get("id"), value)
    for key, asked in input_requests(value).items():
        method = value_in(asked, "method")
        if isinstance(method, str):
            yield Question(entry, method, asked.get("params"), key, asked, message.answers)


def input_requests(response: Any) -> dict[str, Any]:
    """Return the requests in an interim result; empty for any other message."""
    result = object_in(response, "result")
    waits = result.get("resultType") == "input_required"
    return object_in(result, "inputRequests") if waits else {}


def words(method: str, params: Any) -> set[str]:
    """Return the words of ``needs`` that a request with this method meets."""
    given = object_in(params)
    if method == "elicitation/create":
        return {"elicits", "elicits-url"} if given.get("mode") == "url" else {"elicits"}
    if method == "sampling/createMessage":
        return {"samples", "samples-tools"} if given.get("tools") else {"samples"}
    return {"lists-roots"} if method == "roots/list" else set()
