"""server/tools: structured results, and the resources that results embed or link to."""

import json
from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    DIALECTS,
    Breach,
    Conversation,
    Example,
    Record,
    Seen,
    allows,
    ambient,
    brief,
    each,
    scenario,
)

DIALECT_SINCE = "2025-11-25"
"""From here on a schema that names no dialect is one of 2020-12."""

ANY_VALUE_SINCE = "2026-07-28"
"""From here on structured content may be any JSON value."""

NOT_FOUND = frozenset({-32002, -32602})
WEB = ("http://", "https://")
FEW = 4
MISSING = object()


# --- structured content


@scenario("tools-structured-content-conforms")
def structures_results_as_it_said(talk: Conversation) -> None:
    """A tool that lists an outputSchema gives structured content that fits it."""
    clause, judged = "tools-structured-content-conforms", False
    for example in talk.examples("structured-tool")[:FEW]:
        reply = talk.run(example, required=False)
        result = reply.result
        if result is None or result.get("isError") is True:
            continue
        if result.get("resultType", "complete") != "complete":
            continue
        value = result.get("structuredContent", MISSING)
        if value is MISSING:
            fits: bool | None = False
        elif not isinstance(value, dict) and talk.revision < ANY_VALUE_SINCE:
            continue  # tools-structured-content-object counts it
        else:
            fits = _fits(example.item["outputSchema"], value, talk.revision)
        if fits is None:
            continue
        talk.judge(
            clause,
            fits,
            expected=f"structuredContent that fits the outputSchema of {example.name}",
            actual="there is none" if value is MISSING else brief(value, 200),
            at=reply,
        )
        judged = True
    if not judged:
        talk.unseen(clause, "no complete result could be held against an outputSchema")


def _fits(schema: dict[str, Any], value: Any, revision: str) -> bool | None:
    """Whether a value fits; None where that is open. Without a dialect any one will do."""
    if schema.get("$schema") or revision >= DIALECT_SINCE:
        return allows(schema, value)
    answers = {allows({**schema, "$schema": address}, value) for address in DIALECTS.values()}
    return True if True in answers else None if None in answers else False


@ambient("tools-structured-content-text-copy")
def repeats_structured_content_as_text(record: Record) -> Iterator[Seen]:
    """A result with structured content has the same as JSON in a block of text."""
    for message, place, result in each(record, "CallToolResult"):
        content = result.get("content") if isinstance(result, dict) else None
        if not isinstance(content, list) or "structuredContent" not in result:
            continue
        value = result["structuredContent"]
        if not isinstance(value, dict) and message.revision < ANY_VALUE_SINCE:
            continue  # tools-structured-content-object counts it
        blocks = (block.get("text") for block in content if isinstance(block, dict))
        texts = [text for text in blocks if isinstance(text, str)]
        yield Seen(
            "tools-structured-content-text-copy",
            any(_says(text, value) for text in texts),
            message.entry.n,
            f"a block of text in {place} with {brief(value, 80)}",
            f"other text: {brief(texts[0], 80)}" if texts else "no block of text",
            mild=Breach.NOTE if texts else None,
        )


def _says(text: str, value: Any) -> bool:
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


# --- resources


@ambient("tools-embedded-resources-capability")
def declares_resources_where_it_embeds_them(record: Record) -> Iterator[Seen]:
    """A server whose tools return embedded resources declares resources."""
    spoken = record.dossier.spoken.get(record.revision)
    for message, place, _ in each(record, "EmbeddedResource"):
        if message.part == "results" and message.method == "tools/call" and spoken is not None:
            held = "resources" in spoken.capabilities
            clause, expected = "tools-embedded-resources-capability", "the resources capability"
            yield Seen(clause, held, message.entry.n, expected, f"{place}, and none is declared")


@scenario("tools-embedded-resource-readable", "tools-resource-link-readable")
def serves_what_its_tools_point_to(talk: Conversation) -> None:
    """A resource that a tool links to, or embeds, can be read under its URI."""
    for kind, clause in (
        ("resource", "tools-embedded-resource-readable"),
        ("resource_link", "tools-resource-link-readable"),
    ):
        judged = False
        for example, uri in _pointers(talk, kind):
            reply = talk.request("resources/read", {"uri": uri}, required=False)
            if not reply.answered:
                continue
            talk.judge(
                clause,
                reply.code not in NOT_FOUND,
                expected=f"{brief(uri, 80)}, which {example.name} gave, can be read",
                actual=reply,
                at=reply,
            )
            judged = True
        if not judged and talk.judges(clause):
            talk.unseen(clause, f"no call gave a block of type {kind}")


def _pointers(talk: Conversation, kind: str) -> Iterator[tuple[Example, str]]:
    """Call once more what gave such blocks, and give the URIs of the first few."""
    for example in talk.examples("callable-tool"):
        if any(_uris(example.result, kind)):
            again = talk.run(example, required=False).result or {}
            for uri in list(_uris(again, kind))[:FEW]:
                yield example, uri


def _uris(result: Any, kind: str) -> Iterator[str]:
    content = result.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == kind:
            holder = block.get("resource") if kind == "resource" else block
            uri = holder.get("uri") if isinstance(holder, dict) else None
            if isinstance(uri, str) and ":" in uri and not uri.startswith(WEB):
                yield uri
