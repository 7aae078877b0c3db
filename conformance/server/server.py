"""server: rules for all features: methods, content blocks, annotations."""

import re
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    Record,
    Reply,
    Request,
    Seen,
    Typed,
    ambient,
    base64_fault,
    brief,
    each,
    object_in,
    scenario,
    shapes,
    typed,
)

UNKNOWN_METHOD = -32601
INTERNAL_ERROR = -32603
MALFORMED = frozenset({-32600, -32602})
BEFORE_COLON = re.compile(r"[^/?#:]+:")
NO_URI = re.compile(r"[\s<>\"{}|\\^`]")
CALLS = frozenset({"tools/call", "tasks/result"})
DATE = re.compile(
    r"(?P<year>\d{4})(?:-?(?P<month>\d\d)(?:-?(?P<day>\d\d))?|-?W\d\d(?:-?[1-7])?|-?\d{3})?"
    r"(?:T\d\d(?::?[0-5]\d(?::?[0-6]\d)?)?(?:[.,]\d+)?(?:Z|[+-]\d\d(?::?[0-5]\d)?)?)?"
)
"""A date, optionally with a time, in any form of ISO 8601."""


# --- methods


@scenario("server-declared-feature-methods-implemented")
def implements_the_methods_it_declares(talk: Conversation) -> None:
    """The methods of a declared capability do not get error -32601."""
    clause = "server-declared-feature-methods-implemented"
    for request in _uses(talk):
        reply = talk.run(request, required=False)
        if not reply.answered or reply.code == INTERNAL_ERROR:
            continue
        talk.judge.expect(
            reply,
            clause,
            reply.code != UNKNOWN_METHOD,
            f"a working {request.method}, because its capability is declared",
        )
    why = "no method of a declared capability was served, or refused for its arguments"
    talk.judge.otherwise_unseen(clause, why)


def _uses(talk: Conversation) -> Iterator[Request]:
    """Yield one harmless request for each method of a declared capability."""
    spoken = talk.spoken
    if not talk.modern:
        yield from (Request(method) for method in spoken.declared_list_methods)
        if spoken.declares("logging"):
            yield Request("logging/setLevel", {"level": "info"})
        for item in spoken.named("resources", "uri")[: spoken.flag("resources", "subscribe")]:
            yield Request("resources/subscribe", {"uri": item["uri"]})
            yield Request("resources/unsubscribe", {"uri": item["uri"]})
    for name in spoken.harmless[:1] if spoken.declares("tools") else ():
        yield Request("tools/call", {"name": name, "arguments": {}})
    for name in spoken.plain_prompts[:1] if spoken.declares("prompts") else ():
        yield Request("prompts/get", {"name": name})
    for item in spoken.named("resources", "uri")[:1] if spoken.declares("resources") else ():
        yield Request("resources/read", {"uri": item["uri"]})
    for reference, name in spoken.completable[:1] if spoken.declares("completions") else ():
        params = {"ref": reference, "argument": {"name": name, "value": ""}}
        yield Request("completion/complete", params)


@scenario("server-list-requests-accept-no-params")
def lists_without_params(talk: Conversation) -> None:
    """A list request is served without params, as with empty params."""
    clause = "server-list-requests-accept-no-params"
    methods = [*talk.spoken.declared_list_methods]
    if "resources/list" in methods:
        methods.append("resources/templates/list")
    for method in methods:
        without, empty = talk.wire.request(method), talk.wire.request(method, {})
        if _differ(without, empty):
            without, empty = talk.wire.request(method), talk.wire.request(method, {})
        if without.result is None and empty.result is None:
            continue
        if not without.answered or not empty.answered:
            continue
        odd = next((one for one in (without, empty) if one.is_error), without)
        malformed = without.code in MALFORMED or empty.code in MALFORMED
        talk.judge.expect(
            odd,
            clause,
            not malformed and not _differ(without, empty),
            f"a list for {method} without params and with empty params",
        )
    talk.judge.otherwise_unseen(clause, "no list was served")


