"""server/resources: lists, contents and types. ``resources_*`` hold further scenarios."""

import re
from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    Place,
    Record,
    Reply,
    Seen,
    ambient,
    base64_fault,
    brief,
    each,
    list_in,
    listings,
    read_pages,
    scenario,
    shapes,
    typed,
    uri_template,
    value_in,
)

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
BEFORE_COLON = re.compile(r"(?P<scheme>[^/?#:]*):")
LITERAL = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*")
CUSTOM_SINCE = "2025-06-18"
"""The first revision in which resources-custom-scheme-rfc3986 judges malformed schemes."""

MEDIA = ("image/", "audio/", "video/")
VECTORS = ("image/svg+xml",)
SAMPLE = 5
"""Number of listed resources that are read."""

NOT_FOUND = frozenset({-32002, -32602})
WEB = ("http://", "https://")


# --- shapes


@ambient(
    "resources-list-result-shape",
    "resources-definition-shape",
    "resources-templates-list-shape",
    "resources-template-definition-shape",
    "resources-read-result-shape",
    "resources-contents-text-or-blob",
    "resources-updated-shape",
)
def writes_resources_in_the_right_types(record: Record) -> Iterator[Seen]:
    """Lists, definitions, contents and updates of resources have the types of the revision."""
    yield from shapes(record)


@ambient("resources-contents-text-or-blob", "resources-text-only-for-text")
def sends_only_text_as_text(record: Record) -> Iterator[Seen]:
    """Contents have either text or a blob, and a text is not binary."""
    for message, place, contents in each(record, "ResourceContents"):
        if not isinstance(text := contents.get("text"), str):
            continue
        both = isinstance(contents.get("blob"), str)
        clause, expected = "resources-contents-text-or-blob", "either text or blob"
        actual = f"{place} has both"
        yield Seen(clause, not both, message.entry.n, expected, actual, mild=Breach.WARN)
        clause, expected = "resources-text-only-for-text", "readable text"
        odd = _oddity(text, contents.get("mimeType"))
        yield Seen(clause, not odd, message.entry.n, expected, f"{place}: {odd}")


