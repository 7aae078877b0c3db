"""questions/sampling: the sampling requests of a server."""

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
def writes_sampling_requests_in_the_right_types(record: Record) -> Iterator[Seen]:
    """A sampling request has valid messages, a token limit, and typed preferences."""
    yield from shapes(record, *SHAPES)
    for question in _sampled(record):
        if question.member.get("messages") == []:
            clause, expected, actual = SHAPES[0], "at least one message", "messages: []"
            yield Seen(clause, False, question.entry.n, expected, actual, mild=Breach.NOTE)


# --- capabilities


@ambient("sampling-tools-require-capability", "sampling-include-context")
def samples_only_with_declared_capabilities(record: Record) -> Iterator[Seen]:
    """Tools and context of other servers are requested only if the client declared them."""
    for question in _sampled(record):
        able = object_in(_declared(record, question), "sampling")
        yield from _tools(question, able)
        yield from _context(question, able)


def _declared(record: Record, question: Question) -> dict[str, Any]:
    """Return the client's capabilities, from the handshake or from the answered request."""
    if not is_modern(record.revision):
        return record.transcript.capabilities
    asked = record.asked_on(question.answers)
    value = asked.value if asked is not None else None
    return object_in(value, "params", "_meta", META + "clientCapabilities")


def _tools(question: Question, able: dict[str, Any]) -> Iterator[Seen]:
    clause, expected = "sampling-tools-require-capability", "no tools without sampling.tools"
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
    clause, expected = "sampling-include-context", 'no includeContext except "none"'
    yield Seen(clause, not foreign, question.entry.n, expected, brief(wish, 40), mild=mild)


# --- a conversation with tools


@ambient(
    "sampling-tool-results-alone",
    "sampling-tool-use-balance",
    "sampling-tool-result-structured",
)
def continues_correctly_after_tool_use(record: Record) -> Iterator[Seen]:
    """Each tool use is followed by a message that contains only tool results."""
    for question in _sampled(record):
        messages = [m for m in _list(question.member.get("messages")) if isinstance(m, dict)]
        yield from _alone(question.entry, messages)
        yield from _balanced(question.entry, messages)
        yield from _structured(record, question, messages)


def _blocks(message: Any, kind: str) -> list[dict[str, Any]]:
    """Return the blocks of one type in a message; ``*`` for all."""
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else [content]
    return [b for b in blocks if isinstance(b, dict) and kind in {"*", b.get("type")}]


def _alone(entry: Entry, messages: list[dict[str, Any]]) -> Iterator[Seen]:
    for message in messages:
        results = _blocks(message, "tool_result")
        if results and message.get("role") == "user":
            others = [b.get("type") for b in _blocks(message, "*") if b not in results]
            clause, expected = "sampling-tool-results-alone", "a message with only tool results"
            actual = f"a message with tool results and {brief(others[0])}" if others else ""
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
            actual = f"no result for {brief(lacking[0], 40)}" if lacking else ""
            yield Seen(clause, not lacking, entry.n, expected, actual)
        if strange:
            expected = "only results of tool uses in the previous message"
            yield Seen(clause, False, entry.n, expected, f"a result for {brief(strange[0], 40)}")
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
            clause, expected = "sampling-tool-result-structured", f"the outputSchema of {name}"
            yield Seen(clause, fits, question.entry.n, expected, brief(value, 80))
