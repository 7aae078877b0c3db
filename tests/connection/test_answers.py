"""The client side: declared capabilities, answers in both eras, and client tasks."""

from typing import Any

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.connection import answers
from mcp_touchstone.connection.answers import Answer
from mcp_touchstone.connection.client_tasks import RELATED, ClientTasks
from mcp_touchstone.connection.profile import ASKED, CAPABILITIES, Client, willing

FORM = {
    "message": "Who are you?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
}
SAMPLE = {"messages": [], "maxTokens": 10}


def result(answer: Answer) -> Any:
    assert answer.body is not None
    return answer.body["result"]


def code(answer: Answer) -> Any:
    assert answer.body is not None
    return answer.body["error"]["code"]


def test_accept_fills_a_form_with_valid_or_given_content() -> None:
    assert result(answers.accept()(FORM)) == {"action": "accept", "content": {"name": "example"}}
    assert result(answers.accept({"name": 5})(FORM)) == {"action": "accept", "content": {"name": 5}}


def test_accept_sends_no_content_for_a_url() -> None:
    assert result(answers.accept()({"mode": "url", "url": "x"})) == {"action": "accept"}


def test_decline_and_dismiss_answer_an_elicitation() -> None:
    assert result(answers.decline()(FORM)) == {"action": "decline"}
    assert result(answers.dismiss()(FORM)) == {"action": "cancel"}


def test_give_and_refuse_answer_any_request() -> None:
    assert result(answers.give([1])({})) == [1]
    assert code(answers.refuse()({})) == -1
    assert answers.silence()({}).body is None


def test_late_answer_has_a_delay() -> None:
    answer = answers.late(0.5, answers.decline())(FORM)

    assert answer.delay == 0.5
    assert result(answer) == {"action": "decline"}


def test_in_turn_repeats_the_last_answer() -> None:
    policy = answers.in_turn(answers.decline(), answers.dismiss())

    assert [result(policy(FORM))["action"] for _ in range(3)] == ["decline", "cancel", "cancel"]


def test_sampling_answers_use_unique_tool_call_ids() -> None:
    tool = {"name": "add", "inputSchema": {"type": "object", "required": ["a"]}}
    policy = answers.use_tools(2)

    first, second = (result(policy({"tools": [tool]})) for _ in range(2))

    assert first["stopReason"] == "toolUse"
    assert [block["name"] for block in first["content"]] == ["add", "add"]
    ids = {block["id"] for answer in (first, second) for block in answer["content"]}
    assert len(ids) == 4
    assert first["content"][0]["input"] == {"a": "hello"}
    assert result(policy({}))["stopReason"] == "endTurn"
    assert result(answers.say("hi")(SAMPLE))["content"] == {"type": "text", "text": "hi"}


@pytest.mark.parametrize("method", [*ASKED, "x/unknown", None])
def test_undeclared_capability_is_method_not_found(method: str | None) -> None:
    assert code(Client().answer(method, {})) == -32601


def test_ping_is_always_answered() -> None:
    assert result(Client().answer("ping", None)) == {}


def test_capability_declared_to_the_server_is_answered() -> None:
    client = Client(elicitation=answers.accept())

    assert code(client.answer("elicitation/create", FORM)) == -32601
    answer = client.answer("elicitation/create", FORM, declared={"elicitation": {}})
    assert result(answer)["action"] == "accept"


def test_roots_default_to_the_world() -> None:
    client = Client(capabilities={"roots": {}})
    world = ["file:///world"]

    offered = result(client.answer("roots/list", None, world=world))["roots"]
    assert [root["uri"] for root in offered] == world
    none = Client(capabilities={"roots": {}}, roots=answers.offer())
    assert result(none.answer("roots/list", None, world=world)) == {"roots": []}


@pytest.mark.parametrize("revision", rev.ALL)
def test_willing_client_answers_all_methods_of_its_revision(revision: str) -> None:
    client = willing(revision)
    old = revision < "2025-06-18"

    for method, capability in ASKED.items():
        declared = capability in client.capabilities
        assert declared is not (old and capability == "elicitation")
        assert ("result" in (client.answer(method, FORM).body or {})) is declared
    assert client.capabilities == CAPABILITIES[revision]


def test_input_requests_get_answers_and_refused_ones_are_omitted() -> None:
    client = Client(
        capabilities={"elicitation": {}, "sampling": {}, "roots": {}},
        elicitation=answers.accept(),
        sampling=answers.refuse(),
    )
    requests = {
        "who": {"method": "elicitation/create", "params": FORM},
        "what": {"method": "sampling/createMessage", "params": SAMPLE},
        "where": {"method": "roots/list"},
        "odd": {"method": "x/unknown"},
        "odder": 5,
    }

    filled = client.fill(requests, world=["file:///w"])

    assert list(filled) == ["who", "where"]
    assert filled["who"]["content"] == {"name": "example"}
    assert client.fill(None) == {}


def test_task_request_creates_a_task_with_a_later_result() -> None:
    tasks = ClientTasks(polls=2)
    client = Client(capabilities={"sampling": {}}, sampling=answers.say("hi"), tasks=tasks)

    made = result(client.answer("sampling/createMessage", {**SAMPLE, "task": {"ttl": 1}}))["task"]

    assert made["status"] == "working"
    named = {"taskId": made["taskId"]}
    polled = [result(client.answer("tasks/get", named))["status"] for _ in range(3)]
    assert polled == ["working", "completed", "completed"]
    brought = result(client.answer("tasks/result", named))
    assert brought["content"]["text"] == "hi"
    assert brought["_meta"] == {RELATED: named}
    assert [task["taskId"] for task in result(client.answer("tasks/list", {}))["tasks"]] == [
        made["taskId"]
    ]
    assert code(client.answer("tasks/cancel", named)) == -32602
    assert code(client.answer("tasks/get", {"taskId": "other"})) == -32602


def test_endless_task_can_only_be_cancelled() -> None:
    tasks = ClientTasks(polls=None)
    named = {"taskId": result(tasks.create(Answer({"result": {}})))["task"]["taskId"]}

    assert result(tasks.serve("tasks/get", named))["status"] == "working"
    assert tasks.serve("tasks/result", named).body is None
    assert result(tasks.serve("tasks/cancel", named))["status"] == "cancelled"
    assert tasks.ids == [named["taskId"]]


def test_client_without_tasks_creates_no_task() -> None:
    client = Client(capabilities={"sampling": {}})

    assert "task" not in result(client.answer("sampling/createMessage", {"task": {}}))
    assert code(client.answer("tasks/get", {"taskId": "x"})) == -32601