def _oddity(text: str, kind: Any) -> str:
    if "\0" in text:
        return "a text that contains NUL"
    if text.count("\ufffd") > max(2, len(text) // 20):
        return "a text full of replacement characters"
    media = kind.partition(";")[0].strip().lower() if isinstance(kind, str) else ""
    if media.startswith(MEDIA) and media not in VECTORS:
        return f"a text of type {brief(kind, 40)}"
    return ""


@ambient("resources-binary-encoded")
def encodes_binary_contents_in_base64(record: Record) -> Iterator[Seen]:
    """The blob of a resource is base64."""
    for message, place, contents in each(record, "ResourceContents"):
        blob = contents.get("blob")
        if message.method == "resources/read" and isinstance(blob, str):
            fault, patient = base64_fault(blob)
            yield Seen(
                "resources-binary-encoded",
                not fault,
                message.entry.n,
                "base64",
                f"{place}.blob: {fault}: {brief(blob, 60)}",
                mild=Breach.WARN if patient else None,
            )


# --- URIs


@ambient("resources-uri-has-scheme", "resources-custom-scheme-rfc3986")
def identifies_resources_by_uris(record: Record) -> Iterator[Seen]:
    """Every resource has a URI with a scheme, in the characters of RFC 3986."""
    custom = record.revision >= CUSTOM_SINCE
    for message in typed(record):
        for place, uri in _uris(message.method, message.value):
            found = BEFORE_COLON.match(uri)
            proper = found is not None and SCHEME.fullmatch(found["scheme"]) is not None
            n, actual = message.entry.n, f"{place}: {brief(uri, 80)}"
            if found and custom:
                clause, expected = "resources-custom-scheme-rfc3986", "a scheme as in RFC 3986"
                yield Seen(clause, proper, n, expected, actual)
            clause = "resources-uri-has-scheme"
            if not found or (not proper and not custom):
                yield Seen(clause, False, n, "a URI with a scheme", actual)
            elif proper:
                encoded = LITERAL.fullmatch(uri) is not None
                expected = "a URI with all other characters percent-encoded"
                yield Seen(clause, encoded, n, expected, actual, mild=Breach.WARN)


def _uris(method: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the path and value of each resource URI in a message."""
    for member in ("resources", "contents"):
        if method in {"resources/list", "resources/read"} and isinstance(value, dict):
            for index, item in enumerate(list_in(value, member)):
                if isinstance(uri := value_in(item, "uri"), str):
                    yield f"{member}[{index}].uri", uri
    uri = value_in(value, "params", "uri")
    if method == "notifications/resources/updated" and isinstance(uri, str):
        yield "params.uri", uri


@ambient("resources-custom-scheme-rfc3986")
def writes_valid_schemes_in_links_and_templates(record: Record) -> Iterator[Seen]:
    """Resource links and URI templates begin with a scheme in the form of RFC 3986."""
    for message, place, item in each(record, "ResourceLink", "ResourceTemplate"):
        for member in ("uri", "uriTemplate"):
            value = item.get(member)
            if isinstance(value, str) and (found := BEFORE_COLON.match(value)):
                scheme = found["scheme"]
                passed = "{" in scheme or SCHEME.fullmatch(scheme) is not None
                clause, expected = "resources-custom-scheme-rfc3986", "a scheme as in RFC 3986"
                actual = f"{place}.{member}: {brief(value, 80)}"
                yield Seen(clause, passed, message.entry.n, expected, actual)


@ambient("resources-template-rfc6570")
def writes_valid_uri_templates(record: Record) -> Iterator[Seen]:
    """The uriTemplate of each resource template is valid under RFC 6570."""
    for message, place, item in each(record, "ResourceTemplate"):
        if isinstance(template := item.get("uriTemplate"), str):
            why, mild = "", None
            try:
                uri_template.parts(template)
            except ValueError as error:
                why = f"{place}.uriTemplate {brief(template, 80)}: {error}"
                mild = Breach.WARN if _has_expressions_only(template) else None
            clause, expected = "resources-template-rfc6570", "a template in the form of RFC 6570"
            yield Seen(clause, not why, message.entry.n, expected, why, mild=mild)


def _has_expressions_only(template: str) -> bool:
    """Whether the expressions of a template are valid, whatever its literals contain."""
    try:
        uri_template.parts(template, any_literal=True)
    except ValueError:
        return False
    return True


# --- listing


@scenario("resources-capability-declared")
def declares_the_resources_it_offers(talk: Conversation) -> None:
    """A server that does not declare resources lists none."""
    clause = "resources-capability-declared"
    declared = "resources" in talk.spoken.capabilities
    for method, member in (
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ):
        reply = talk.wire.request(method, required=False)
        talk.judge.expect(
            reply,
            clause,
            declared or not (reply.result or {}).get(member),
            f"no {member}, because resources is not declared",
        )


@scenario("resources-list-must-answer")
def lists_its_resources(talk: Conversation) -> None:
    """resources/list gets a result if resources are declared."""
    listings.judge_served(talk, "resources/list", "resources-list-must-answer")


@scenario("resources-uri-unique")
def lists_each_uri_once(talk: Conversation) -> None:
    """No URI is listed twice."""
    clause = "resources-uri-unique"
    twice, reply = _listed_twice(talk)
    if twice:
        again, reply = _listed_twice(talk)
        twice &= again
    if reply is None:
        talk.judge.unseen(clause, "no resource is listed")
        return
    actual = f"{brief(sorted(twice), 80)} twice"
    talk.judge(clause, not twice, expected="each uri once", actual=actual, at=reply)


def _listed_twice(talk: Conversation) -> tuple[set[str], Reply | None]:
    """Read a list; return the URIs that occur twice, and the last page with a URI."""
    seen: set[str] = set()
    twice: set[str] = set()
    last = None
    for reply in read_pages(talk.wire, "resources/list"):
        for uri in _listed(reply):
            twice |= seen & {uri}
            seen.add(uri)
            last = reply
    return twice, last


def _listed(reply: Reply) -> list[str]:
    uris = (item.get("uri") for item in listings.items([reply], "resources"))
    return [uri for uri in uris if isinstance(uri, str)]


@scenario("resources-list-not-per-connection", place=Place.SEVERAL)
def lists_the_same_resources_on_every_connection(talk: Conversation) -> None:
    """Another process lists the same resources, and other requests do not change the list."""
    clause = "resources-list-not-per-connection"
    busy, quiet = listings.side_by_side(talk, "resources", talk.examples.exercise)
    if None in (*busy, *quiet):
        talk.judge.unseen(clause, "the list could not be read completely")
        return
    if not any((*busy, *quiet)):
        talk.judge.unseen(clause, listings.NOTHING)
        return
    suspect, confirmed, mild = listings.varies(busy, quiet), "", None
    if suspect:
        again = listings.in_turn(talk, "resources", talk.examples.exercise)
        confirmed = listings.varies(*again)
        if not confirmed:
            mild = Breach.NOTE
        elif confirmed == listings.ELSEWHERE and listings.all_differ(busy, quiet, *again):
            mild = Breach.WARN
    talk.judge(
        clause,
        not suspect,
        expected="the same uris on each connection and after other requests",
        actual=f"other uris {confirmed or suspect}",
        at=len(talk.wire.transcript),
        mild=mild,
        because="each process lists a set of its own, as a log of this run would be",
    )


# --- reading


@scenario("resources-listed-resource-readable")
def reads_the_resources_it_lists(talk: Conversation) -> None:
    """A listed resource can be read."""
    clause = "resources-listed-resource-readable"
    listed = [item["uri"] for item in talk.spoken.named("resources", "uri")]
    fetched = [uri for uri in listed if not uri.startswith(WEB)]
    for uri in fetched[:SAMPLE]:
        reply = talk.wire.request("resources/read", {"uri": uri})
        missing = reply.code in NOT_FOUND
        if missing:
            missing = any(uri in _listed(page) for page in read_pages(talk.wire, "resources/list"))
        expected = f"contents of {brief(uri, 80)}, because it is listed"
        talk.judge.expect(reply, clause, not missing, expected)
    if not fetched:
        talk.judge.unseen(clause, "every listed resource has a web address")


@scenario("resources-template-mime-type-uniform")
def serves_the_mime_type_of_its_templates(talk: Conversation) -> None:
    """Contents read through a template have the MIME type of the template."""
    clause = "resources-template-mime-type-uniform"
    for example in talk.examples("readable-template"):
        named = example.item.get("mimeType")
        template = example.item.get("uriTemplate")
        if not isinstance(named, str) or not isinstance(template, str):
            continue
        reply = talk.run(example)
        for item in list_in(reply.result, "contents"):
            if isinstance(kind := value_in(item, "mimeType"), str):
                expected = f"{named}, the type of {brief(template, 60)}"
                passed = _plain(kind) == _plain(named)
                talk.judge(clause, passed, expected=expected, actual=kind, at=reply)
    talk.judge.otherwise_unseen(clause, "no readable template has a mimeType")


def _plain(kind: str) -> str:
    return kind.partition(";")[0].strip().lower()
