"""Which message is held against which schema, and what a rule on shapes says of it."""

import json
import sys
from typing import Any, Final

import pytest

from mcp_touchstone.ambient import Record
from mcp_touchstone.clause import Breach
from mcp_touchstone.framing import Line
from mcp_touchstone.loader import load
from mcp_touchstone.pace import Pace
from mcp_touchstone.recon import Dossier
from mcp_touchstone.scenario import Seen
from mcp_touchstone.shapes import LONGEST, SCHEMAS, each, shapes, typed
from mcp_touchstone.transcript import Transcript
from tests import schema_samples as samples
from tests.schema_cases import LEGACY, MODERN, Json

OPENED: Final = ("results", "initialize")
TEXT: Final = {"type": "text", "text": "t"}


class Talk:
    """A transcript written by hand, as a rule sees it."""

    def __init__(self, revision: str) -> None:
        self.transcript = Transcript(revision, lambda: 0.0)
        self.modern = revision == MODERN
        self.record = Record(self.transcript, Dossier(Pace(1.0)))

    def ask(self, number: int, method: str, params: Json | None = None) -> None:
        value = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
        self.transcript.said(json.dumps(value).encode(), value, modern=self.modern)

    def hear(self, **members: Any) -> None:
        self.hear_line(json.dumps({"jsonrpc": "2.0", **members}).encode())

    def hear_line(self, raw: bytes) -> None:
        self.transcript.heard(Line(raw, len(raw)))

    def open(self, version: str) -> None:
        self.ask(0, "initialize")
        self.hear(id=0, result={"protocolVersion": version})

    def typed(self) -> list[tuple[str, str]]:
        return [(message.part, message.method) for message in typed(self.record)]

    def seen(self, *clauses: str) -> list[tuple[str, bool]]:
        return [(seen.clause, seen.held) for seen in shapes(self.record, *clauses)]


def asked_in(version: str, **more: Any) -> Json:
    return {"_meta": {"io.modelcontextprotocol/protocolVersion": version}, **more}


def session(revision: str = LEGACY) -> Talk:
    talk = Talk(revision)
    talk.open(revision)
    return talk


# --- which message is of which type


def test_every_message_of_the_revision_agreed_has_its_type() -> None:
    talk = session()
    talk.ask(1, "tools/list")
    talk.hear(id=1, result={"tools": 5})
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


def test_a_request_that_the_revision_does_not_have_has_no_type() -> None:
    talk = session("2024-11-05")
    talk.hear(id=1, method="elicitation/create", params={})
    talk.hear(id=2, method="roots/list")

    assert talk.typed() == [OPENED, ("requests", "roots/list")]


@pytest.mark.parametrize("version", ["2025-06-18", "1999-01-01"])
def test_leaves_a_session_in_another_revision_alone(version: str) -> None:
    talk = Talk(LEGACY)
    talk.open(version)
    talk.ask(1, "tools/list")
    talk.hear(id=1, result={})
    talk.hear(id=1, method="roots/list")

    assert talk.typed() == []


def test_leaves_alone_what_came_before_a_handshake_and_behind_a_second_other_one() -> None:
    talk = Talk(LEGACY)
    talk.ask(1, "tools/list")
    talk.hear(id=1, result={})
    talk.open(LEGACY)
    talk.open("2025-06-18")
    talk.ask(2, "tools/list")
    talk.hear(id=2, result={})

    assert talk.typed() == [OPENED]


def test_a_stateless_answer_is_of_the_version_its_request_names() -> None:
    talk = Talk(MODERN)
    for number, params in enumerate([asked_in(MODERN), asked_in("2027-01-01"), {}], 1):
        talk.ask(number, "tools/list", params)
        talk.hear(id=number, result={"resultType": "complete"})
        talk.ask(number + 10, "tools/call", params)
        talk.hear(id=number + 10, error={"code": -32021, "message": "m"})

    assert talk.typed() == [("results", "tools/list"), ("errors", "-32021")]


@pytest.mark.parametrize(
    ("method", "result", "part"),
    [
        ("tools/call", {"resultType": "input_required", "inputRequests": {}}, "input_required"),
        ("tools/call", {"inputRequests": {}}, "input_required"),
        ("tools/list", {"resultType": "input_required", "inputRequests": {}}, ""),
        ("tools/call", {"resultType": "complete", "inputRequests": {}}, "results"),
        ("tools/call", {"resultType": "task"}, ""),
        ("tools/call", {"content": []}, "results"),
    ],
)
def test_tells_kinds_of_result_apart(method: str, result: Json, part: str) -> None:
    talk = Talk(MODERN)
    talk.ask(1, method, asked_in(MODERN))
    talk.hear(id=1, result=result)

    assert talk.typed() == ([(part, method)] if part else [])


