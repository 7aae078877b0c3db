"""The schema chosen for each message, and the findings of the rules on shapes."""

import importlib
import json
import sys
import uuid
import weakref
from typing import Any, Final

import pytest

from mcp_touchstone.catalog.clause import Breach
from mcp_touchstone.catalog.home import NAMESPACE
from mcp_touchstone.catalog.loader import load
from mcp_touchstone.catalog.scenario import Seen
from mcp_touchstone.discovery.recon import ServerProfile
from mcp_touchstone.judging.ambient import Record
from mcp_touchstone.judging.schema_rules import LONGEST, SCHEMAS, each, shapes, typed
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.wire.framing import Line
from mcp_touchstone.wire.schema import ROOM, SHORT
from mcp_touchstone.wire.schema_dialect import DIALECTS, allows, violations
from mcp_touchstone.wire.transcript import Transcript
from tests import schema_samples as samples
from tests.cases import cases
from tests.schema_cases import LEGACY, MODERN, Json

OPENED: Final = ("results", "initialize")
TEXT: Final = {"type": "text", "text": "t"}


class Talk:
    """A transcript written by hand, as a rule sees it."""

    def __init__(self, revision: str) -> None:
        self.transcript = Transcript(revision, lambda: 0.0)
        self.modern = revision == MODERN
        self.record = Record(self.transcript, ServerProfile(Pace(1.0)))

    def ask(self, number: int, method: str, params: Json | None = None) -> None:
        value = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
        self.transcript.said(json.dumps(value).encode(), value, modern=self.modern)

    def hear(self, **members: Any) -> None:
        self.hear_line(json.dumps({"jsonrpc": "2.0", **members}).encode())

    def hear_line(self, raw: bytes) -> None:
        self.transcript.heard(Line(raw, len(raw)))

    def answered(self, number: int, method: str, result: Any, params: Json | None = None) -> None:
        """Ask, and hear a result."""
        self.ask(number, method, params)
        self.hear(id=number, result=result)

    def open(self, version: str) -> None:
        self.answered(0, "initialize", {"protocolVersion": version})

    def typed(self) -> list[tuple[str, str]]:
        return [(message.part, message.method) for message in typed(self.record)]

    def seen(self, *clauses: str) -> list[tuple[str, bool]]:
        return [(seen.clause, seen.passed) for seen in shapes(self.record, *clauses)]


def asked_in(version: str, **more: Any) -> Json:
    return {"_meta": {"io.modelcontextprotocol/protocolVersion": version}, **more}


def session(revision: str = LEGACY) -> Talk:
    talk = Talk(revision)
    talk.open(revision)
    return talk


def test_messages_of_the_agreed_revision_are_typed() -> None:
    talk = session()
    talk.answered(1, "tools/list", {"tools": 5})
    talk.hear(method="notifications/message", params={"level": "info", "data": 1})
    talk.hear(method="notifications/of-its-own", params=5)
    talk.hear(id=1, method="elicitation/create", params={})
    talk.hear(id=2, method="of/its-own")
    talk.ask(2, "tools/call")
    talk.hear(id=2, error={"code": -32042, "message": "m"})
    talk.ask(3, "tools/call")
    talk.hear(id=3, error={"code": -32602, "message": "m"})
    talk.ask(4, "tools/call")
    talk.hear(id=4, error="no object")

    assert talk.typed() == [
        OPENED,
        ("results", "tools/list"),
        ("notifications", "notifications/message"),
        ("requests", "elicitation/create"),
        ("errors", "-32042"),
    ]


def test_request_unknown_to_the_revision_is_not_typed() -> None:
    talk = session("2024-11-05")
    talk.hear(id=1, method="elicitation/create", params={})
    talk.hear(id=2, method="roots/list")

    assert talk.typed() == [OPENED, ("requests", "roots/list")]


@pytest.mark.parametrize("version", ["2025-06-18", "1999-01-01"])
def test_session_in_another_revision_is_not_typed(version: str) -> None:
    talk = Talk(LEGACY)
    talk.open(version)
    talk.answered(1, "tools/list", {})
    talk.hear(id=1, method="roots/list")

    assert talk.typed() == []


def test_messages_outside_the_agreed_handshake_are_not_typed() -> None:
    talk = Talk(LEGACY)
    talk.answered(1, "tools/list", {})
    talk.open(LEGACY)
    talk.open("2025-06-18")
    talk.answered(2, "tools/list", {})

    assert talk.typed() == [OPENED]


def test_stateless_answer_has_the_revision_of_its_request() -> None:
    talk = Talk(MODERN)
    for number, params in enumerate([asked_in(MODERN), asked_in("2027-01-01"), {}], 1):
        talk.answered(number, "tools/list", {"resultType": "complete"}, params)
        talk.ask(number + 10, "tools/call", params)
        talk.hear(id=number + 10, error={"code": -32021, "message": "m"})

    assert talk.typed() == [("results", "tools/list"), ("errors", "-32021")]


