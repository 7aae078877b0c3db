"""basic/discover: the server/discover result of a stateless server."""

from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    Conversation,
    Entry,
    Kind,
    Message,
    Record,
    Seen,
    Unopened,
    ambient,
    brief,
    capability_faults,
    list_in,
    object_in,
    scenario,
    type_name,
    wrong_types,
)

FEATURES = ("tools", "prompts", "resources", "logging", "completions", "experimental", "extensions")


@scenario("discover-implemented")
def answers_discover_first(talk: Conversation) -> None:
    """server/discover gets a result as the first message of a process.

    Another scenario sends it as a later message.
    """
    lacks_it = talk.wire.substitute != ""
    reply = talk.wire.request("server/discover") if lacks_it else talk.server.opening
    talk.judge.expect_result(
        reply, "discover-implemented", "a result for server/discover as the first request"
    )


def _discovered(record: Record) -> Iterator[tuple[Entry, Message, dict[str, Any]]]:
    for entry, message in record.answers(Kind.RESULT):
        result = message.value["result"]
        if message.method == "server/discover" and isinstance(result, dict):
            yield entry, message, result


@ambient(
    "discover-result-shape",
    "discover-supported-versions-current",
    "discover-capabilities-shape",
    unopened=Unopened.AFTER_RESULT,
)
def introduces_itself_in_the_right_types(record: Record) -> Iterator[Seen]:
    """Every discover result lists capabilities and versions, including the current one."""
    for entry, message, result in _discovered(record):
        wrong = _wrong_members(result)
        clause, expected = "discover-result-shape", "supportedVersions: array of strings, "
        yield Seen(clause, not wrong, entry.n, expected + "capabilities: object", "; ".join(wrong))
        versions = result.get("supportedVersions")
        if record.asked_under(message) == record.revision:
            passed = not isinstance(versions, list) or record.revision in versions
            clause = "discover-supported-versions-current"
            expected = f"a list with {record.revision}, the revision of this request"
            yield Seen(clause, passed, entry.n, expected, brief(versions))
        wrong = _wrong_capabilities(result.get("capabilities"))
        clause, expected = "discover-capabilities-shape", "capabilities as objects, flags boolean"
        yield Seen(clause, not wrong, entry.n, expected, "; ".join(wrong))


def _wrong_members(result: dict[str, Any]) -> list[str]:
    wrong = wrong_types(
        result,
        {"supportedVersions": "array", "capabilities": "object", "instructions": "string"},
        ("supportedVersions", "capabilities"),
    )
    for version in list_in(result, "supportedVersions"):
        if not isinstance(version, str):
            wrong.append(f"supportedVersions holds {brief(version)}")
    return wrong


def _wrong_capabilities(declared: Any) -> list[str]:
    wrong = capability_faults(declared, FEATURES)
    for key, entry in object_in(declared, "experimental").items():
        if not isinstance(entry, dict):
            wrong.append(f"experimental.{key} is a {type_name(entry)}")
    return wrong
