"""clients/stateless: what requests of 2026-07-28 carry, and references in schemas."""

from collections.abc import Iterator

from mcp_touchstone.suite import (
    LEGACY,
    META,
    Happened,
    Kind,
    Record,
    Seen,
    ambient,
    brief,
    clients,
    is_modern,
    object_in,
    parts,
    value_in,
)

CANARY = "canary.json"
"""What nobody may fetch."""

parts.variant(
    "stateless",
    parts.Part,
    "List the tools and call one, in 2026-07-28.",
    modern=True,
    official="http-standard-headers",
)


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
    """The client writes requests and notifications only."""
    for entry, message in record.messages():
        response = message.kind in {Kind.RESULT, Kind.ERROR}
        actual = "a response"
        yield Seen("client-no-responses", not response, entry.n, "no response", actual)


@parts.scenario("schema-ref", official="json-schema-ref-no-deref")
class SchemaRef(parts.Part):
    """List a tool whose schema refers to an address of ours, which nobody may fetch."""

    modern = True

    def tools(self, params: parts.Json) -> parts.Json | None:
        """Return the tool and a harmless one."""
        del params
        schema = {"type": "object", "properties": {"a": {"$ref": f"{self.canary}{CANARY}"}}}
        return {"tools": [parts.NUMBERS, {"name": "far", "inputSchema": schema}]}


@ambient("client-ref-not-fetched")
def fetches_no_reference_of_a_schema(record: Record) -> Iterator[Seen]:
    """A $ref to the network in a schema of a tool is not fetched."""
    clause, expected = "client-ref-not-fetched", "no request to the address in the schema"
    fetched = [
        entry
        for entry in record.transcript
        if entry.happened is Happened.FETCHED
        and entry.text.removeprefix(Happened.FETCHED).startswith(f"/{CANARY}")
    ]
    for entry in fetched:
        yield Seen(clause, False, entry.n, expected, entry.text)
    if not fetched and is_modern(record.revision):
        for asked in clients.requests(record):
            listed = clients.result(record, asked).get("tools")
            if '"$ref": "http' in brief(listed, 10_000):
                yield Seen(clause, True)
