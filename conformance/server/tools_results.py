"""server/tools: structured results, and resources in results."""

from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    DIALECTS,
    Breach,
    Conversation,
    Example,
    Kind,
    Record,
    Seen,
    allows,
    ambient,
    brief,
    each,
    list_in,
    loads,
    misfit,
    refused_output,
    scenario,
    value_in,
)

DIALECT_SINCE = "2025-11-25"
"""The first revision in which a schema without a dialect is a 2020-12 schema."""

ANY_VALUE_SINCE = "2026-07-28"
"""The first revision in which structured content may be any JSON value."""

NOT_FOUND = frozenset({-32002, -32602})
WEB = ("http://", "https://")
FEW = 4
MISSING = object()


# --- structured content


@scenario("tools-structured-content-conforms")
def returns_structured_content_that_fits_its_schema(talk: Conversation) -> None:
    """A tool with an outputSchema returns structured content that fits it."""
    clause = "tools-structured-content-conforms"
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
            continue  # tools-structured-content-object judges it
        else:
            fits = _fits(example.item["outputSchema"], value, talk.revision)
        if fits is None:
            continue
        talk.judge(
            clause,
            fits,
            expected=f"structuredContent that fits the outputSchema of {example.name}",
            actual=_actual(example.item["outputSchema"], value),
            at=reply,
        )
    talk.judge.otherwise_unseen(clause, "no complete result could be compared with an outputSchema")


@ambient("tools-structured-content-conforms")
def keeps_its_output_schemas_in_all_results(record: Record) -> Iterator[Seen]:
    """Results fit the outputSchema that their tool was listed with, and no error is due to it."""
    clause = "tools-structured-content-conforms"
    schemas = _schemas(record)
    for entry, message in record.answers(Kind.RESULT, "tools/call") if schemas else ():
        result, asked = message.value["result"], record.asked_on(message.answers)
        if not isinstance(result, dict) or asked is None:
            continue
        name = value_in(asked.value, "params", "name")
        schema = schemas.get(name) if isinstance(name, str) else None
        if schema is None:
            continue
        value, failed = result.get("structuredContent", MISSING), result.get("isError") is True
        expected = f"structuredContent that fits the outputSchema of {name}"
        if failed and (said := refused_output(result)):
            actual = f"the server refused its own result: {brief(said, 300)}"
            yield Seen(clause, False, entry.n, expected, actual)
        elif failed and isinstance(value, dict) and _fits(schema, value, record.revision) is False:
            actual = f"{brief(value, 160)} beside isError true, which clients of the TypeScript SDK"
            actual += " refuse"
            mild = Breach.NOTE
            yield Seen(
                clause,
                False,
                entry.n,
                f"no structuredContent, or one that fits the outputSchema of {name}",
                actual,
                mild=mild,
            )
        elif not failed and isinstance(value, dict) and _is_final(result):
            fits = _fits(schema, value, record.revision)
            if fits is not None:
                yield Seen(clause, fits, entry.n, expected, "" if fits else _actual(schema, value))


def _is_final(result: dict[str, Any]) -> bool:
    return result.get("resultType", "complete") == "complete" and "task" not in result


def _schemas(record: Record) -> dict[str, dict[str, Any]]:
    """Return the outputSchema of each tool that was always listed with the same one."""
    spoken = record.profile.spoken.get(record.revision)
    found: dict[str, dict[str, Any]] = {}
    changed: set[str] = set()
    for tool in spoken.named("tools") if spoken is not None else []:
        schema, name = tool.get("outputSchema"), tool["name"]
        if isinstance(schema, dict) and found.setdefault(name, schema) != schema:
            changed.add(name)
    return {name: schema for name, schema in found.items() if name not in changed}


def _actual(schema: dict[str, Any], value: Any) -> str:
    if value is MISSING:
        return "no structuredContent"
    where = misfit(schema, value)
    return brief(value, 200) + (f"; {brief(where, 120)}" if where else "")


def _fits(schema: dict[str, Any], value: Any, revision: str) -> bool | None:
    """Whether a value fits in any dialect that the schema may have; None if unknown."""
    if schema.get("$schema") or revision >= DIALECT_SINCE:
        return allows(schema, value)
    is_undecided = False
    for address in reversed(DIALECTS.values()):
        found = allows({**schema, "$schema": address}, value)
        if found:
            return True
        is_undecided |= found is None
    return None if is_undecided else False


@ambient("tools-structured-content-text-copy")
def repeats_structured_content_as_text(record: Record) -> Iterator[Seen]:
    """A result with structured content repeats it as JSON in a text block."""
    for message, place, result in each(record, "CallToolResult"):
        content = result.get("content")
        if not isinstance(content, list) or "structuredContent" not in result:
            continue
        value = result["structuredContent"]
        if not isinstance(value, dict) and message.revision < ANY_VALUE_SINCE:
            continue  # tools-structured-content-object judges it
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
        return bool(loads(text) == value)
    except ValueError:
        return False


# --- resources


@ambient("tools-embedded-resources-capability")
def declares_resources_that_tools_embed(record: Record) -> Iterator[Seen]:
    """A server whose tools return embedded resources declares the resources capability."""
    spoken = record.profile.spoken.get(record.revision)
    for message, place, _ in each(record, "EmbeddedResource"):
        if message.part == "results" and message.method == "tools/call" and spoken is not None:
            passed = "resources" in spoken.capabilities
            clause, expected = "tools-embedded-resources-capability", "the resources capability"
            yield Seen(clause, passed, message.entry.n, expected, f"{place}, and none is declared")


@scenario("tools-embedded-resource-readable", "tools-resource-link-readable")
def serves_resources_its_tools_point_to(talk: Conversation) -> None:
    """A resource that a tool links to or embeds can be read by its URI."""
    for kind, clause in (
        ("resource", "tools-embedded-resource-readable"),
        ("resource_link", "tools-resource-link-readable"),
    ):
        for example, uri in _pointers(talk, kind):
            reply = talk.wire.request("resources/read", {"uri": uri}, required=False)
            if not reply.answered:
                continue
            talk.judge.expect(
                reply,
                clause,
                reply.code not in NOT_FOUND,
                f"the content of {brief(uri, 80)}, which {example.name} returned",
            )
        talk.judge.otherwise_unseen(clause, f"no call returned a block of type {kind}")


def _pointers(talk: Conversation, kind: str) -> Iterator[tuple[Example, str]]:
    """Repeat calls that returned such blocks, and yield the first few URIs."""
    for example in talk.examples("callable-tool"):
        if any(_uris(example.result, kind)):
            again = talk.run(example, required=False).result or {}
            for uri in list(_uris(again, kind))[:FEW]:
                yield example, uri


def _uris(result: Any, kind: str) -> Iterator[str]:
    for block in list_in(result, "content"):
        if value_in(block, "type") == kind:
            uri = value_in(block, *(["resource"] if kind == "resource" else []), "uri")
            if isinstance(uri, str) and ":" in uri and not uri.startswith(WEB):
                yield uri
