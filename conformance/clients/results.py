"""clients/results: what a client accepts, what it refuses, and what it keeps.

A client that takes its next step after a result has accepted it: a step that fails ends it.
"""

from collections.abc import Iterator
from typing import ClassVar

from mcp_touchstone.suite import (
    Happened,
    Record,
    Seen,
    ambient,
    brief,
    clients,
    is_modern,
    misfit,
    parts,
    value_in,
)

MORE = "x-touchstone"
COMPLETE = "notifications/elicitation/complete"
CORE = frozenset({"complete", "input_required"})
EXTENDED = frozenset({"task"})
"""Types of results that extensions have."""

LISTS = 3
"""Lists that the scenario cache wants."""


def _goes_on(record: Record, line: int) -> bool | None:
    """Whether the client sent a request after a line in a scenario; None if that is not known.

    A client with several conversations may go on in another one.
    """
    if any(asked.line > line for asked in clients.peer(record).session.asked):
        return True
    return False if clients.event(record, Happened.FAILED) and record.alone else None


@parts.scenario("content")
class Content(parts.Part):
    """Answer with members that no revision has, then name an elicitation that never was."""

    steps = (*parts.Part.steps, *parts.Part.steps[1:] * 2)
    may_fail = True
    calls = 0
    MORE: ClassVar[parts.Json] = {"x-touchstone": [1], "_meta": {"org.example/x": {"y": None}}}

    def tools(self, params: parts.Json) -> parts.Json | None:
        """Return the tools, with more members."""
        return {**(super().tools(params) or {}), **self.MORE}

    def call(self, request: parts.Json) -> None:
        """Answer the first call with more members."""
        self.calls += 1
        result = self.text("5")
        if self.calls == 1:
            result |= self.MORE
        elif "2025-11-25" <= self.revision < "2026-07-28":
            params = {"elicitationId": "never-given"}
            self.say({"method": "notifications/elicitation/complete", "params": params})
        self.answer(request, result)


parts.variant(
    "content-stateless",
    Content,
    "Answer with members that no revision has, in 2026-07-28.",
    modern=True,
)


@ambient("client-further-members", "client-elicitation-unknown")
def goes_on_after_what_it_must_accept(record: Record) -> Iterator[Seen]:
    """Unknown members and an unknown elicitation harm nothing."""
    accepts = []
    for asked in clients.requests(record):
        found = clients.answer(record, asked)
        result = clients.result(record, asked)
        if found is not None and MORE in result:
            accepts.append(("client-further-members", found[0].n))
    heard = ((entry.n, message) for entry in clients.peer(record) for message in entry.messages)
    accepts += [("client-elicitation-unknown", n) for n, m in heard if m.method == COMPLETE]
    for clause, line in accepts if record.scenario else ():
        if (passed := _goes_on(record, line)) is not None:
            yield Seen(clause, passed, line, "the next step", Happened.FAILED)


@parts.scenario("output")
class Output(parts.Part):
    """Answer a call with a structured result that its outputSchema does not allow."""

    steps = parts.TWICE
    may_fail = True

    def tools(self, params: parts.Json) -> parts.Json | None:
        """Return the tool with its outputSchema."""
        del params
        schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
        return {"tools": [{**parts.NUMBERS, "outputSchema": schema}]}

    def call(self, request: parts.Json) -> None:
        """Answer with the wrong type."""
        self.answer(request, {**self.text('{"sum": "5"}'), "structuredContent": {"sum": "five"}})


parts.variant(
    "output-stateless",
    Output,
    "Answer a call with a structured result that its outputSchema forbids, in 2026-07-28.",
    modern=True,
)


@parts.scenario("result-type")
class ResultType(parts.Part):
    """Answer a call of 2026-07-28 with a resultType that no revision and no extension has."""

    modern = True
    steps = parts.TWICE
    may_fail = True

    def call(self, request: parts.Json) -> None:
        """Answer with it."""
        self.answer(request, {**self.text("5"), "resultType": "x-touchstone"})