@pytest.mark.parametrize(
    ("params", "result", "part"),
    [
        ({"task": {}}, {"task": samples.TASK}, "tasks"),
        ({"task": {}}, {"task": {}}, "tasks"),
        ({"task": {}}, {"content": []}, "results"),
        ({}, {"task": samples.TASK}, "results"),
        ({}, {"resultType": "input_required"}, "results"),
    ],
)
def test_takes_a_task_only_where_one_was_asked_for(params: Json, result: Json, part: str) -> None:
    talk = session()
    talk.ask(1, "tools/call", params)
    talk.hear(id=1, result=result)

    assert talk.typed() == [OPENED, (part, "tools/call")]


def test_leaves_alone_what_cannot_be_told() -> None:
    talk = session()
    talk.ask(1, "tools/list")
    talk.ask(1, "prompts/list")  # which of the two id 1 answers is open
    talk.hear(id=1, result={})
    talk.ask(2, "tools/list")
    talk.hear(id=2, result=5)
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


# --- what is said of it


def called(*content: Any, revision: str = LEGACY) -> Talk:
    talk = session(revision)
    talk.ask(1, "tools/call")
    talk.hear(id=1, result={"content": list(content)})
    return talk


def test_judges_a_clause_where_its_node_is_met() -> None:
    talk = called(TEXT, {"type": "text"}, {"type": "image", "data": "%", "mimeType": "i/p"})
    names = ("server-text-content-shape", "server-image-content-shape", "tools-definition-shape")

    assert talk.seen(*names) == [
        ("server-text-content-shape", False),
        ("server-image-content-shape", True),
    ]


def test_says_what_is_wrong_and_where() -> None:
    talk = called({"type": "text"}, *[{"type": "text", "text": 5}] * 4)
    (seen,) = shapes(talk.record, "server-text-content-shape")

    assert seen == Seen(
        clause="server-text-content-shape",
        held=False,
        n=4,
        expected="a result of tools/call as 2025-11-25 defines it",
        actual=(
            "result.content[0].text: is missing; "
            "result.content[1].text: 5 is a number, not a string; "
            "result.content[2].text: 5 is a number, not a string; and 2 more"
        ),
    )


def test_only_warns_of_what_only_the_generated_schema_asks() -> None:
    talk = called({"type": "image", "data": "%", "mimeType": "i/p"})

    (seen,) = shapes(talk.record, "server-binary-content-base64")

    assert (seen.held, seen.mild) == (False, Breach.WARN)


def test_finds_every_place_of_a_definition() -> None:
    talk = session()
    talk.ask(1, "tools/list")
    talk.hear(id=1, result={"tools": [{"icons": [{"src": "a"}, 5]}, {"icons": {"src": "b"}}]})
    params: Json = {"messages": [], "tools": [{"icons": [{}]}]}
    talk.hear(id=1, method="sampling/createMessage", params=params)

    found = [(place, value) for _, place, value in each(talk.record, "Icon")]

    assert found == [
        ("result.tools[0].icons[0]", {"src": "a"}),
        ("result.tools[0].icons[1]", 5),
        ("params.tools[0].icons[0]", {}),
    ]


def rule(name: str) -> Any:
    load()
    return getattr(sys.modules["mcp_touchstone._suites.conformance.basic.schema"], name)


def test_the_rule_on_all_types_leaves_to_chapters_what_they_judge() -> None:
    """The type of _meta is counted by meta-object, the type of annotations by nobody else."""
    watch = rule("keeps_the_types_of_its_revision")

    for content, held in ({**TEXT, "_meta": 5}, True), ({**TEXT, "annotations": 5}, False):
        assert [seen.held for seen in watch(called(content).record)] == [True, held]


def test_what_is_said_often_is_validated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = session()
    for number in range(1, 9):
        talk.ask(number, "tools/call")
        talk.hear(id=number, result={"content": [{"type": "text", "text": "once"}]})
    validated = []
    flaws = SCHEMAS.flaws

    def counted(*call: Any) -> Any:
        validated.append(call)
        return flaws(*call)

    monkeypatch.setattr(SCHEMAS, "flaws", counted)
    looks = [message.look for message in typed(talk.record)]

    assert len(looks) == 9
    assert len(validated) <= 2


def test_a_message_nested_too_deep_to_be_named_is_judged_all_the_same() -> None:
    talk = session()
    deep = "[" * 900 + "]" * 900
    talk.ask(1, "tools/call")
    line = '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text"}],"deep":' + deep + "}}"
    talk.hear_line(line.encode())

    assert talk.seen("server-text-content-shape") == [("server-text-content-shape", False)]