@cases(
    ("tools/call", {"resultType": "input_required", "inputRequests": {}}, "input_required"),
    ("tools/call", {"inputRequests": {}}, "input_required"),
    ("tools/list", {"resultType": "input_required", "inputRequests": {}}, ""),
    ("tools/call", {"resultType": "complete", "inputRequests": {}}, "results"),
    ("tools/call", {"resultType": "task"}, ""),
    ("tools/call", {"content": []}, "results"),
)
def test_result_kinds_are_distinguished(method: str, result: Json, part: str) -> None:
    talk = Talk(MODERN)
    talk.answered(1, method, result, asked_in(MODERN))

    assert talk.typed() == ([(part, method)] if part else [])


@cases(
    ({"task": {}}, {"task": samples.TASK}, "tasks"),
    ({"task": {}}, {"task": {}}, "tasks"),
    ({"task": {}}, {"content": []}, "results"),
    ({}, {"task": samples.TASK}, "results"),
    ({}, {"resultType": "input_required"}, "results"),
)
def test_task_result_is_recognized_only_when_requested(
    params: Json, result: Json, part: str
) -> None:
    talk = session()
    talk.answered(1, "tools/call", result, params)

    assert talk.typed() == [OPENED, (part, "tools/call")]


def test_ambiguous_messages_are_not_typed() -> None:
    talk = session()
    talk.ask(1, "tools/list")
    talk.ask(1, "prompts/list")  # which of the two id 1 answers is open
    talk.hear(id=1, result={})
    talk.answered(2, "tools/list", 5)
    talk.ask(3, "tools/list")
    talk.hear(id=3, result={}, error={"code": 1, "message": "m"})
    talk.hear_line(
        b'{"jsonrpc":"2.0","method":"notifications/progress",'
        b'"params":{"progressToken":1,"progress":NaN}}'
    )
    talk.hear(id=2, result={})  # a second answer
    talk.hear(id=9, result={})  # an answer to nothing
    talk.hear(method="notifications/message", params={"data": "x" * LONGEST})

    assert talk.typed() == [OPENED]


def called(*content: Any, revision: str = LEGACY) -> Talk:
    talk = session(revision)
    talk.answered(1, "tools/call", {"content": list(content)})
    return talk


def test_clause_is_judged_only_when_its_node_occurs() -> None:
    talk = called(TEXT, {"type": "text"}, {"type": "image", "data": "%", "mimeType": "i/p"})
    names = ("server-text-content-shape", "server-image-content-shape", "tools-definition-shape")

    assert talk.seen(*names) == [
        ("server-text-content-shape", False),
        ("server-image-content-shape", True),
    ]


def test_finding_names_flaws_and_their_places() -> None:
    talk = called({"type": "text"}, *[{"type": "text", "text": 5}] * 4)
    (seen,) = shapes(talk.record, "server-text-content-shape")

    assert seen == Seen(
        clause="server-text-content-shape",
        passed=False,
        n=4,
        expected="a result of tools/call as 2025-11-25 defines it",
        actual=(
            "result.content[0].text: is missing; "
            "result.content[1].text: 5 is a number, not a string; "
            "result.content[2].text: 5 is a number, not a string; and 2 more"
        ),
    )


def test_flaw_of_the_generated_schema_alone_only_warns() -> None:
    talk = called({"type": "image", "data": "%", "mimeType": "i/p"})

    (seen,) = shapes(talk.record, "server-binary-content-base64")

    assert (seen.passed, seen.mild) == (False, Breach.WARN)


def test_every_object_of_a_definition_is_found() -> None:
    talk = session()
    tools = [{"icons": [{"src": "a"}, 5]}, {"icons": {"src": "b"}}]
    talk.answered(1, "tools/list", {"tools": tools})
    params: Json = {"messages": [], "tools": [{"icons": [{}]}]}
    talk.hear(id=1, method="sampling/createMessage", params=params)

    found = [(place, value) for _, place, value in each(talk.record, "Icon")]

    assert found == [
        ("result.tools[0].icons[0]", {"src": "a"}),
        ("params.tools[0].icons[0]", {}),
    ]


def rule(name: str) -> Any:
    load()
    return getattr(sys.modules["mcp_touchstone._suites.conformance.basic.schema"], name)


def test_schema_rule_skips_flaws_counted_by_other_clauses() -> None:
    """The type of _meta counts under meta-object; that of annotations only under this rule."""
    watch = rule("conforms_to_the_schema_of_its_revision")

    for content, passed in ({**TEXT, "_meta": 5}, True), ({**TEXT, "annotations": 5}, False):
        assert [seen.passed for seen in watch(called(content).record)] == [True, passed]


def test_rules_share_the_observations_of_one_pass() -> None:
    talk = called(TEXT)

    assert [*map(id, shapes(talk.record))] == [*map(id, shapes(talk.record))] != []


