"""The compact schemas: valid and invalid messages, and the clauses that count their flaws.

``test_schema_official`` compares them with other validators; ``test_shapes`` tests which schema a
message is validated with.
"""

import copy
import functools
import json
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Level
from mcp_touchstone.catalog.loader import home, load
from mcp_touchstone.judging.schema_rules import SCHEMAS
from mcp_touchstone.wire.schema import surely_fits
from mcp_touchstone.wire.schema_refs import COUNTED_BY, JUDGING
from tests.cases import cases
from tests.schema_cases import FULL, LEGACY, MODERN, Case, Json, places, put, spoilt_once

pytestmark = pytest.mark.slow

FOLDER: Final = home() / "conformance" / "schemas"
CATALOGUE: Final = load().catalogue
NUMBERS: Final = (True, 1, 1.0, 1.5, -1, Decimal("1.5"), Decimal(10) ** 4100)
"""Values that JSON Schema, JSON and Python hold apart in different ways."""

PARTS: Final = ("results", "input_required", "tasks", "notifications", "requests", "errors")


def flaws_in(revision: str, part: str, method: str, value: Any) -> list[str]:
    return [flaw.text for flaw in SCHEMAS.flaws(revision, part, method, value)]


def counted(revision: str, part: str, method: str, value: Any) -> set[str]:
    """Return the clauses that count the flaws of a message; empty for the general rule alone."""
    return {flaw.clause for flaw in SCHEMAS.flaws(revision, part, method, value)}


def counted_by(revision: str) -> set[str]:
    """Return the clauses named by ``counted-by`` in the schemas of a revision."""
    return set().union(
        *(
            named_in(revision, part, method)
            for part in PARTS
            for method in SCHEMAS.methods(revision, part)
        )
    )


@functools.cache
def named_in(revision: str, part: str, method: str) -> frozenset[str]:
    """Return the clauses named by ``counted-by`` in one schema."""
    whole = SCHEMAS.expanded(revision, part, method)
    return frozenset(
        clause for schema in objects(whole) for clause in schema.get(COUNTED_BY, {}).values()
    )


def name_of(case: Case) -> str:
    return " ".join(case[:3])


def file_of(revision: str) -> Json:
    return SCHEMAS._file(revision)