def _differ(without: Reply, empty: Reply) -> bool:
    return without.is_error != empty.is_error


# --- content


@ambient(
    "server-content-block-types-2024-11-05",
    "server-content-block-types-2025-03-26",
    "server-content-block-types",
    "server-text-content-shape",
    "server-image-content-shape",
    "server-audio-content-shape",
    "server-annotations-audience-roles",
    "server-annotations-priority-range",
    "server-annotations-last-modified",
)
def sends_content_of_known_types(record: Record) -> Iterator[Seen]:
    """Content blocks and annotations have the types of the revision."""
    yield from shapes(record)


@ambient("server-resource-link-shape")
def links_to_resources_by_uri(record: Record) -> Iterator[Seen]:
    """A link to a resource has a name, and a URI that begins with a scheme."""
    links = [(m, f"{p}.uri", link) for m, p, link in each(record, "ResourceLink")]
    yield from _with_uris(record, "server-resource-link-shape", links)


@ambient("server-embedded-resource-shape")
def embeds_resources_by_uri(record: Record) -> Iterator[Seen]:
    """A resource in the result of a tool has content, and a URI that begins with a scheme."""
    inside = [
        (message, f"{place}.resource.uri", object_in(block, "resource"))
        for message, place, block in each(record, "EmbeddedResource")
        if message.part == "results" and message.method in CALLS
    ]
    yield from _with_uris(record, "server-embedded-resource-shape", inside)


def _with_uris(
    record: Record, clause: str, found: Iterable[tuple[Typed, str, dict[str, Any]]]
) -> Iterator[Seen]:
    """Judge the shape of things with a URI; a URI without a scheme fails."""
    for message in typed(record):
        if clause in message.look.clauses:
            flaws = (flaw for flaw in message.look.flaws if flaw.clause == clause)
            yield message.seen(
                clause, (f for f in flaws if not f.path.endswith(".uri") or not f.mild)
            )
    for message, place, thing in found:
        if isinstance(uri := thing.get("uri"), str):
            n, actual = message.entry.n, f"{place}: {brief(uri, 80)}"
            scheme = BEFORE_COLON.match(uri)
            yield Seen(clause, scheme is not None, n, "a URI with a scheme", actual)
            odd = NO_URI.search(uri) is not None
            expected = "a URI with all other characters percent-encoded"
            yield Seen(clause, not odd, n, expected, actual, mild=Breach.WARN)


@ambient("server-binary-content-base64")
def encodes_binary_content_of_tools(record: Record) -> Iterator[Seen]:
    """Images, audio and blobs in the results of tools are base64."""
    for message, place, block in each(record, "ImageContent", "AudioContent", "EmbeddedResource"):
        if message.part != "results" or message.method not in CALLS:
            continue
        inside = block.get("resource")
        at, data = f"{place}.data", block.get("data")
        if isinstance(inside, dict):
            at, data = f"{place}.resource.blob", inside.get("blob")
        if isinstance(data, str):
            fault, slight = base64_fault(data)
            yield Seen(
                "server-binary-content-base64",
                not fault,
                message.entry.n,
                "base64",
                f"{at}: {fault}: {brief(data, 60)}",
                mild=Breach.WARN if slight else None,
            )


@ambient("server-annotations-last-modified")
def dates_annotations_by_iso_8601(record: Record) -> Iterator[Seen]:
    """The lastModified of an annotation is a time in ISO 8601 format."""
    for message, place, annotations in each(record, "Annotations"):
        if isinstance(when := annotations.get("lastModified"), str):
            clause, expected = "server-annotations-last-modified", "a time in ISO 8601 format"
            actual = f"{place}.lastModified: {brief(when, 60)}"
            passed = _is_time(when)
            yield Seen(clause, passed, message.entry.n, expected, actual, mild=Breach.WARN)


def _is_time(text: str) -> bool:
    found = DATE.fullmatch(text)
    if found is None:
        return False
    try:
        date(int(found["year"]) or 4, int(found["month"] or 1), int(found["day"] or 1))
    except ValueError:
        return False
    return True
