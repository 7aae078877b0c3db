"""Any JSON in the lists, schemas and capabilities of a server is handled without an exception."""

import json
from itertools import islice
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcp_touchstone.bindings.argument_roles import assemble, dry_run, slots, texts
from mcp_touchstone.bindings.call_variants import more_ways
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.needs import CAPABILITIES, FLAGS, WORDS
from mcp_touchstone.catalog.scenario import Share
from mcp_touchstone.connection.server_profile import (
    LISTS,
    Example,
    Request,
    ServerProfile,
    Spoken,
    is_read_only,
    may_be_task,
    required_arguments,
)
from mcp_touchstone.discovery.probe_features import find_calls, find_prompts, find_reads
from mcp_touchstone.discovery.probe_traffic import may_last
from mcp_touchstone.discovery.prober import Prober
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.samples.from_schema import (
    Places,
    candidates,
    form,
    incomplete,
    mistyped,
    required,
    slowed,
)
from mcp_touchstone.transport.process import LaunchError
from mcp_touchstone.wire.framing import Line, brief, read
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.schema_dialect import LATEST, allows, dialect_of, violations

KEYWORDS = [
    "type",
    "properties",
    "required",
    "items",
    "allOf",
    "anyOf",
    "oneOf",
    "enum",
    "const",
    "default",
    "examples",
    "$ref",
    "$defs",
    "$schema",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "delay",
    "path",
    "seconds",
    "a",
]
TYPES = ["object", "string", "integer", "number", "array", "boolean", "null", "#", "#/$defs/a", ""]
NUMBERS: st.SearchStrategy[Any] = st.one_of(
    st.integers(-3, 3), st.just(10**400), st.floats(allow_nan=False), st.sampled_from([5e-324])
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    st.sampled_from(TYPES),
    st.text(max_size=4),
    st.sampled_from(["^(a|b)+$", "[", "(", "a{1000}{1000}", "\\", "{x}", "file:///{path}"]),
)
JSON = st.recursive(
    LEAVES,
    lambda below: st.one_of(
        st.lists(below, max_size=4), st.dictionaries(st.sampled_from(KEYWORDS), below, max_size=5)
    ),
    max_leaves=12,
)
MEMBERS = [
    "uri",
    "uriTemplate",
    "title",
    "inputSchema",
    "outputSchema",
    "annotations",
    "execution",
    "arguments",
    "icons",
    "mimeType",
    "_meta",
]
ITEMS = st.one_of(
    JSON,
    st.fixed_dictionaries(
        {"name": st.one_of(st.sampled_from(["echo", "wait"]), JSON)},
        optional=dict.fromkeys(MEMBERS, JSON),
    ),
    st.fixed_dictionaries(
        {
            "name": st.just("wait"),
            "inputSchema": st.fixed_dictionaries(
                {
                    "type": st.one_of(st.just("object"), JSON),
                    "properties": st.one_of(st.dictionaries(st.sampled_from(KEYWORDS), JSON), JSON),
                    "required": st.one_of(st.lists(st.sampled_from(KEYWORDS)), JSON),
                }
            ),
            "annotations": st.just({"readOnlyHint": True}),
        }
    ),
)


def sent_over_the_wire(value: Any) -> Any:
    """Return a value as it arrives over the wire."""
    raw = json.dumps(value).encode()
    reading = read(Line(raw, len(raw)))
    return reading.value if reading.readable else None


@given(JSON)
def test_schema_functions_accept_any_json_value(value: Any) -> None:
    schema = sent_over_the_wire(value)

    for made in (*candidates(schema), {"a": 1}):
        incomplete(schema, made)
        mistyped(schema, made)
        slowed(schema, made, 2.0)
    json.dumps(form(schema))
    required(schema)
    violations(schema, dialect_of(schema) or LATEST)
    allows(schema, {"a": 1})
    brief(schema)


@given(st.lists(ITEMS, max_size=3), JSON)
def test_server_profile_accepts_any_json_in_server_lists(items: list[Any], result: Any) -> None:
    items, result = sent_over_the_wire(items), sent_over_the_wire(result)
    answer = result if isinstance(result, dict) else {"capabilities": result}
    opening = Reply(1, 2, {"result": answer})
    spoken = Spoken(opening, dict.fromkeys(LISTS, items))
    profile = ServerProfile(Pace(1.0), {rev.LATEST_LEGACY: spoken, rev.LATEST_MODERN: spoken})

    for need in (*WORDS, *CAPABILITIES, *(f"tools.{flag}" for flag in FLAGS), "tasks.list"):
        profile.lacks((need,), rev.LATEST_LEGACY)
        profile.why(need, rev.LATEST_MODERN)
    for known in (
        spoken.harmless,
        spoken.plain_prompts,
        spoken.completable,
        spoken.versions,
        spoken.extensions,
        spoken.server_info,
        spoken.list_methods,
        profile.name,
    ):
        brief(known)
    for item in spoken.items("tools"):
        is_read_only(item)
        may_be_task(item)
        may_last(item)
        required_arguments(item)
        str(Request("tools/call", item))
        example = Example("tools/call", item, item=item)
        brief([example.name, example.arguments, example.schema])
    for tool in spoken.items("tools"):
        slots(tool.get("inputSchema"))
        texts(tool.get("inputSchema"))
        dry_run(tool.get("inputSchema"))
        if isinstance(tool.get("name"), str):
            for way in islice(more_ways(tool, listed=["a"]), 20):
                values = dict.fromkeys((slot.pointer for slot in way.slots), "x")
                assemble(tool.get("inputSchema"), values, Places())


class UnavailableProcesses:
    """Shared processes that cannot be started."""

    def get(self, *_: object) -> Any:
        raise LaunchError("none")

    replace = get


@given(st.lists(ITEMS, max_size=3))
def test_discovery_accepts_any_json_in_server_lists(items: list[Any]) -> None:
    spoken = Spoken(Reply(1), dict.fromkeys(LISTS, sent_over_the_wire(items)))
    where = UnavailableProcesses(), Share.ORDINARY
    for find in (find_calls, find_reads, find_prompts):
        find(Prober(rev.LATEST_LEGACY, spoken, *where, trusted=frozenset({"wait", "echo"})))