def test_message_that_came_after_a_rule_is_judged_too() -> None:
    talk = session()
    clause = "server-text-content-shape"
    before = talk.seen(clause), talk.typed()
    talk.ask(1, "tools/call")
    talk.hear(id=1, result={"content": [{"type": "text"}]})

    assert before == ([], [OPENED])
    assert talk.seen(clause) == [(clause, False)]
    assert talk.typed() == [OPENED, ("results", "tools/call")]


def test_repeated_content_is_validated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    talk, unknown = session(), str(uuid.uuid4())  # no other test may have shown it
    for number in range(1, 9):
        talk.answered(number, "tools/call", {"content": [{"type": "text", "texts": unknown}]})
    validated = []
    found = SCHEMAS._found

    def counted(*call: Any) -> Any:
        validated.append(call)
        return found(*call)

    monkeypatch.setattr(SCHEMAS, "_found", counted)
    looks = [message.look for message in typed(talk.record)]

    assert [len(look.flaws) for look in looks[1:]] == [1] * 8
    assert [call[2] for call in validated if call[2] != "initialize"] == ["tools/call"]


def test_only_long_messages_without_a_flaw_are_remembered() -> None:
    talk, unknown = session(), str(uuid.uuid4())
    for number, length in enumerate((1, SHORT), 1):
        said = {"content": [{"type": "text", "text": unknown + "x" * length}]}
        talk.answered(number, "tools/call", said)
    known = {**SCHEMAS._seen._known}
    clauses = [message.look.clauses for message in typed(talk.record)[1:]]

    assert len({**SCHEMAS._seen._known}.keys() - known.keys()) == 1
    assert clauses[0] == clauses[1]
    assert "server-text-content-shape" in clauses[0]


class Tool(dict[str, Any]):
    """A dictionary that can be referred to weakly."""


def test_long_messages_of_earlier_runs_do_not_stay_in_memory() -> None:
    length, kept = ROOM // 8, []
    for number in range(40):
        tool = Tool(name=f"{number}", inputSchema={"type": "object"}, description="x" * length)
        kept.append(weakref.ref(tool))
        SCHEMAS.look(LEGACY, "results", "tools/list", {"tools": [tool]})
        del tool

    assert 0 < sum(one() is not None for one in kept) <= 8


def test_deeply_nested_message_is_judged() -> None:
    talk = session()
    deep = "[" * 900 + "]" * 900
    talk.ask(1, "tools/call")
    line = '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text"}],"deep":' + deep + "}}"
    talk.hear_line(line.encode())

    assert talk.seen("server-text-content-shape") == [("server-text-content-shape", False)]


# --- schemas of tools that name no dialect

OLD_TUPLE: Final = {"type": "object", "properties": {"a": {"items": [{"type": "string"}]}}}
"""Valid in the dialects before 2020-12."""
EVERY: Final = [*reversed(DIALECTS)]


@cases(
    ({"type": "object"}, ["2020-12"], True),
    (OLD_TUPLE, ["2020-12", "2019-09"], True),
    ({"type": "object", "properties": {"a": {"type": "word"}}}, EVERY, False),
    ids=["valid in the newest", "valid in an older one", "valid in none"],
)
def test_schema_is_read_up_to_the_first_dialect_in_which_it_is_valid(
    monkeypatch: pytest.MonkeyPatch, schema: Json, read: list[str], passed: bool
) -> None:
    load()
    chapter = importlib.import_module(f"{NAMESPACE}.conformance.server.tools")
    dialects = []

    def noted(schema: Any, dialect: str) -> Any:
        dialects.append(dialect)
        return violations(schema, dialect)

    monkeypatch.setattr(chapter, "violations", noted)
    talk = session("2025-06-18")
    talk.ask(1, "tools/list")
    talk.hear(id=1, result={"tools": [{"name": "t", "inputSchema": schema}]})
    found = list(chapter.sends_tool_schemas_of_some_dialect(talk.record))

    assert [seen.passed for seen in found] == [passed]
    assert dialects == read


@cases(
    ({"type": "object"}, {}, 1, True),
    (OLD_TUPLE, {"a": ["x"]}, 2, True),
    ({"type": "object"}, 5, 5, False),
    ({"type": "object", "patternProperties": {}}, {}, 5, None),
    ids=["fits in the newest", "fits in an older one", "fits in none", "undecided"],
)
def test_value_is_read_up_to_the_first_dialect_in_which_it_fits(
    monkeypatch: pytest.MonkeyPatch, schema: Json, value: Any, read: int, fits: bool | None
) -> None:
    load()
    chapter = importlib.import_module(f"{NAMESPACE}.conformance.server.tools_results")
    tried = []

    def noted(schema: Any, value: Any) -> Any:
        tried.append(schema["$schema"])
        return allows(schema, value)

    monkeypatch.setattr(chapter, "allows", noted)

    assert chapter._fits(schema, value, "2025-06-18") is fits
    assert len(tried) == read
