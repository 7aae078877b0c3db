"""client/sampling: when a server asks for a completion, what it sends, how it takes the answer."""

from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    META,
    Breach,
    Entry,
    Question,
    Record,
    Seen,
    allows,
    ambient,
    brief,
    is_modern,
    object_in,
    questions,
    shapes,
)

SAMPLES = "sampling/createMessage"
FOREIGN_CONTEXT = {"thisServer", "allServers"}
SHAPES = (
    "sampling-params-shape",
    "sampling-model-preferences-shape",
    "sampling-message-shape-2024-11-05",
    "sampling-message-shape-2025-03-26",
    "sampling-message-shape",
    "sampling-tool-definitions-shape",
)
BLOCKS_ARE_OBJECTS = "2025-11-25"
"""The revision in which structuredContent is an object by its type."""


def _sampled(record: Record) -> Iterator[Question]:
    return (q for q in questions(record.transcript) if q.method == SAMPLES)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


@ambient(*SHAPES)
def samples_in_the_right_types(record: Record) -> Iterator[Seen]:
    """A sampling request has messages of the revision's blocks, a limit, and typed wishes."""
    yield from shapes(record, *SHAPES)
    for question in _sampled(record):
        if question.member.get("messages") == []:
            clause, expected, actual = SHAPES[0], "messages to go on from", "messages: []"
            yield Seen(clause, False, question.entry.n, expected, actual, mild=Breach.NOTE)


# --- what the client has declared


@ambient("sampling-tools-require-capability", "sampling-include-context")
def samples_as_the_client_can(record: Record) -> Iterator[Seen]:
    """Tools and foreign context are asked for only where the client declared that it has them."""
    for question in _sampled(record):
        able = object_in(_declared(record, question), "sampling")
        yield from _tools(question, able)
        yield from _context(question, able)


def _declared(record: Record, question: Question) -> dict[str, Any]:
    """Give what the client declared: in its handshake, or in the request that is answered."""
    if not is_modern(record.revision):
        return record.transcript.capabilities
    asked = record.asked_on(question.answers)
    value = asked.value if asked is not None else None
    return object_in(value, "params", "_meta", META + "clientCapabilities")


def _tools(question: Question, able: dict[str, Any]) -> Iterator[Seen]:
    clause, expected = "sampling-tools-require-capability", "no tools, as sampling.tools is missing"
    with_tools = [name for name in ("tools", "toolChoice") if name in question.member]
    if "tools" in able:
        yield Seen(clause, True)
        return
    empty = with_tools == ["tools"] and question.member["tools"] == []
    actual = f"a request with {' and '.join(with_tools)}{', which is empty' if empty else ''}"
    mild = Breach.NOTE if empty else None
    yield Seen(clause, not with_tools, question.entry.n, expected, actual, mild=mild)


def _context(question: Question, able: dict[str, Any]) -> Iterator[Seen]:
    wish = question.member.get("includeContext")
    foreign = isinstance(wish, str) and wish in FOREIGN_CONTEXT
    mild = Breach.NOTE if "context" in able else None
    clause, expected = "sampling-include-context", "no includeContext, or none"
    yield Seen(clause, not foreign, question.entry.n, expected, brief(wish, 40), mild=mild)


# --- a conversation with tools


@ambient(
    "sampling-tool-results-alone",
    "sampling-tool-use-balance",
    "sampling-tool-result-structured",
)
def goes_on_with_what_tools_gave(record: Record) -> Iterator[Seen]:
    """Each tool use is answered at once, by messages of nothing but results."""
    for question in _sampled(record):
        messages = [m for m in _list(question.member.get("messages")) if isinstance(m, dict)]
        yield from _alone(question.entry, messages)
        yield from _balanced(question.entry, messages)
        yield from _structured(record, question, messages)


def _blocks(message: Any, kind: str) -> list[dict[str, Any]]:
    """Give the blocks of one type in a message; ``*`` for all."""
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else [content]
    return [b for b in blocks if isinstance(b, dict) and kind in {"*", b.get("type")}]


def _alone(entry: Entry, messages: list[dict[str, Any]]) -> Iterator[Seen]:
    for message in messages:
        results = _blocks(message, "tool_result")
        if results and message.get("role") == "user":
            others = [b.get("type") for b in _blocks(message, "*") if b not in results]
            clause, expected = "sampling-tool-results-alone", "nothing beside a tool_result"
            actual = f"{brief(others[0])} beside it" if others else ""
            yield Seen(clause, not others, entry.n, expected, actual)


def _balanced(entry: Entry, messages: list[dict[str, Any]]) -> Iterator[Seen]:
    clause = "sampling-tool-use-balance"
    used: list[Any] = []
    for message in [*messages, {}]:
        given = [block.get("toolUseId") for block in _blocks(message, "tool_result")]
        lacking = [own for own in used if own not in given]
        strange = [own for own in given if own not in used]
        if used:
            expected = (
                f"results for {', '.join(brief(own, 40) for own in used)} in the next message"
            )
            actual = f"none for {brief(lacking[0], 40)}" if lacking else ""
            yield Seen(clause, not lacking, entry.n, expected, actual)
        if strange:
            expected = "results of tools used in the message before"
            yield Seen(clause, False, entry.n, expected, f"one for {brief(strange[0], 40)}")
        assistant = message.get("role") == "assistant"
        used = [b.get("id") for b in _blocks(message, "tool_use")] if assistant else []


def _structured(
    record: Record, question: Question, messages: list[dict[str, Any]]
) -> Iterator[Seen]:
    tools = [tool for tool in _list(question.member.get("tools")) if isinstance(tool, dict)]
    schemas = {
        str(tool.get("name")): tool["outputSchema"] for tool in tools if "outputSchema" in tool
    }
    names = {str(b.get("id")): b.get("name") for m in messages for b in _blocks(m, "tool_use")}
    for block in (b for m in messages for b in _blocks(m, "tool_result")):
        name = str(names.get(str(block.get("toolUseId"))))
        value = block.get("structuredContent")
        typed = isinstance(value, dict) or record.revision != BLOCKS_ARE_OBJECTS
        if name not in schemas or "structuredContent" not in block or not typed:
            continue
        fits = allows(schemas[name], value)
        if fits is not None:
            clause, expected = "sampling-tool-result-structured", f"what {name} says it gives"
            yield Seen(clause, fits, question.entry.n, expected, brief(value, 80))
