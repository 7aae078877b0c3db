"""What rules on clients read of a conversation: their requests, and what the server said to them.

Where a record judges the client, THEM is the client and US is the server. ``peer`` is the same
conversation as the server sees it, with the same numbers of lines.
"""

from collections.abc import Iterator
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.loader import home
from mcp_touchstone.judging.ambient import Record
from mcp_touchstone.wire.events import Happened
from mcp_touchstone.wire.framing import Kind, list_in, object_in, value_in
from mcp_touchstone.wire.lifecycle import Asked, Message
from mcp_touchstone.wire.schema import Schemas
from mcp_touchstone.wire.transcript import Entry, Transcript

SCHEMAS: Final = Schemas(home() / "conformance" / "clients" / "schemas")
"""The messages of clients; ``results`` are those to requests of the server."""

VERSION: Final = rev.META + "protocolVersion"


def peer(record: Record) -> Transcript:
    """Return the conversation with the client in our place; empty if there is none."""
    return record.peer if record.peer is not None else Transcript(record.revision, lambda: 0.0)


def requests(record: Record) -> list[Asked]:
    """Return the requests of the client, without those that name another era."""
    return record.transcript.once(requests, lambda: _requests(record))


def _requests(record: Record) -> list[Asked]:
    modern = rev.is_modern(record.revision)
    named = ((a, value_in(a.value, "params", "_meta", VERSION)) for a in peer(record).session.asked)
    return [asked for asked, version in named if modern or version not in rev.MODERN]


def stateless(record: Record) -> list[Asked]:
    """Return the requests of the stateless era; initialize is the way into the other one."""
    return [asked for asked in requests(record) if asked.method != "initialize"]


def answer(record: Record, asked: Asked) -> tuple[Entry, Message] | None:
    """Return the answer of the server to a request of the client."""
    return peer(record).answer_to(asked.line)


def result(record: Record, asked: Asked) -> dict[str, Any]:
    """Return the result that the server gave to a request; empty if it gave none."""
    found = answer(record, asked)
    return {} if found is None else object_in(found[1].value, "result")


def tools(record: Record, asked: Asked) -> list[dict[str, Any]]:
    """Return the tools in the answer to a request."""
    return [one for one in list_in(result(record, asked), "tools") if isinstance(one, dict)]


def text(record: Record, asked: Asked) -> str:
    """Return the text of the result that the server gave to a call; empty if it has none."""
    content = list_in(result(record, asked), "content")
    return str(value_in(content[0], "text")) if content else ""


def event(record: Record, *kinds: Happened) -> Entry | None:
    """Return the first event of some kinds."""
    return next(iter(record.transcript.events(*kinds)), None)


def acceptance(record: Record) -> tuple[Entry, dict[str, Any]] | None:
    """Return the accepted initialize: the line of its result, and the result."""
    for asked in requests(record):
        found = answer(record, asked)
        if asked.method == "initialize" and found and found[1].kind is Kind.RESULT:
            return found[0], object_in(found[1].value, "result")
    return None


def declared(record: Record, line: int) -> dict[str, Any]:
    """Return the capabilities of the client on a line of its own, or of its session there."""
    return Record(peer(record), record.profile).declared(line)


Answered = tuple[Entry, str, dict[str, Any], dict[str, Any], int]
"""The line of the client; the method and params of the request; the message of the answer, or in
2026-07-28 the response as its result; the line on which the client declared what it can."""


def questions(record: Record) -> Iterator[Answered]:
    """Yield what the client answered to requests of the server; nine rules ask for it."""
    return iter(record.transcript.once(questions, lambda: [*_answered(record)]))


def _answered(record: Record) -> Iterator[Answered]:
    for entry, message in record.messages():
        if message.answers is not None and message.method is not None:
            asked = next(a for a in record.transcript.session.asked if a.line == message.answers)
            params = object_in(asked.value, "params")
            yield entry, message.method, params, message.value, message.answers
    for asked in requests(record):
        given = object_in(asked.value, "params", "inputResponses")
        first = earlier(record, asked) if given else []
        for name, response in given.items():
            for before in first:
                wanted = object_in(result(record, before), "inputRequests", name)
                if isinstance(wanted.get("method"), str):
                    entry = peer(record)[asked.line]
                    params = object_in(wanted, "params")
                    yield entry, wanted["method"], params, {"result": response}, before.line
                    break


def earlier(record: Record, asked: Asked) -> list[Asked]:
    """Return the requests that a retry may repeat, the last first.

    They have its target, required more input, and no other retry before it repeats them.
    """
    alike = [a for a in requests(record) if a.method == asked.method and target(a) == target(asked)]
    done: list[Asked] = []
    for retry in alike:
        params = object_in(retry.value, "params")
        found = [one for one in alike[::-1] if one not in done and _asks(record, one, retry.line)]
        if retry is asked or retry.line > asked.line:
            return found
        if found and {"inputResponses", "requestState"} & set(params):
            own = params.get("requestState")
            fits = (one for one in found if result(record, one).get("requestState") == own)
            done.append(next(fits, found[0]))
    return []


def _asks(record: Record, asked: Asked, line: int) -> bool:
    """Whether a request was answered before a line, by an InputRequiredResult."""
    found = answer(record, asked)
    return (
        found is not None
        and found[0].n < line
        and result(record, asked).get("resultType") == "input_required"
    )


def target(asked: Asked) -> dict[str, Any]:
    """Return the params of a request that a retry repeats."""
    own = ("_meta", "inputResponses", "requestState")
    return {k: v for k, v in object_in(asked.value, "params").items() if k not in own}