@ambient("client-output-validated", "client-result-type-unknown")
def refuses_what_it_must_not_accept(record: Record) -> Iterator[Seen]:
    """A structured result fits the outputSchema, and resultType has a known value."""
    schemas: dict[object, object] = {}
    for asked in clients.requests(record) if record.scenario else ():
        found, result = clients.answer(record, asked), clients.result(record, asked)
        schemas |= {
            one.get("name"): one.get("outputSchema") for one in clients.tools(record, asked)
        }
        if found is None or (on := _goes_on(record, found[0].n)) is None:
            continue
        schema = schemas.get(value_in(asked.value, "params", "name"))
        if asked.method == "tools/call" and isinstance(schema, dict):
            wrong = misfit(schema, result.get("structuredContent"))
            if wrong:
                actual = f"the client accepted it: {wrong}"
                clause = "client-output-validated"
                yield Seen(clause, not on, found[0].n, "an error for its user", actual)
        kind = result.get("resultType", "complete")
        if is_modern(record.revision) and kind not in CORE | EXTENDED:
            actual = f"the client accepted resultType {brief(kind)}"
            clause = "client-result-type-unknown"
            yield Seen(clause, not on, found[0].n, "an error for its user", actual)


@parts.scenario("schema", official="json-schema-2020-12-preservation")
class Schema(parts.Part):
    """Offer a tool whose schema has the keywords of JSON Schema 2020-12, and one that takes it."""

    modern = both = True
    RICH, TAKES = "json_schema_2020_12_tool", "json_schema_echo"
    steps = ({"list": "tools"}, {"hand_on": RICH, "to": TAKES})
    SCHEMA: ClassVar[parts.Json] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"place": {"$anchor": "place", "type": "object", "additionalProperties": True}},
        "properties": {
            "kind": {"type": "string", "enum": ["mail", "call"]},
            "number": {"type": ["string", "null"], "default": None},
            "place": {"$ref": "#/$defs/place"},
            "pair": {"type": "array", "prefixItems": [{"const": 1}, {"not": {"type": "null"}}]},
        },
        "dependentRequired": {"number": ["kind"]},
        "allOf": [{"anyOf": [{"required": ["number"]}, {"required": ["place"]}]}],
        "if": {"properties": {"kind": {"const": "call"}}, "required": ["kind"]},
        "then": {"required": ["number"]},
        "else": {"required": ["place"]},
        "unevaluatedProperties": False,
    }

    def tools(self, params: parts.Json) -> parts.Json | None:
        """Return both tools."""
        del params
        takes = {"type": "object", "properties": {"schema": {"type": "object"}}}
        rich = {"name": self.RICH, "inputSchema": self.SCHEMA}
        return {"tools": [rich, {"name": self.TAKES, "inputSchema": takes}]}


@ambient("client-schema-kept")
def hands_a_schema_on_as_it_is(record: Record) -> Iterator[Seen]:
    """A client hands on the inputSchema that it got, with all keywords."""
    for asked in clients.requests(record) if record.scenario == "schema" else ():
        handed = value_in(asked.value, "params", "arguments", "schema")
        if value_in(asked.value, "params", "name") == Schema.TAKES and isinstance(handed, dict):
            differs = [
                name
                for name in sorted({*Schema.SCHEMA, *handed})
                if handed.get(name, handed) != Schema.SCHEMA.get(name, record)
            ]
            expected, actual = "the schema as it was", f"another value of {brief(differs)}"
            yield Seen("client-schema-kept", not differs, asked.line, expected, actual)


@parts.scenario("cache", official="")
class Cache(parts.Part):
    """Say in two ways that a list of 2026-07-28 is stale at once: ttlMs 0, and a negative one."""

    modern = may_fail = True
    steps = ({"list": "tools"},) * 3
    lists = 0

    def tools(self, params: parts.Json) -> parts.Json | None:
        """Return the tools with the next ttlMs."""
        self.lists += 1  # -1, 0, -1
        return {**(super().tools(params) or {}), "ttlMs": -(self.lists % 2)}


@ambient("client-cache-stale")
def asks_again_for_a_stale_list(record: Record) -> Iterator[Seen]:
    """A list with ttlMs 0, or with a negative one, is stale at once."""
    lists = [one for one in clients.requests(record) if one.method == "tools/list"]
    ended = record.alone and clients.event(record, Happened.ENDED)
    if record.scenario == "cache" and ended and lists:  # else it had none to keep
        passed, actual = len(lists) >= LISTS, f"{len(lists)} requests"
        yield Seen("client-cache-stale", passed, lists[-1].line, "a request for each", actual)
