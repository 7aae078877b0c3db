"""The client's side: what it declares, what it answers in both eras, and tasks of its own."""

from typing import Any

import pytest

from mcp_touchstone import answer
from mcp_touchstone import revision as rev
from mcp_touchstone.answer import Answer
from mcp_touchstone.client import ASKED, CAPABILITIES, Client, willing
from mcp_touchstone.client_tasks import RELATED, ClientTasks

FORM = {
    "message": "Who are you?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
}
SAMPLE = {"messages": [], "maxTokens": 10}


def result(said: Answer) -> Any:
    assert said.body is not None
    return said.body["result"]


def code(said: Answer) -> Any:
    assert said.body is not None
    return said.body["error"]["code"]


# --- policies


def test_a_form_is_accepted_with_content_that_fits_or_with_what_is_given() -> None:
    assert result(answer.accept()(FORM)) == {"action": "accept", "content": {"name": "example"}}
    assert result(answer.accept({"name": 5})(FORM)) == {"action": "accept", "content": {"name": 5}}


def test_a_link_is_accepted_without_content() -> None:
    assert result(answer.accept()({"mode": "url", "url": "x"})) == {"action": "accept"}


def test_an_elicitation_is_declined_or_dismissed() -> None:
    assert result(answer.decline()(FORM)) == {"action": "decline"}
    assert result(answer.dismiss()(FORM)) == {"action": "cancel"}


def test_anything_may_be_given_and_anything_refused() -> None:
    assert result(answer.give([1])({})) == [1]
    assert code(answer.refuse()({})) == -1
    assert code(answer.unknown()({})) == -32601
    assert answer.silence()({}).body is None


def test_an_answer_may_be_late() -> None:
    said = answer.late(0.5, answer.decline())(FORM)

    assert said.delay == 0.5
    assert result(said) == {"action": "decline"}


def test_answers_come_in_turn_and_the_last_one_stays() -> None:
    policy = answer.in_turn(answer.decline(), answer.dismiss())

    assert [result(policy(FORM))["action"] for _ in range(3)] == ["decline", "cancel", "cancel"]


def test_the_model_speaks_or_asks_for_tools_under_ever_new_ids() -> None:
    tool = {"name": "add", "inputSchema": {"type": "object", "required": ["a"]}}
    policy = answer.use_tools(2)

    first, second = (result(policy({"tools": [tool]})) for _ in range(2))

    assert first["stopReason"] == "toolUse"
    assert [block["name"] for block in first["content"]] == ["add", "add"]
    ids = {block["id"] for said in (first, second) for block in said["content"]}
    assert len(ids) == 4
    assert first["content"][0]["input"] == {"a": "hello"}
    assert result(policy({}))["stopReason"] == "endTurn"
    assert result(answer.say("hi")(SAMPLE))["content"] == {"type": "text", "text": "hi"}


# --- the client


@pytest.mark.parametrize("method", [*ASKED, "x/unknown", None])
def test_what_was_not_declared_is_not_there(method: str | None) -> None:
    assert code(Client().answer(method, {})) == -32601


def test_a_ping_is_always_answered() -> None:
    assert result(Client().answer("ping", None)) == {}


def test_what_counts_is_what_was_declared_to_the_server() -> None:
    client = Client(elicitation=answer.accept())

    assert code(client.answer("elicitation/create", FORM)) == -32601
    said = client.answer("elicitation/create", FORM, declared={"elicitation": {}})
    assert result(said)["action"] == "accept"


def test_roots_are_those_of_the_world_or_those_it_names() -> None:
    client = Client(capabilities={"roots": {}})
    world = ["file:///world"]

    offered = result(client.answer("roots/list", None, world=world))["roots"]
    assert [root["uri"] for root in offered] == world
    none = Client(capabilities={"roots": {}}, roots=answer.offer())
    assert result(none.answer("roots/list", None, world=world)) == {"roots": []}


@pytest.mark.parametrize("revision", rev.ALL)
def test_a_willing_client_answers_everything_its_revision_has(revision: str) -> None:
    client = willing(revision)
    old = revision < "2025-06-18"

    for method, capability in ASKED.items():
        declared = capability in client.capabilities
        assert declared is not (old and capability == "elicitation")
        assert ("result" in (client.answer(method, FORM).body or {})) is declared
    assert client.capabilities == CAPABILITIES[revision]


def test_a_round_is_filled_in_by_the_same_answers_and_what_is_refused_is_left_out() -> None:
    client = Client(
        capabilities={"elicitation": {}, "sampling": {}, "roots": {}},
        elicitation=answer.accept(),
        sampling=answer.refuse(),
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


# --- its tasks


def test_a_request_that_asks_for_a_task_gets_one_and_its_result_later() -> None:
    tasks = ClientTasks(polls=2)
    client = Client(capabilities={"sampling": {}}, sampling=answer.say("hi"), tasks=tasks)

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


def test_a_task_that_never_ends_can_only_be_cancelled() -> None:
    tasks = ClientTasks(polls=None)
    named = {"taskId": result(tasks.create(Answer({"result": {}})))["task"]["taskId"]}

    assert result(tasks.serve("tasks/get", named))["status"] == "working"
    assert tasks.serve("tasks/result", named).body is None
    assert result(tasks.serve("tasks/cancel", named))["status"] == "cancelled"
    assert tasks.ids == [named["taskId"]]


def test_a_client_without_tasks_makes_none() -> None:
    client = Client(capabilities={"sampling": {}})

    assert "task" not in result(client.answer("sampling/createMessage", {"task": {}}))
    assert code(client.answer("tasks/get", {"taskId": "x"})) == -32601