@pytest.mark.parametrize("revision", rev.ALL)
def test_each_schema_file_is_valid_json_schema(revision: str) -> None:
    for part in PARTS:
        for method in SCHEMAS.methods(revision, part):
            Draft202012Validator.check_schema(SCHEMAS.expanded(revision, part, method))
    file = file_of(revision)
    assert file["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    assert file.keys() <= {"$schema", "$comment", "$defs", *PARTS}


@pytest.mark.parametrize("revision", rev.ALL)
def test_each_definition_is_used(revision: str) -> None:
    text = json.dumps(file_of(revision))

    unused = [name for name in file_of(revision)["$defs"] if f'"#/$defs/{name}"' not in text]

    assert unused == []


@pytest.mark.parametrize("revision", rev.ALL)
def test_each_schema_file_has_the_standard_layout(revision: str) -> None:
    """A value that fits on a line is on one line."""
    text = (FOLDER / f"{revision}.json").read_text(encoding="utf-8")

    assert laid_out(json.loads(text)) + "\n" == text


def laid_out(value: Any, indent: int = 0, used: int = 0) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or used + len(flat) < 100:
        return flat
    pad = " " * (indent + 2)
    keys = [f"{pad}{json.dumps(key)}: " for key in value] if isinstance(value, dict) else None
    heads = keys or [pad] * len(value)
    ones = value.values() if isinstance(value, dict) else value
    rows = [h + laid_out(o, indent + 2, len(h)) for h, o in zip(heads, ones, strict=True)]
    left, right = "{}" if isinstance(value, dict) else "[]"
    return left + "\n" + ",\n".join(rows) + "\n" + " " * indent + right


def test_samples_cover_every_schema() -> None:
    assert {case[:3] for case in FULL} == {
        (revision, part, method)
        for revision in rev.ALL
        for part in PARTS
        for method in SCHEMAS.methods(revision, part)
    }


@pytest.mark.parametrize("case", FULL, ids=name_of)
def test_full_messages_are_accepted(case: Case) -> None:
    assert flaws_in(*case) == []


@pytest.mark.parametrize("revision", rev.ALL)
def test_quick_check_accepts_only_what_the_library_accepts(revision: str) -> None:
    accepted = refused = 0
    for case in (case for case in FULL if case.revision == revision):
        fits, library = surely_fits(SCHEMAS._schema(*case[:3])), SCHEMAS._validator(*case[:3])
        strange = (put(case.value, place, one) for place in places(case.value) for one in NUMBERS)
        for value in (case.value, *spoilt_once(case.value), *strange):
            if fits(value):
                assert list(library.iter_errors(value)) == [], (case[:3], value)
                accepted += 1
            else:
                refused += 1

    assert min(accepted, refused) > 100, "it decides something"


@pytest.mark.parametrize("case", FULL, ids=name_of)
def test_unknown_members_are_accepted(case: Case) -> None:
    widened = copy.deepcopy(case.value)
    for place in [*objects(widened)]:
        place["x-unknown"] = [None]

    allowed = {flaw for flaw in flaws_in(*case[:3], widened) if "x-unknown" not in flaw}

    assert allowed == set()


def objects(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for one in value if isinstance(value, list) else ():
        yield from objects(one)


def call(*content: Any, **more: Any) -> Json:
    return {"content": list(content), **more}


def tool(**more: Any) -> Json:
    return {"tools": [{"name": "t", "inputSchema": {"type": "object"}, **more}]}


NO_SCHEMA: Final = {"tools": [{"name": "t"}]}
AUDIO: Final = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
LINK: Final = {"type": "resource_link", "uri": "a:b", "name": "n"}
DONE: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}

GOOD: Final = [
    ("2024-11-05", "tools/list", tool(annotations=5, title=5, outputSchema=[], icons=0)),
    ("2024-11-05", "tools/call", call(structuredContent=[])),
    ("2025-03-26", "tools/list", tool(outputSchema=[], icons=0, execution=None)),
    ("2025-06-18", "tools/list", tool(icons=0, execution=None)),
    (MODERN, "tools/call", call(structuredContent=None, resultType="complete")),
    (MODERN, "tools/list", {**tool(outputSchema={"type": "array"}), **DONE}),
    (MODERN, "tools/list", {**tool(execution=5), **DONE}),
    ("2024-11-05", "resources/read", {"contents": [{"uri": "a:", "text": 5, "blob": ""}]}),
]


@pytest.mark.parametrize(("revision", "method", "result"), GOOD)
def test_valid_results_are_accepted(revision: str, method: str, result: Json) -> None:
    assert flaws_in(revision, "results", method, result) == []


INFO: Final = "io.modelcontextprotocol/serverInfo"
TEXT_OR_BLOB: Final = "contents with a string text or contents with a string blob"

BAD: Final = [
    (
        LEGACY,
        "tools/list",
        tool(inputSchema={"type": "array"}),
        'result.tools[0].inputSchema.type: "array" is not "object"',
    ),
    (LEGACY, "tools/list", NO_SCHEMA, "result.tools[0].inputSchema: is missing"),
    (LEGACY, "tools/list", {}, "result.tools: is missing"),
    (
        LEGACY,
        "tools/list",
        tool(description=None),
        "result.tools[0].description: null is null, not a string",
    ),
    (
        LEGACY,
        "tools/list",
        tool(execution={"taskSupport": "maybe"}),
        (
            'result.tools[0].execution.taskSupport: "maybe" is none of "forbidden", "optional", '
            '"required"'
        ),
    ),
    (
        "2025-03-26",
        "tools/list",
        tool(annotations={"readOnlyHint": "yes"}),
        'result.tools[0].annotations.readOnlyHint: "yes" is a string, not a boolean',
    ),
    (LEGACY, "tools/call", call({"text": "t"}), "result.content[0].type: is missing"),
    (LEGACY, "tools/call", call("t"), 'result.content[0]: "t" is a string, not an object'),
    (LEGACY, "tools/call", call({"type": "text"}), "result.content[0].text: is missing"),
    (
        "2024-11-05",
        "tools/call",
        call(AUDIO),
        'result.content[0].type: "audio" is none of "text", "image", "resource"',
    ),
    (
        "2025-03-26",
        "tools/call",
        call(LINK),
        'result.content[0].type: "resource_link" is none of "text", "image", "audio", "resource"',
    ),
    (
        LEGACY,
        "tools/call",
        call(structuredContent=[]),
        "result.structuredContent: [] is an array, not an object",
    ),
    (
        LEGACY,
        "resources/read",
        {"contents": [{"uri": "a:"}]},
        'result.contents[0]: {"uri": "a:"} is not ' + TEXT_OR_BLOB,
    ),
    (
        LEGACY,
        "resources/read",
        {"contents": [{"uri": "a:", "text": 5}]},
        "result.contents[0].text: 5 is a number, not a string",
    ),
    (
        LEGACY,
        "prompts/get",
        {"messages": [{"role": "system", "content": {"type": "text", "text": ""}}]},
        'result.messages[0].role: "system" is none of "user", "assistant"',
    ),
    (
        LEGACY,
        "resources/list",
        {"resources": [{"uri": "a:", "name": "n", "annotations": {"priority": 2}}]},
        "result.resources[0].annotations.priority: 2 is more than 1",
    ),
    (
        MODERN,
        "completion/complete",
        {"resultType": "complete", "completion": {"values": ["v"] * 101}},
        f"result.completion.values: {json.dumps(['v'] * 101)[:39]}… holds 101 items, more than 100",
    ),
    (
        MODERN,
        "prompts/list",
        {"prompts": [], **DONE, "cacheScope": "world"},
        'result.cacheScope: "world" is none of "public", "private"',
    ),
    (
        MODERN,
        "tools/call",
        call(resultType="complete", _meta={INFO: {"name": "n", "version": "1", "title": 5}}),
        'result._meta["io.modelcontextprotocol/serverInfo"].title: 5 is a number, not a string',
    ),
]


@pytest.mark.parametrize(("revision", "method", "result", "flaw"), BAD)
def test_invalid_results_are_refused(revision: str, method: str, result: Json, flaw: str) -> None:
    assert flaws_in(revision, "results", method, result) == [flaw]
    assert not next(SCHEMAS.flaws(revision, "results", method, result)).mild


@cases(
    ("progress", {"progressToken": 1}, "params.progress: is missing"),
    ("message", {"level": "loud", "data": 1}, None),
    ("message", {"level": "info"}, "params.data: is missing"),
    ("resources/updated", {}, "params.uri: is missing"),
)
def test_invalid_notifications_are_refused(method: str, params: Json, flaw: str | None) -> None:
    name = f"notifications/{method}"
    for revision in rev.ALL:
        found = flaws_in(revision, "notifications", name, {"method": name, "params": params})
        assert found == [flaw or LOUD]


LOUD: Final = (
    'params.level: "loud" is none of "debug", "info", "notice", "warning", "error", "critical", '
    '"alert", "emergency"'
)


@cases(
    ("resources/list", {"resources": [{"uri": "no uri", "name": "n"}]}),
    ("resources/list", {"resources": [{"uri": "a:", "name": "n", "size": 1.5}]}),
    ("resources/read", {"contents": [{"uri": "a:", "blob": "%%%"}]}),
    ("completion/complete", {"completion": {"values": [], "total": float("inf")}}),
    ("tools/list", tool(inputSchema={"type": "object", "properties": {"a": True}})),
)
def test_flaws_allowed_by_schema_ts_are_mild(method: str, result: Json) -> None:
    assert [flaw.mild for flaw in SCHEMAS.flaws(LEGACY, "results", method, result)] == [True]


@cases(
    ({"a": {}}, ".a.type: is missing"),
    ({"a": {"type": "object"}}, None),
    ({"a": {"type": ["string"]}}, None),
    (
        {"a": {"type": "array"}},
        '.a: {"type": "array"} is not a multiple choice or a titled multiple choice',
    ),
    ({"a": {"type": "string", "format": "phone"}}, None),
    ({"a": {"type": "string", "format": "phone", "enum": ["b"]}}, ""),
    ({"a": {"type": "string", "enum": [5]}}, ""),
    ({"a": {"type": "string", "default": 5}}, ".a.default: 5 is a number, not a string"),
    ({"a": True}, ".a: true is a boolean, not an object"),
)
def test_elicitation_forms_must_be_flat(properties: Json, flaw: str | None) -> None:
    """The flaw None is any text; an enum may have any format."""
    params = {"message": "m", "requestedSchema": {"type": "object", "properties": properties}}

    found = flaws_in(LEGACY, "requests", "elicitation/create", {"params": params})

    if flaw:
        assert found == [f"params.requestedSchema.properties{flaw}"]
    else:
        assert len(found) == (flaw is None)


def test_importing_the_cli_does_not_import_jsonschema() -> None:
    code = (
        "import sys; from mcp_touchstone.catalog.loader import load; load(); "
        "from mcp_touchstone import cli; sys.exit('jsonschema' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


ACCEPTED: Final = "it is on what a server accepts"
EXTENSION: Final = "the schema of an extension"
WITHOUT_A_NODE: Final = {
    "completion-context-accepted": ACCEPTED,
    "completion-resource-ref-forms": ACCEPTED,
    "discover-supported-versions-current": "it compares with the request",
    "completion-listed-argument": ACCEPTED,
    "tools-input-schema-complete": ACCEPTED,
    "elicitation-complete-removed": "no schema has what is gone",
    "ping-removed": "the same",
    "jsonrpc-batch-send": "before 2025-06-18 there is nothing else to say",
    "pagination-terminates": "it follows the pages",
    "pagination-own-cursor-accepted": ACCEPTED,
    "cards-document": EXTENSION,
    "cards-version-exact": EXTENSION,
    "exttasks-task-shape": EXTENSION,
    "apps-resource-meta-shape": EXTENSION,
    "apps-tool-meta-shape": EXTENSION,
    "skills-directory-setting": EXTENSION,
    "skills-directory-shape": EXTENSION,
    "skills-entry-shape": EXTENSION,
    "skills-result-shape": EXTENSION,
    "lifecycle-open-client-capabilities": ACCEPTED,
    "logging-request-level-accepted": ACCEPTED,
    "logging-set-level-accepted": ACCEPTED,
    "logging-set-level-removed": ACCEPTED,
    "meta-client-info-optional": ACCEPTED,
    "prompts-get-omitted-arguments": ACCEPTED,
    "resources-subscribe-removed": ACCEPTED,
    "resources-subscribe-result": "any object will do",
    "resources-template-rfc6570": "a grammar",
    "schema-result-conformance": "it is the rule on them all",
    "server-list-requests-accept-no-params": ACCEPTED,
    "tools-call-omitted-arguments": ACCEPTED,
    "tools-input-schema-valid-any-dialect": "before outputSchema there is nothing else to say",
}
"""Clauses of level SCHEMA that the schemas of a revision do not name, and why."""


def test_every_schema_clause_is_named_in_the_schemas_of_its_revisions() -> None:
    missing = {
        clause.id
        for clause in CATALOGUE
        if clause.level is Level.SCHEMA
        for revision in clause.revisions
        if clause.id not in counted_by(revision)
    }

    assert missing == {*WITHOUT_A_NODE}


@pytest.mark.parametrize("revision", rev.ALL)
def test_counted_by_names_observable_clauses_of_the_revision(revision: str) -> None:
    for clause in counted_by(revision):
        assert revision in CATALOGUE[clause].revisions, clause
        assert not CATALOGUE[clause].unobservable, clause


@pytest.mark.parametrize("revision", rev.ALL)
def test_every_counted_clause_is_reached_by_a_single_fault(revision: str) -> None:
    """A word in counted-by that never decides anything is a mistake."""
    missing = counted_by(revision)
    for case in sorted(FULL, key=lambda case: len(str(case.value))):
        if case.revision == revision and missing & named_in(*case[:3]):
            for value in (5, too_many(case.value), *spoilt_once(case.value)):
                missing -= counted(*case[:3], value)
                if not missing & named_in(*case[:3]):
                    break

    assert missing == set()


def too_many(value: Json) -> Json:
    return {**value, "completion": {"values": ["v"] * 101}}


@pytest.mark.parametrize("revision", rev.ALL)
def test_counted_by_words_refer_to_clauses_and_present_keywords(revision: str) -> None:
    definitions = file_of(revision)["$defs"]
    for schema in objects(definitions):
        words = schema.get(COUNTED_BY, {})
        base = definitions.get(schema.get("$ref", "").removeprefix("#/$defs/"), {})
        for word, clause in words.items():
            assert clause == "" or clause in CATALOGUE, schema
            if "-" in word:
                assert word in json.dumps(definitions), schema
            elif "*" not in word:
                assert word in JUDGING & {*schema, *base}, schema


def error(**data: Any) -> Json:
    return {"code": -32042, "message": "m", "data": data}


def prompt(content: Any) -> Json:
    return {"messages": [{"role": "user", "content": content}]}


def asked(**params: Any) -> Json:
    return {"id": 1, "params": params}


def sampled(content: Any) -> Json:
    return asked(messages=[{"role": "user", "content": content}], maxTokens=5)


def elicited(**properties: Any) -> Json:
    return asked(message="m", requestedSchema={"type": "object", "properties": properties})


def interim(**requests: Any) -> Json:
    return {"resultType": "input_required", "inputRequests": requests}


TEXT: Final = {"type": "text", "text": 5}
IMAGE: Final = {"type": "image", "data": "%", "mimeType": "image/png"}
BLOB: Final = {"type": "resource", "resource": {"uri": "a:", "blob": "%"}}
ASTRAY: Final = {"type": "resource", "resource": {"uri": "a b", "text": ""}}
CALL: Final = ("results", "tools/call")
SAMPLE: Final = ("requests", "sampling/createMessage")
ELICIT: Final = ("requests", "elicitation/create")
OLD: Final = "2025-06-18"

COUNTED: Final = [
    # the same block at each place
    (LEGACY, *CALL, call(TEXT), "server-text-content-shape"),
    (LEGACY, "results", "prompts/get", prompt(TEXT), "server-text-content-shape"),
    (LEGACY, *SAMPLE, sampled(TEXT), "sampling-message-shape"),
    (OLD, *SAMPLE, sampled(TEXT), "sampling-message-shape-2025-03-26"),
    (LEGACY, *CALL, call(IMAGE), "server-binary-content-base64"),
    (LEGACY, "results", "prompts/get", prompt(IMAGE), "prompts-image-base64-mime"),
    (LEGACY, *SAMPLE, sampled(IMAGE), "sampling-message-shape"),
    (LEGACY, *CALL, call(BLOB), "server-binary-content-base64"),
    (LEGACY, "results", "prompts/get", prompt(BLOB), "prompts-embedded-resource-fields"),
    (
        LEGACY,
        "results",
        "resources/read",
        {"contents": [BLOB["resource"]]},
        "resources-binary-encoded",
    ),
    (LEGACY, *CALL, call(ASTRAY), "server-embedded-resource-shape"),
    (LEGACY, "results", "prompts/get", prompt(ASTRAY), "prompts-embedded-resource-fields"),
    (
        LEGACY,
        "results",
        "resources/read",
        {"contents": [ASTRAY["resource"]]},
        "resources-uri-has-scheme",
    ),
    (
        LEGACY,
        *CALL,
        call({"type": "resource", "resource": {"uri": "a:"}}),
        "server-embedded-resource-shape",
    ),
    (LEGACY, *CALL, call(5), "server-content-block-types"),
    (LEGACY, "results", "prompts/get", prompt(5), "prompts-message-shape"),
    (LEGACY, "results", "prompts/get", prompt({"type": "tool_use"}), "server-content-block-types"),
    (LEGACY, *CALL, call({"type": "text", "text": "", "annotations": 5}), ""),
    (
        LEGACY,
        *CALL,
        call({"type": "text", "text": "", "annotations": {"priority": "high"}}),
        "server-annotations-priority-range",
    ),
    (LEGACY, *CALL, call({"type": "text", "text": "", "_meta": 5}), "meta-object"),
    (LEGACY, *CALL, call({"type": "text", "text": "", "_meta": "a=1"}), "meta-object"),
    (
        LEGACY,
        *SAMPLE,
        sampled([{"type": "text", "text": "", "_meta": "a=1"}]),
        "sampling-message-shape",
    ),
    # a tool
    (LEGACY, "results", "tools/list", NO_SCHEMA, "tools-definition-shape"),
    (LEGACY, "results", "tools/list", {"tools": [5]}, "tools-definition-shape"),
    (LEGACY, "results", "tools/list", tool(inputSchema=None), "tools-input-schema-not-null"),
    (OLD, "results", "tools/list", tool(inputSchema=None), "tools-definition-shape"),
    (LEGACY, "results", "tools/list", tool(inputSchema={}), "tools-input-schema-type-object"),
    (LEGACY, "results", "tools/list", tool(outputSchema={}), "tools-output-schema-object-root"),
    (
        LEGACY,
        "results",
        "tools/list",
        tool(outputSchema={"type": "object", "required": 5}),
        "schema-valid-for-dialect",
    ),
    (
        LEGACY,
        "results",
        "tools/list",
        tool(outputSchema={"type": "object", "properties": {"a": True}}),
        "",
    ),
    (LEGACY, "results", "tools/list", tool(icons=[{"src": 5}]), "schema-icon-shape"),
    (LEGACY, "results", "tools/list", tool(execution=5), "tasks-tool-support-values"),
    (
        LEGACY,
        *SAMPLE,
        asked(messages=[], maxTokens=1, tools=[{"name": "t", "icons": 5}]),
        "sampling-tool-definitions-shape",
    ),
    # what is asked of the client
    (LEGACY, *ELICIT, elicited(a={"type": "object"}), "elicitation-form-schema-primitive"),
    (OLD, *ELICIT, elicited(a={"type": "array"}), "elicitation-form-schema-primitive-2025-06-18"),
    (
        LEGACY,
        *ELICIT,
        elicited(a={"type": "boolean", "default": "yes"}),
        "elicitation-default-types",
    ),
    (LEGACY, *ELICIT, elicited(a={"type": "string", "minLength": "1"}), "schema-valid-for-dialect"),
    (OLD, *ELICIT, elicited(a={"type": "string", "minLength": "1"}), ""),
    (LEGACY, *ELICIT, asked(mode="popup", message="m"), "elicitation-form-params-shape"),
    (LEGACY, *ELICIT, {"id": 1}, "elicitation-form-params-shape"),
    (LEGACY, *ELICIT, {"id": 1, "params": []}, "jsonrpc-params-object"),
    (LEGACY, "errors", "-32042", error(elicitations=[{}]), "elicitation-url-required-error-shape"),
    (MODERN, "input_required", "tools/call", interim(a={"method": "ping"}), "mrtr-request-kinds"),
    (
        MODERN,
        "input_required",
        "tools/call",
        interim(a={"method": "elicitation/create"}),
        "mrtr-request-kinds",
    ),
    (
        MODERN,
        "input_required",
        "tools/call",
        interim(a={"method": "roots/list", "params": 5}),
        "roots-list-request-shape",
    ),
    # the rest
    (
        LEGACY,
        "results",
        "initialize",
        {
            "protocolVersion": LEGACY,
            "serverInfo": {"name": "n", "version": "1"},
            "capabilities": {"tasks": {"requests": {"tools": 5}}},
        },
        "tasks-capability-shape",
    ),
    (
        LEGACY,
        "results",
        "tasks/list",
        {"tasks": [], "nextCursor": 5},
        "pagination-next-cursor-string",
    ),
    (LEGACY, "tasks", "tools/call", {"task": 5}, "tasks-create-result"),
    (LEGACY, "tasks", "tools/call", {"task": {}}, "tasks-task-shape"),
    (
        LEGACY,
        "notifications",
        "notifications/tasks/status",
        {"params": {}},
        "tasks-status-notification-shape",
    ),
    (
        MODERN,
        "notifications",
        "notifications/progress",
        {
            "params": {
                "progressToken": 1,
                "progress": 1,
                "_meta": {"io.modelcontextprotocol/subscriptionId": None},
            }
        },
        "subscriptions-id-only-on-stream",
    ),
    (
        MODERN,
        "notifications",
        "notifications/tools/list_changed",
        {"params": {"_meta": {"io.modelcontextprotocol/subscriptionId": None}}},
        "subscriptions-id-in-meta",
    ),
]


@pytest.mark.parametrize(("revision", "part", "method", "value", "clause"), COUNTED)
def test_single_fault_counts_under_one_clause(
    revision: str, part: str, method: str, value: Any, clause: str
) -> None:
    assert counted(revision, part, method, value) == {clause}
