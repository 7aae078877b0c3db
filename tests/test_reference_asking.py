"""The reference server asks its client: requests in a session, rounds without one."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reference_server.client.questions import MOST_OPEN
from reference_server.features import roots
from reference_server.protocol.calls import Call, Detached
from reference_server.settings import Settings
from reference_server.surface import Surface
from reference_server.tools.toolbox import Tool
from tests.reference_client import (
    LEGACY,
    MODERN,
    InProcess,
    Message,
    ask,
    code_of,
    initialize,
    modern_as,
    notification,
    refusal,
    request,
    result,
)

ELICITING = ("2025-06-18", "2025-11-25")
FORM = {
    "message": "Which?",
    "requestedSchema": {"type": "object", "properties": {"which": {"type": "string"}}},
}
SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Say hello."}}],
    "maxTokens": 10,
}
SAMPLED = {
    "role": "assistant",
    "content": {"type": "text", "text": "Hello."},
    "model": "a model",
}
QUESTIONS: dict[str, tuple[str, Message]] = {
    "elicit": ("elicitation/create", FORM),
    "url": ("elicitation/create", {"mode": "url", "url": "https://example.com", "message": "!"}),
    "sample": ("sampling/createMessage", SAMPLE),
    "tools": ("sampling/createMessage", {**SAMPLE, "tools": []}),
    "roots": ("roots/list", {}),
}
ANY: dict[str, Any] = {"type": "object"}


def tool(name: str, work: Any) -> Tool:
    return Tool(
        name,
        title=name,
        description=name,
        input_schema={"type": "object", "properties": {}},
        output_schema=ANY,
        annotations={},
        work=work,
    )


class Curious:
    """A feature with tools that ask what their argument ``ask`` says, in that order."""

    def __init__(self) -> None:
        self.bound_to = b""
        self.running = 0
        self.most_running = 0
        self.lock = threading.Lock()

    def __call__(self, surface: Surface) -> None:
        surface.toolbox.add(tool("curious", self._work))
        surface.toolbox.add(tool("other", self._work))
        surface.toolbox.add(tool("idle", lambda _call, _arguments: {}))
        surface.methods.request("roots/list", LEGACY, lambda _call: {})

    def _work(self, call: Call, arguments: Message) -> Message:
        kinds = arguments.get("ask", ["elicit"])
        if arguments.get("together"):
            found = call.ask_together({kind: QUESTIONS[kind] for kind in kinds})
            return {"answers": [found[kind] for kind in kinds]}
        answers = []
        for kind in kinds:
            method, params = QUESTIONS[kind]
            answers.append(call.ask(kind, method, params, bound_to=self.bound_to))
        with self.lock:
            self.running += 1
            self.most_running = max(self.running, self.most_running)
        time.sleep(arguments.get("sleep", 0))
        with self.lock:
            self.running -= 1
        return {"answers": answers}


def curious(revision: str, request_id: Any, **arguments: Any) -> Message:
    return ask(revision, request_id, "tools/call", name="curious", arguments=arguments)


@contextmanager
def session(
    revision: str, capabilities: Message, feature: Any = None, **settings: Any
) -> Iterator[InProcess]:
    with InProcess(Settings(**settings), [feature or Curious()]) as client:
        client.open(revision, capabilities)
        yield client


def answers_of(answer: Message) -> Any:
    return json.loads(answer["result"]["content"][0]["text"])["answers"]


def failure_of(answer: Message) -> Message:
    assert answer["result"]["isError"] is True
    body = json.loads(answer["result"]["content"][1]["text"])
    assert isinstance(body, dict)
    return body


# --- A session is asked with a request of ours ---------------------------------------------------


@pytest.mark.parametrize("revision", ELICITING)
def test_form_is_asked_for_and_its_answer_reaches_the_tool(revision: str) -> None:
    with session(revision, {"elicitation": {}}) as client:
        client.send(curious(revision, 1))
        question = client.hear()
        assert question == {
            "jsonrpc": "2.0",
            "id": question["id"],
            "method": "elicitation/create",
            "params": FORM,
        }
        assert isinstance(question["id"], str)
        client.send(result(question, action="accept", content={"which": "this"}))
        answer = client.hear()
    assert answer["id"] == 1
    assert answers_of(answer) == [{"action": "accept", "content": {"which": "this"}}]


@pytest.mark.parametrize("revision", LEGACY)
def test_sampling_and_roots_are_asked_in_every_session(revision: str) -> None:
    with session(revision, {"sampling": {}, "roots": {}}) as client:
        client.send(curious(revision, 1, ask=["sample", "roots"]))
        first = client.hear()
        assert (first["method"], first["params"]) == ("sampling/createMessage", SAMPLE)
        client.send(result(first, **SAMPLED))
        second = client.hear()
        assert second["method"] == "roots/list"
        assert "params" not in second
        assert second["id"] != first["id"]
        client.send(result(second, roots=[]))
        assert answers_of(client.hear()) == [SAMPLED, {"roots": []}]


@pytest.mark.parametrize(
    ("revision", "capabilities", "kind"),
    [
        *((revision, {}, "sample") for revision in LEGACY),
        *((revision, {"sampling": {}}, "roots") for revision in LEGACY),
        *((revision, {"elicitation": {}}, "elicit") for revision in LEGACY[:2]),
        ("2025-11-25", {"elicitation": {"url": {}}}, "elicit"),
        ("2025-11-25", {"elicitation": {}}, "url"),
        ("2025-11-25", {"sampling": {}}, "tools"),
    ],
)
def test_client_that_has_not_declared_it_is_not_asked(
    revision: str, capabilities: Message, kind: str
) -> None:
    with session(revision, capabilities) as client:
        client.send(curious(revision, 1, ask=[kind]))
        assert failure_of(client.hear())["code"] == "CLIENT_CANNOT"


@pytest.mark.parametrize(
    ("revision", "declared"),
    [
        ("2025-06-18", {"url": {}}),
        ("2025-11-25", {"form": {}}),
        ("2025-11-25", {"form": {}, "url": {}}),
    ],
)
def test_form_needs_no_more_than_the_revision_says(revision: str, declared: Message) -> None:
    with session(revision, {"elicitation": declared}) as client:
        client.send(curious(revision, 1))
        assert client.hear()["method"] == "elicitation/create"


def test_nothing_is_asked_before_initialized() -> None:
    with InProcess(features=[Curious()]) as client:
        client.send(initialize("2025-11-25", capabilities={"elicitation": {}}))
        client.send(curious("2025-11-25", 1))
        assert client.hear()["id"] == "init"
        assert failure_of(client.hear())["code"] == "CLIENT_CANNOT"
        client.send(notification("notifications/initialized"), curious("2025-11-25", 2))
        assert client.hear()["method"] == "elicitation/create"


def test_error_for_an_answer_fails_the_call_and_nothing_else() -> None:
    with session("2025-11-25", {"sampling": {}}) as client:
        client.send(curious("2025-11-25", 1, ask=["sample"]))
        client.send(refusal(client.hear(), -1, "User\x1b[2J said no"))
        failure = failure_of(client.hear())
        assert failure["code"] == "CLIENT_REFUSED"
        assert failure["details"] == r"-1 User\x1b[2J said no"
        client.send(request(2, "ping"))
        assert client.hear() == {"jsonrpc": "2.0", "id": 2, "result": {}}


@pytest.mark.parametrize(
    "wrong",
    [
        {"result": {"action": "accept"}, "error": {"code": 1, "message": ""}},
        {"result": []},
        {"result": None},
        {"error": "no"},
        {"jsonrpc": "1.0", "result": {"action": "accept"}},
        {"result": {}},
        {"result": {"action": "yes"}},
        {"result": {"action": ["accept"]}},
        {"result": {"action": "accept", "content": []}},
    ],
)
def test_answer_that_is_none_ends_the_wait_and_counts_for_nothing(wrong: Message) -> None:
    with session("2025-11-25", {"elicitation": {}}) as client:
        client.send(curious("2025-11-25", 1))
        client.send({"jsonrpc": "2.0", "id": client.hear()["id"], **wrong})
        assert failure_of(client.hear())["code"] == "CLIENT_CONFUSED"


def test_answer_that_two_readers_read_differently_counts_for_nothing() -> None:
    line = b'{"jsonrpc":"2.0","id":"%s","result":{"action":"decline","action":"accept"}}'
    with session("2025-11-25", {"elicitation": {}}) as client:
        client.send(curious("2025-11-25", 1))
        client.send(line % client.hear()["id"].encode())
        assert failure_of(client.hear())["code"] == "CLIENT_CONFUSED"


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "system"},
        {"content": "Hello."},
        {"content": {"type": "poem", "text": "Hello."}},
        {"content": [{"type": "text", "data": "AAAA"}]},
        {"model": None},
    ],
)
def test_sampling_result_of_the_wrong_shape_counts_for_nothing(wrong: Message) -> None:
    with session("2025-11-25", {"sampling": {}}) as client:
        client.send(curious("2025-11-25", 1, ask=["sample"]))
        client.send(result(client.hear(), **{**SAMPLED, **wrong}))
        assert failure_of(client.hear())["code"] == "CLIENT_CONFUSED"


def test_only_an_answer_under_the_very_id_counts() -> None:
    accepted = {"action": "accept", "content": {}}
    with session("2025-11-25", {"elicitation": {}}) as client:
        client.send(curious("2025-11-25", 1))
        question = client.hear()
        ours = question["id"]
        others: list[Any] = [1, 1.0, "1", ours.upper(), ours + " ", None, True, [ours], {}]
        for other in others:
            client.send({"jsonrpc": "2.0", "id": other, "result": accepted})
        client.send({"jsonrpc": "2.0", "result": accepted})
        assert client.hears_nothing()
        client.send(result(question, action="decline"), result(question, **accepted))
        assert answers_of(client.hear()) == [{"action": "decline"}]
        assert client.hears_nothing()


# --- Every wait ends -----------------------------------------------------------------------------


def test_silent_client_is_given_up_on_and_told_so() -> None:
    with session("2025-11-25", {"elicitation": {}}, ask_seconds=0.2) as client:
        client.send(curious("2025-11-25", 1))
        question = client.hear()
        cancelled = client.hear()
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"]["requestId"] == question["id"]
        assert isinstance(cancelled["params"]["reason"], str)
        assert failure_of(client.hear())["code"] == "CLIENT_SILENT"
        client.send(result(question, action="accept"), request(2, "ping"))
        assert client.hear()["id"] == 2


def test_cancelled_call_takes_its_question_along() -> None:
    with session("2025-11-25", {"elicitation": {}}) as client:
        client.send(curious("2025-11-25", 1))
        question = client.hear()
        client.send(notification("notifications/cancelled", {"requestId": 1}))
        cancelled = client.hear()
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"]["requestId"] == question["id"]
        client.send(result(question, action="accept"))
        assert client.hears_nothing()
        client.send(curious("2025-11-25", 1))
        assert client.hear()["id"] != question["id"]


def test_question_is_taken_back_at_once_however_busy_the_tools_are() -> None:
    with session("2025-11-25", {"elicitation": {}}, workers=1) as client:
        client.send(curious("2025-11-25", 1))
        question = client.hear()
        client.send(curious("2025-11-25", 2, ask=[], sleep=1), request(3, "ping"))
        assert client.hear()["id"] == 3
        client.send(notification("notifications/cancelled", {"requestId": 1}))
        assert client.hear()["params"]["requestId"] == question["id"]
        assert client.hear()["id"] == 2


def test_end_of_input_ends_the_wait_at_once() -> None:
    with session("2025-11-25", {"elicitation": {}}) as client:
        client.send(curious("2025-11-25", 1), curious("2025-11-25", 2))
        assert {client.hear()["method"] for _ in range(2)} == {"elicitation/create"}
        began = time.monotonic()
        client.end_input()
        heard = client.rest()
        assert time.monotonic() - began < 5
    assert sorted(message["id"] for message in heard) == [1, 2]
    assert {failure_of(message)["code"] for message in heard} == {"CLIENT_LEFT"}
    assert client.code == 0


def test_nothing_is_asked_after_the_end_of_input() -> None:
    class Late(Curious):
        def _work(self, call: Call, arguments: Message) -> Message:
            started.set()
            assert ended.wait(10)
            time.sleep(0.2)
            return super()._work(call, arguments)

    started, ended = threading.Event(), threading.Event()
    with session("2025-11-25", {"elicitation": {}}, Late()) as client:
        client.send(curious("2025-11-25", 1))
        assert started.wait(10)
        client.end_input()
        ended.set()
        (answer,) = client.rest()
    assert failure_of(answer)["code"] == "CLIENT_LEFT"


def test_client_that_stops_reading_ends_the_wait() -> None:
    client = InProcess(Settings(), [Curious()])
    client.open("2025-11-25", {"elicitation": {}})
    client.send(curious("2025-11-25", 1))
    client.hear()
    client.leave()
    client._server.join(10)
    assert not client._server.is_alive()


# --- Many questions at once ----------------------------------------------------------------------


def test_open_questions_hold_up_nothing_else() -> None:
    with session("2025-11-25", {"elicitation": {}}) as client:
        client.send(*(curious("2025-11-25", number) for number in range(12)))
        questions = [client.hear() for _ in range(12)]
        client.send(
            request("p", "ping"),
            request("l", "tools/list"),
            ask("2025-11-25", "i", "tools/call", name="idle"),
        )
        assert [client.hear()["id"] for _ in range(3)] == ["p", "l", "i"]
        for question in reversed(questions):
            client.send(result(question, action="accept", content={"which": question["id"]}))
        heard = [client.hear() for _ in range(12)]
    assert sorted(message["id"] for message in heard) == list(range(12))
    said = [answers_of(message)[0]["content"]["which"] for message in heard]
    assert sorted(said) == sorted(question["id"] for question in questions)


def test_more_questions_than_the_limit_fail_at_once_and_the_rest_goes_on() -> None:
    with session("2025-11-25", {"elicitation": {}}, workers=2, queue=2) as client:
        client.send(*(curious("2025-11-25", number) for number in range(MOST_OPEN + 20)))
        heard = [client.hear() for _ in range(MOST_OPEN + 20)]
        questions = [message for message in heard if "method" in message]
        refused = [message for message in heard if "result" in message]
        assert len(questions) == MOST_OPEN
        assert {failure_of(message)["code"] for message in refused} == {"CLIENT_BUSY"}
        client.send(request("p", "ping"), *(result(one, action="cancel") for one in questions))
        answered = [client.hear() for _ in range(MOST_OPEN + 1)]
    assert sum("result" in message for message in answered) == MOST_OPEN + 1


def test_answer_behind_a_full_queue_is_read() -> None:
    with session("2025-11-25", {"elicitation": {}}, workers=1, queue=1) as client:
        client.send(curious("2025-11-25", 0, ask=["elicit", "elicit"]))
        question = client.hear()
        client.send(*(curious("2025-11-25", number, ask=[]) for number in range(1, 30)))
        client.send(result(question, action="accept"))
        heard = [client.hear() for _ in range(30)]
        again = next(message for message in heard if "method" in message)
        client.send(result(again, action="accept"))
        assert client.hear()["id"] == 0


def test_no_more_tools_run_at_once_after_waiting_than_before() -> None:
    feature = Curious()
    with session("2025-11-25", {"elicitation": {}}, feature, workers=3) as client:
        client.send(*(curious("2025-11-25", number, sleep=0.05) for number in range(20)))
        questions = [client.hear() for _ in range(20)]
        client.send(*(result(question, action="accept") for question in questions))
        heard = [client.hear() for _ in range(20)]
    assert len(heard) == 20
    assert 1 <= feature.most_running <= 3


def test_member_of_a_batch_may_ask_too() -> None:
    revision = "2025-03-26"
    with session(revision, {"sampling": {}}) as client:
        client.send([curious(revision, 1, ask=["sample"]), request(2, "ping")])
        question = client.hear()
        assert question["method"] == "sampling/createMessage"
        client.send([result(question, **SAMPLED)])
        heard = client.hear()
    assert sorted(message["id"] for message in heard) == [1, 2]


# --- Without a session: rounds -------------------------------------------------------------------

ELICITS: Message = {"elicitation": {}}


def first(request_id: Any, name: str = "curious", **arguments: Any) -> Message:
    return modern_as(ELICITS, request_id, "tools/call", name=name, arguments=arguments)


def again(message: Message, request_id: Any, asked: Message, **responses: Any) -> Message:
    """Build the retry of a request that was answered with a question."""
    more: Message = {"requestState": asked["result"]["requestState"], "inputResponses": responses}
    return {**message, "id": request_id, "params": {**message["params"], **more}}


@contextmanager
def stateless(feature: Any = None, **settings: Any) -> Iterator[InProcess]:
    with InProcess(Settings(**settings), [feature or Curious()]) as client:
        yield client


def exchange(client: InProcess, message: Message) -> Message:
    client.send(message)
    answer = client.hear()
    assert isinstance(answer, dict)
    assert answer["id"] == message["id"]
    return answer


ACCEPTED = {"action": "accept", "content": {"which": "this"}}


def test_request_ends_with_the_question_and_comes_again_with_the_answer() -> None:
    with stateless() as client:
        asked = exchange(client, first(1))
        assert asked["result"]["resultType"] == "input_required"
        assert asked["result"]["inputRequests"] == {
            "elicit": {"method": "elicitation/create", "params": FORM}
        }
        assert isinstance(asked["result"]["requestState"], str)
        assert "content" not in asked["result"]
        answer = exchange(client, again(first(1), 2, asked, elicit=ACCEPTED))
        assert answer["result"]["resultType"] == "complete"
        assert answers_of(answer) == [ACCEPTED]
        assert client.hears_nothing()


def test_several_questions_take_several_rounds() -> None:
    capabilities: Message = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
    message = modern_as(
        capabilities,
        1,
        "tools/call",
        name="curious",
        arguments={"ask": ["elicit", "sample", "roots"]},
    )
    with stateless() as client:
        asked = exchange(client, message)
        asked = exchange(client, again(message, 2, asked, elicit=ACCEPTED))
        assert list(asked["result"]["inputRequests"]) == ["sample"]
        asked = exchange(client, again(message, 3, asked, sample=SAMPLED))
        assert asked["result"]["inputRequests"] == {"roots": {"method": "roots/list"}}
        answer = exchange(client, again(message, 4, asked, roots={"roots": []}))
    assert answers_of(answer) == [ACCEPTED, SAMPLED, {"roots": []}]


def test_questions_asked_together_share_a_round_and_only_what_is_missing_is_asked_again() -> None:
    capabilities: Message = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
    arguments = {"ask": ["elicit", "sample", "roots"], "together": True}
    message = modern_as(capabilities, 1, "tools/call", name="curious", arguments=arguments)
    with stateless() as client:
        asked = exchange(client, message)
        assert list(asked["result"]["inputRequests"]) == ["elicit", "sample", "roots"]
        asked = exchange(client, again(message, 2, asked, elicit=ACCEPTED, roots={"roots": []}))
        assert list(asked["result"]["inputRequests"]) == ["sample"]
        answer = exchange(client, again(message, 3, asked, sample=SAMPLED))
    assert answers_of(answer) == [ACCEPTED, SAMPLED, {"roots": []}]


@pytest.mark.parametrize(
    ("declared", "kind", "required"),
    [
        ({}, "elicit", {"elicitation": {"form": {}}}),
        ({"elicitation": {"url": {}}}, "elicit", {"elicitation": {"form": {}}}),
        ({"elicitation": {}}, "url", {"elicitation": {"url": {}}}),
        ({"elicitation": {}}, "sample", {"sampling": {}}),
        ({"sampling": {}}, "tools", {"sampling": {"tools": {}}}),
        ({"sampling": {}}, "roots", {"roots": {}}),
    ],
)
def test_missing_capability_is_named_whatever_was_declared_before(
    declared: Message, kind: str, required: Message
) -> None:
    arguments = {"ask": [kind]}
    full: Message = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
    with stateless() as client:
        for capabilities, able in ((full, True), (declared, False), (required, True)):
            answer = exchange(
                client,
                modern_as(capabilities, 1, "tools/call", name="curious", arguments=arguments),
            )
            if able:
                assert list(answer["result"]["inputRequests"]) == [kind]
            else:
                assert code_of(answer) == -32021
                assert answer["error"]["data"] == {"requiredCapabilities": required}


def test_any_altered_character_of_the_state_is_noticed() -> None:
    with stateless() as client:
        asked = exchange(client, first(1))
        state = asked["result"]["requestState"]
        for place in (*range(0, len(state), 7), len(state) - 1):
            other = "A" if state[place] != "A" else "B"
            asked["result"]["requestState"] = state[:place] + other + state[place + 1 :]
            answer = exchange(client, again(first(1), 2, asked, elicit=ACCEPTED))
            assert code_of(answer) == -32602
        wrong: list[Any] = ["", ".", "x" * 100_000, "é.é", state + "A", state[:-1], state + "=", 5]
        for garbage in wrong:
            asked["result"]["requestState"] = garbage
            answer = exchange(client, again(first(1), 3, asked, elicit=ACCEPTED))
            assert code_of(answer) == -32602
        asked["result"]["requestState"] = state
        answer = exchange(client, again(first(1), 4, asked, elicit=ACCEPTED))
        assert answers_of(answer) == [ACCEPTED]


def test_state_is_refused_by_a_tool_that_asks_nothing_too() -> None:
    with stateless() as client:
        asked = {"result": {"requestState": "garbage"}}
        assert code_of(exchange(client, again(first(1, "idle"), 2, asked))) == -32602


@pytest.mark.parametrize(
    "other",
    [first(2, "other"), first(2, sleep=0), first(2, ask=["elicit", "elicit"])],
    ids=["tool", "argument", "value"],
)
def test_state_belongs_to_one_request(other: Message) -> None:
    with stateless() as client:
        asked = exchange(client, first(1))
        assert code_of(exchange(client, again(other, 2, asked, elicit=ACCEPTED))) == -32602


def test_state_of_another_process_counts_for_nothing() -> None:
    with stateless() as client:
        asked = exchange(client, first(1))
    with stateless() as client:
        assert code_of(exchange(client, again(first(1), 2, asked, elicit=ACCEPTED))) == -32602


def test_state_expires() -> None:
    with stateless(ask_seconds=0.1) as client:
        asked = exchange(client, first(1))
        time.sleep(0.2)
        answer = exchange(client, again(first(1), 2, asked, elicit=ACCEPTED))
    assert code_of(answer) == -32602
    assert "expired" in answer["error"]["message"]


def test_state_counts_once_even_for_requests_at_the_same_time() -> None:
    with stateless() as client:
        asked = exchange(client, first(1))
        client.send(*(again(first(1), number, asked, elicit=ACCEPTED) for number in range(2, 10)))
        heard = [client.hear() for _ in range(8)]
    assert sum("result" in message for message in heard) == 1
    assert {code_of(message) for message in heard if "error" in message} == {-32602}


def test_state_that_was_used_up_stays_so_in_later_rounds() -> None:
    message = modern_as(
        {**ELICITS, "sampling": {}},
        1,
        "tools/call",
        name="curious",
        arguments={"ask": ["elicit", "sample"]},
    )
    with stateless() as client:
        asked = exchange(client, message)
        second = exchange(client, again(message, 2, asked, elicit=ACCEPTED))
        assert "result" in exchange(client, again(message, 3, second, sample=SAMPLED))
        assert code_of(exchange(client, again(message, 4, second, sample=SAMPLED))) == -32602
        assert code_of(exchange(client, again(message, 5, asked, elicit=ACCEPTED))) == -32602


def test_missing_answer_is_asked_for_again_and_extra_ones_are_passed_over() -> None:
    with stateless() as client:
        asked = exchange(client, first(1))
        for number, responses in enumerate(({}, {"other": ACCEPTED}), 2):
            asked = exchange(client, again(first(1), number, asked, **responses))
            assert list(asked["result"]["inputRequests"]) == ["elicit"]
        answer = exchange(client, again(first(1), 9, asked, elicit=ACCEPTED, other={"x": 1}))
    assert answers_of(answer) == [ACCEPTED]


def test_answer_without_a_state_answers_nothing() -> None:
    with stateless() as client:
        message = first(1)
        message["params"]["inputResponses"] = {"elicit": ACCEPTED}
        assert exchange(client, message)["result"]["resultType"] == "input_required"


@pytest.mark.parametrize(
    "wrong", [[], "accept", {"elicit": "accept"}, {"elicit": None}, {"elicit": {"action": "yes"}}]
)
def test_malformed_answer_is_refused_and_may_be_put_right(wrong: Any) -> None:
    with stateless() as client:
        asked = exchange(client, first(1))
        retry = again(first(1), 2, asked)
        retry["params"]["inputResponses"] = wrong
        assert code_of(exchange(client, retry)) == -32602
        answer = exchange(client, again(first(1), 3, asked, elicit=ACCEPTED))
    assert answers_of(answer) == [ACCEPTED]


def test_answer_about_something_that_has_changed_is_asked_for_again() -> None:
    feature = Curious()
    with stateless(feature) as client:
        asked = exchange(client, first(1))
        feature.bound_to = b"something else"
        asked = exchange(client, again(first(1), 2, asked, elicit=ACCEPTED))
        assert asked["result"]["resultType"] == "input_required"
        answer = exchange(client, again(first(1), 3, asked, elicit=ACCEPTED))
    assert answers_of(answer) == [ACCEPTED]


def test_client_that_never_comes_back_costs_nothing() -> None:
    with stateless() as client:
        for number in range(200):
            assert "inputRequests" in exchange(client, first(number))["result"]
        assert threading.active_count() < 20


@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
def test_other_requests_pass_over_a_state(method: str) -> None:
    with stateless() as client:
        message = modern_as(ELICITS, 1, method, requestState="garbage", inputResponses=[])
        assert exchange(client, message)["result"]["resultType"] == "complete"


# --- Roots ---------------------------------------------------------------------------------------


class Reader:
    """A feature with one tool that tells whether a file can be found."""

    def __init__(self) -> None:
        self.read = threading.Event()

    def __call__(self, surface: Surface) -> None:
        def work(call: Call, arguments: Message) -> Message:
            self.read.set()
            found = surface.workspace.find(arguments["path"], check=call.check)
            return {"found": found is not None}

        surface.toolbox.add(tool("find", work))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    return tmp_path


@contextmanager
def with_roots(tree: Path, revision: str = "2025-11-25", **settings: Any) -> Iterator[InProcess]:
    reader = Reader()
    with InProcess(Settings([str(tree)], **settings), [roots, reader]) as client:
        client.open(revision, {"roots": {"listChanged": True}})
        yield client


def find(path: str, request_id: Any = 1) -> Message:
    return request(request_id, "tools/call", {"name": "find", "arguments": {"path": path}})


def outcome(answer: Message) -> str:
    if answer["result"].get("isError"):
        code = failure_of(answer)["code"]
        assert isinstance(code, str)
        return code
    found = json.loads(answer["result"]["content"][0]["text"])["found"]
    return "found" if found else "missing"


def uris(*paths: Path) -> list[Message]:
    return [{"uri": path.as_uri(), "name": path.name} for path in paths]


def look(client: InProcess, *paths: str) -> list[str]:
    client.send(*(find(path, number) for number, path in enumerate(paths)))
    heard = sorted((client.hear() for _ in paths), key=lambda message: int(message["id"]))
    return [outcome(message) for message in heard]


@pytest.mark.parametrize("revision", LEGACY)
def test_roots_are_asked_once_the_session_is_ready_and_narrow_the_workspace(
    revision: str, tree: Path
) -> None:
    with with_roots(tree, revision) as client:
        question = client.hear()
        assert (question["method"], question.get("params", {})) == ("roots/list", {})
        client.send(result(question, roots=uris(tree / "one")))
        assert look(client, "one/file", "two/file") == ["found", "OUTSIDE_CLIENT_ROOTS"]


def test_request_that_comes_before_the_answer_waits_for_it(tree: Path) -> None:
    with with_roots(tree) as client:
        client.send(*(find("two/file", number) for number in range(200)))
        question = client.hear()
        assert question["method"] == "roots/list"
        assert client.hears_nothing()
        client.send(result(question, roots=uris(tree / "one")))
        heard = [client.hear() for _ in range(200)]
    assert {outcome(message) for message in heard} == {"OUTSIDE_CLIENT_ROOTS"}
    assert sorted(message["id"] for message in heard) == list(range(200))


def test_client_that_never_answers_changes_nothing_and_is_not_waited_for_long(tree: Path) -> None:
    with with_roots(tree) as client:
        question = client.hear()
        client.send(request("p", "ping"))
        assert client.hear()["id"] == "p"
        began = time.monotonic()
        assert look(client, "two/file") == ["found"]
        assert time.monotonic() - began < 4
        began = time.monotonic()
        assert look(client, "one/file") == ["found"]
        assert time.monotonic() - began < 1
        client.send(result(question, roots=uris(tree / "one")))
        while look(client, "two/file") != ["OUTSIDE_CLIENT_ROOTS"]:
            assert time.monotonic() - began < 5


def test_waiting_request_can_be_cancelled(tree: Path) -> None:
    with with_roots(tree) as client:
        question = client.hear()
        client.send(find("one/file", 1), notification("notifications/cancelled", {"requestId": 1}))
        client.send(find("one/file", 2))
        client.send(result(question, roots=[]))
        assert client.hear()["id"] == 2
        assert client.hears_nothing()


def test_end_of_input_ends_the_wait_for_roots(tree: Path) -> None:
    with with_roots(tree) as client:
        client.hear()
        client.send(find("one/file"))
        client.end_input()
        (answer,) = client.rest()
    assert outcome(answer) == "found"
    assert client.code == 0


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -32603, "message": "no"}},
        {"result": {}},
        {"result": {"roots": {}}},
        {"result": {"roots": [{"name": "no uri"}]}},
        {"result": {"roots": ["file:///"]}},
        {"result": {"roots": [{"uri": f"file:///{number}"} for number in range(1001)]}},
        {"result": {"roots": []}},
    ],
)
def test_answer_that_names_no_boundary_changes_nothing(answer: Message, tree: Path) -> None:
    with with_roots(tree) as client:
        client.send({"jsonrpc": "2.0", "id": client.hear()["id"], **answer})
        assert look(client, "one/file", "two/file") == ["found", "found"]


@pytest.mark.parametrize(
    "uri", ["file:///nowhere", "https://example.com/one", "one", "file://[/", "file:///%00"]
)
def test_roots_that_share_nothing_with_ours_leave_nothing(uri: str, tree: Path) -> None:
    with with_roots(tree) as client:
        client.send(result(client.hear(), roots=[{"uri": uri}]))
        assert look(client, "one/file") == ["OUTSIDE_CLIENT_ROOTS"]


def test_root_above_ours_does_not_widen_it(tree: Path) -> None:
    (tree.parent / "beside").write_text("secret")
    with with_roots(tree) as client:
        client.send(result(client.hear(), roots=uris(tree.parent)))
        assert look(client, "one/file", str(tree.parent / "beside")) == ["found", "OUTSIDE_ROOT"]


def test_changed_roots_are_asked_for_again(tree: Path) -> None:
    changed = notification("notifications/roots/list_changed")
    with with_roots(tree) as client:
        client.send(result(client.hear(), roots=uris(tree / "one")))
        assert look(client, "one/file", "two/file") == ["found", "OUTSIDE_CLIENT_ROOTS"]
        client.send(changed)
        client.send(result(client.hear(), roots=uris(tree / "two")))
        assert look(client, "one/file", "two/file") == ["OUTSIDE_CLIENT_ROOTS", "found"]
        client.send(changed)
        client.send(refusal(client.hear()))
        assert look(client, "one/file", "two/file") == ["OUTSIDE_CLIENT_ROOTS", "found"]
        client.send(changed)
        client.send(result(client.hear(), roots=[]))
        assert look(client, "one/file", "two/file") == ["found", "found"]


def test_flood_of_changes_leads_to_one_more_question_and_the_last_answer_counts(
    tree: Path,
) -> None:
    changed = notification("notifications/roots/list_changed")
    with with_roots(tree) as client:
        question = client.hear()
        client.send(*[changed] * 500, find("one/file"))
        client.send(result(question, roots=uris(tree / "one")))
        question = client.hear()
        assert question["method"] == "roots/list"
        client.send(result(question, roots=uris(tree / "two")))
        assert outcome(client.hear()) == "OUTSIDE_CLIENT_ROOTS"
        assert client.hears_nothing()


def test_client_without_roots_is_not_asked(tree: Path) -> None:
    with InProcess(Settings([str(tree)]), [roots, Reader()]) as client:
        client.open("2025-11-25", {"sampling": {}})
        client.send(notification("notifications/roots/list_changed"))
        assert look(client, "one/file") == ["found"]


def test_roots_are_not_asked_before_initialized(tree: Path) -> None:
    with InProcess(Settings([str(tree)]), [roots, Reader()]) as client:
        client.send(initialize("2025-11-25", capabilities={"roots": {}}))
        client.send(notification("notifications/roots/list_changed"))
        assert client.hear()["id"] == "init"
        assert client.hears_nothing()


def test_roots_are_not_asked_for_where_they_are_deprecated(tree: Path) -> None:
    with InProcess(Settings([str(tree)]), [roots, Reader()]) as client:
        message = modern_as(
            {"roots": {}}, 1, "tools/call", name="find", arguments={"path": "one/file"}
        )
        assert outcome(exchange(client, message)) == "found"


# --- What else a handler can do with a call ------------------------------------------------------


class Handler:
    """A feature with one tool that does what the test says."""

    def __init__(self, work: Any) -> None:
        self.work = work

    def __call__(self, surface: Surface) -> None:
        surface.toolbox.add(tool("handled", self.work))


def call_handled(revision: str, request_id: Any = 1, **meta: Any) -> Message:
    if revision == MODERN:
        return modern_as({}, request_id, "tools/call", name="handled", _meta=meta)
    return request(request_id, "tools/call", {"name": "handled", "_meta": meta})


@pytest.mark.parametrize(
    ("revision", "token"),
    [*((revision, "t") for revision in (*LEGACY, MODERN)), *(("2025-11-25", t) for t in ("", 0))],
)
def test_progress_grows_under_the_token_and_ends_before_the_answer(
    revision: str, token: Any
) -> None:
    def work(call: Call, _arguments: Message) -> Message:
        for done in (1, 1, 0.5, float("nan"), float("inf"), 2, 3):
            call.progress(done, 3, "reading\x07")
            time.sleep(0.06)
        return {}

    with InProcess(features=[Handler(work)]) as client:
        client.open(revision)
        client.send(call_handled(revision, progressToken=token))
        heard = [client.hear()]
        while "id" not in heard[-1]:
            heard.append(client.hear())
        assert client.hears_nothing()
    told = [message["params"] for message in heard[:-1]]
    assert {message["method"] for message in heard[:-1]} == {"notifications/progress"}
    assert all(one["progressToken"] == token for one in told)
    assert all(type(one["progressToken"]) is type(token) for one in told)
    values = [one["progress"] for one in told]
    assert values == sorted(set(values))
    assert (values[0], values[-1]) == (1, 3)
    assert {one["total"] for one in told} == {3}
    expected = {None} if revision == "2024-11-05" else {r"reading\x07"}
    assert {one.get("message") for one in told} == expected


def test_nobody_is_told_of_progress_unasked_or_too_often() -> None:
    def work(call: Call, _arguments: Message) -> Message:
        for done in range(10_000):
            call.progress(done)
        return {}

    with InProcess(features=[Handler(work)]) as client:
        client.open("2025-11-25")
        client.send(call_handled("2025-11-25", 1))
        assert client.hear()["id"] == 1
        client.send(call_handled("2025-11-25", 2, progressToken="t"))
        heard = [client.hear()]
        while "id" not in heard[-1]:
            heard.append(client.hear())
    assert 2 <= len(heard) < 30


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_call_names_the_client_on_one_short_line(revision: str) -> None:
    name, version = "evil\n\x1b[2J\u202e", "1" * 500
    about = {"name": name, "version": version}
    seen = []

    def work(call: Call, _arguments: Message) -> Message:
        seen.append(call.who)
        return {}

    with InProcess(features=[Handler(work)]) as client:
        if revision == MODERN:
            client.send(call_handled(MODERN, 5, **{"io.modelcontextprotocol/clientInfo": about}))
        else:
            opening = initialize(revision)
            opening["params"]["clientInfo"] = about
            client.send(opening, call_handled(revision, 5))
            client.hear()
        client.hear()
        client.send(call_handled(revision, "a\nb" + "c" * 500))
        client.hear()
    assert seen[0].startswith(r"evil\n\x1b[2J\u202e 1111")
    assert seen[0].endswith("… #5")
    assert r'#"a\nbccc' in seen[1]
    assert all(who.isprintable() and len(who) < 250 for who in seen)


def test_cancellation_calls_back_at_once_and_once() -> None:
    called: list[str] = []
    entered, left = threading.Event(), threading.Event()

    def work(call: Call, _arguments: Message) -> Message:
        call.on_cancel(lambda: called.append("early"))
        entered.set()
        while not call.cancelled:
            time.sleep(0.01)
        call.on_cancel(lambda: called.append("late"))
        left.set()
        return {}

    with InProcess(features=[Handler(work)]) as client:
        client.open("2025-11-25")
        cancel = notification("notifications/cancelled", {"requestId": 1})
        client.send(call_handled("2025-11-25"))
        assert entered.wait(10)
        client.send(cancel, cancel)
        assert left.wait(10)
        assert client.hears_nothing()
    assert called == ["early", "late"]


def test_detached_call_goes_on_after_its_answer() -> None:
    twins: list[Detached] = []
    waits: list[bool] = []

    def work(call: Call, _arguments: Message) -> Message:
        call.progress(1)
        twin = call.detach({"about": "it"}, waits.append)
        twins.append(twin)
        call.finish({"content": []})
        twin.progress(0.5)
        twin.progress(2)
        answer = twin.ask("key", "elicitation/create", FORM)
        twin.notify("notifications/x", {"answer": answer["action"]})
        twin.close()
        twin.progress(3)
        return {}

    with InProcess(features=[Handler(work)]) as client:
        client.open("2025-11-25", {"elicitation": {}})
        client.send(call_handled("2025-11-25", progressToken="t"))
        assert client.hear()["params"]["progress"] == 1
        assert client.hear()["id"] == 1
        told = client.hear()["params"]
        assert (told["progress"], told["_meta"]) == (2, {"about": "it"})
        question = client.hear()
        assert question["params"] == {**FORM, "_meta": {"about": "it"}}
        client.send(result(question, action="cancel"))
        assert client.hear()["params"] == {"answer": "cancel", "_meta": {"about": "it"}}
        assert client.hears_nothing()
    assert waits == [True, False]
    assert not twins[0].cancelled
