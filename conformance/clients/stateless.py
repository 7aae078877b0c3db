"""clients/stateless: what requests of 2026-07-28 carry, and references in schemas."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from mcp_touchstone.suite import (
    LEGACY,
    META,
    Breach,
    Happened,
    Kind,
    Record,
    Role,
    Seen,
    ambient,
    brief,
    clients,
    is_modern,
    object_in,
    parts,
    value_in,
)

KINDS = {Role.REQUEST: "requests", Role.NOTIFICATION: "notifications"}
CANARY = "canary.json"
"""What nobody may fetch."""

FRESH = {"ttlMs": 0, "cacheScope": "private"}
FILE = "file:///path/to/file%20name.txt"
PROMPT = "test_prompt"


@parts.scenario("stateless", official="http-standard-headers")
class Stateless(parts.Part):
    """List the tools and call one, in 2026-07-28; then read a resource, and get a prompt."""

    modern = True
    steps = (*parts.Part.steps, {"read": FILE}, {"prompt": PROMPT})
    capabilities: ClassVar = {**parts.Part.capabilities, "resources": {}, "prompts": {}}
    results: ClassVar[Mapping[str, parts.Json]] = {
        "resources/list": {"resources": [{"uri": FILE, "name": "file"}]},
        "resources/read": {"contents": [{"uri": FILE, "text": "A file."}], **FRESH},
        "prompts/list": {"prompts": [{"name": PROMPT}]},
        "prompts/get": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Hello."}}]
        },
    }


@ambient("client-meta-version", "client-meta-capabilities", "client-meta-client-info")
def describes_itself_in_each_request(record: Record) -> Iterator[Seen]:
    """Each request has the version, the capabilities and the name of the client in _meta."""
    for asked in clients.stateless(record):
        meta = object_in(asked.value, "params", "_meta")
        for clause, name in (
            ("client-meta-version", "protocolVersion"),
            ("client-meta-capabilities", "clientCapabilities"),
            ("client-meta-client-info", "clientInfo"),
        ):
            actual = f"{brief(asked.method)} without {META}{name}"
            yield Seen(clause, META + name in meta, asked.line, META + name, actual)


EXTENDED = frozenset({"tasks/get", "tasks/cancel"})
"""Methods that an extension of 2026-07-28 has again."""


@ambient("client-removed-methods")
def uses_no_method_that_is_gone(record: Record) -> Iterator[Seen]:
    """Messages of 2026-07-28 have no method that only earlier revisions had."""
    if not is_modern(record.revision):
        return
    known = {part: set(clients.SCHEMAS.methods(record.revision, part)) for part in KINDS.values()}
    old = {m for r in LEGACY for part in KINDS.values() for m in clients.SCHEMAS.methods(r, part)}
    gone = old - set().union(*known.values()) - EXTENDED - {"initialize"}
    for entry, message in record.messages(*KINDS):
        actual = f"{brief(message.method)}, which {record.revision} does not have"
        passed = message.method not in gone
        clause, expected = "client-removed-methods", f"a method of {record.revision}"
        yield Seen(clause, passed, entry.n, expected, actual)


@parts.scenario("newer")
class Newer(parts.Part):
    """Speak only a revision that is newer than 2026-07-28."""

    modern = may_fail = True
    steps = ()

    def serve(self, request: parts.Json) -> None:
        """Answer a request."""
        named = value_in(request, "params", "_meta", parts.VERSION)
        data = {"supported": ["2099-01-01"], "requested": named}
        self.refuse(request, parts.UNSUPPORTED, "Unsupported protocol version", **data)


@ambient("client-selects-supported-version")
def selects_a_supported_version(record: Record) -> Iterator[Seen]:
    """After a version was refused, requests name one of the supported versions."""
    for asked in clients.stateless(record):
        found = clients.answer(record, asked)
        if found is None or found[1].code != parts.UNSUPPORTED:
            continue
        supported = object_in(found[1].value, "error", "data").get("supported")
        later = [one for one in clients.peer(record).session.asked if one.line > found[0].n]
        clause = "client-selects-supported-version"
        fell = clients.event(record, Happened.FELL_BACK)
        if fell and not later and isinstance(supported, list) and not set(supported) & {*LEGACY}:
            expected = f"one of {brief(supported)}, or none"
            yield Seen(clause, False, found[0].n, expected, fell.text)
        if not isinstance(supported, list) or not later:
            continue
        first = later[0]
        version = object_in(first.value, "params", "_meta").get(clients.VERSION)
        version = version or object_in(first.value, "params").get("protocolVersion")
        expected = f"one of {brief(supported)}"
        actual = f"{brief(first.method)} with {brief(version)}"
        yield Seen(clause, version in supported, first.line, expected, actual)


@ambient("client-no-responses")
def writes_no_responses(record: Record) -> Iterator[Seen]:
    """In 2026-07-28 the client writes requests and notifications only."""
    for entry, message in record.messages():
        response = message.kind in {Kind.RESULT, Kind.ERROR}
        actual = "a response"
        yield Seen("client-no-responses", not response, entry.n, "no response", actual)


def _refers(url: str) -> parts.Json:
    """Return a schema that refers to a URL."""
    return {"type": "object", "properties": {"sum": {"$ref": url}}}


@parts.scenario("schema-ref", official="json-schema-ref-no-deref")
class SchemaRef(parts.Part):
    """List tools whose schemas refer to an address and a file of ours, which nobody may fetch."""

    modern = may_fail = True
    steps = (
        {"list": "tools"},
        {"call": "add_numbers", "a": 2, "b": 3, "fails": True},
        {"call": "add_files", "a": 2, "b": 3, "fails": True},
    )

    def tools(self, params: parts.Json) -> parts.Json | None:
        """Return tools with such an outputSchema, and one with such an inputSchema."""
        del params
        far = _refers(f"{self.canary}{CANARY}")
        near = _refers(self.bait) if self.bait else {"type": "object"}
        return {
            "tools": [
                {**parts.NUMBERS, "outputSchema": far},
                {**parts.NUMBERS, "name": "add_files", "outputSchema": near},
                {"name": "far", "inputSchema": far},
                {"name": "near", "inputSchema": near},
            ]
        }

    def call(self, request: parts.Json) -> None:
        """Answer with what a client validates by the outputSchema."""
        self.answer(request, {**self.text('{"sum": 5}'), "structuredContent": {"sum": 5}})


parts.variant(
    "schema-ref-session",
    SchemaRef,
    "List tools whose schemas refer to an address and a file of ours, with a session.",
    modern=False,
    official="json-schema-ref-no-deref",
)


@ambient("client-ref-not-fetched")
def fetches_no_reference_of_a_schema(record: Record) -> Iterator[Seen]:
    """A $ref to the network, or to a file, in a schema of a tool is not fetched."""
    clause, expected = "client-ref-not-fetched", "no use of the address in the schema"
    named = tuple(f"{Happened.FETCHED}{one}" for one in (f"/{CANARY}", f"file:{parts.BAIT}"))
    events = record.transcript.events(Happened.FETCHED)
    fetched = [entry for entry in events if entry.text.startswith(named)]
    for entry in fetched:
        is_file = entry.text.endswith(parts.BAIT)
        mild = None if is_modern(record.revision) and not is_file else Breach.WARN
        yield Seen(clause, False, entry.n, expected, entry.text, mild=mild)
    if not fetched:
        for asked in clients.requests(record):
            listed = clients.result(record, asked).get("tools")
            if '"$ref": "http' in brief(listed, 10_000):
                yield Seen(clause, True)
