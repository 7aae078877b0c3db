"""Questions of the reference server to its client: server requests in a legacy session."""

import threading
import time
from typing import Any

from reference_server.protocol.calls import Call
from reference_server.protocol.questions import MOST_OPEN
from reference_server.settings import Settings
from tests.cases import cases
from tests.client_questions import SAMPLED, Curious, answers_of, curious, failure_of, session
from tests.conftest import eventually
from tests.reference_client import (
    LEGACY,
    InProcess,
    Message,
    ask,
    initialize,
    notification,
    request,
    result,
)


@cases(
    *((revision, {}, "sample") for revision in LEGACY),
    *((revision, {"sampling": {}}, "roots") for revision in LEGACY),
    *((revision, {"elicitation": {}}, "elicit") for revision in LEGACY[:2]),
    ("2025-11-25", {"elicitation": {"url": {}}}, "elicit"),
    ("2025-11-25", {"elicitation": {}}, "url"),
    ("2025-11-25", {"sampling": {}}, "tools"),
)
def test_client_without_the_capability_is_not_asked(
    revision: str, capabilities: Message, kind: str
) -> None:
    with session(revision, capabilities) as client:
        client.send(curious(revision, 1, ask=[kind]))
        assert failure_of(client.hear())["code"] == "CLIENT_CANNOT"


@cases(
    ("2025-06-18", {"url": {}}),
    ("2025-11-25", {"form": {}}),
    ("2025-11-25", {"form": {}, "url": {}}),
)
def test_form_needs_only_the_capability_of_its_revision(revision: str, declared: Message) -> None:
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


@cases(
    {"result": {"action": "accept"}, "error": {"code": 1, "message": ""}},
    {"result": []},
    {"result": None},
    {"error": "no"},
    {"jsonrpc": "1.0", "result": {"action": "accept"}},
    {"result": {}},
    {"result": {"action": "yes"}},
    {"result": {"action": ["accept"]}},
    {"result": {"action": "accept", "content": []}},
)
def test_invalid_answer_fails_the_call(wrong: Message) -> None:
    with session("2025-11-25", {"elicitation": {}}) as client:
        client.send(curious("2025-11-25", 1))
        client.send({"jsonrpc": "2.0", "id": client.hear()["id"], **wrong})
        assert failure_of(client.hear())["code"] == "CLIENT_CONFUSED"


def test_answer_with_a_duplicate_member_fails_the_call() -> None:
    line = b'{"jsonrpc":"2.0","id":"%s","result":{"action":"decline","action":"accept"}}'
    with session("2025-11-25", {"elicitation": {}}) as client:
        client.send(curious("2025-11-25", 1))
        client.send(line % client.hear()["id"].encode())
        assert failure_of(client.hear())["code"] == "CLIENT_CONFUSED"


@cases(
    {"role": "system"},
    {"content": "Hello."},
    {"content": {"type": "poem", "text": "Hello."}},
    {"content": [{"type": "text", "data": "AAAA"}]},
    {"model": None},
)
def test_malformed_sampling_result_fails_the_call(wrong: Message) -> None:
    with session("2025-11-25", {"sampling": {}}) as client:
        client.send(curious("2025-11-25", 1, ask=["sample"]))
        client.send(result(client.hear(), **{**SAMPLED, **wrong}))
        assert failure_of(client.hear())["code"] == "CLIENT_CONFUSED"


def test_only_an_answer_with_the_exact_id_counts() -> None:
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


def test_question_is_cancelled_at_once_while_tools_are_busy() -> None:
    with session("2025-11-25", {"elicitation": {}}, workers=1) as client:
        client.send(curious("2025-11-25", 1))
        question = client.hear()
        client.send(curious("2025-11-25", 2, ask=[], sleep=1), request(3, "ping"))
        assert client.hear()["id"] == 3
        client.send(notification("notifications/cancelled", {"requestId": 1}))
        assert client.hear()["params"]["requestId"] == question["id"]
        assert client.hear()["id"] == 2


def test_cancelled_call_asks_nothing() -> None:
    class Late(Curious):
        def _work(self, call: Call, arguments: Message) -> Message:
            eventually(lambda: call.cancelled)
            return super()._work(call, arguments)

    with session("2025-11-25", {"elicitation": {}}, Late()) as client:
        client.send(curious("2025-11-25", 1))
        client.send(notification("notifications/cancelled", {"requestId": 1}))
        assert client.hears_nothing()


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
            eventually(lambda: call._outlet.asking.questions._client_left)  # type: ignore[attr-defined]
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


def test_open_questions_do_not_block_other_requests() -> None:
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


def test_questions_above_the_limit_fail_at_once() -> None:
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


def test_waiting_for_answers_does_not_raise_the_worker_limit() -> None:
    feature = Curious()
    with session("2025-11-25", {"elicitation": {}}, feature, workers=3) as client:
        client.send(*(curious("2025-11-25", number, sleep=0.05) for number in range(20)))
        questions = [client.hear() for _ in range(20)]
        client.send(*(result(question, action="accept") for question in questions))
        heard = [client.hear() for _ in range(20)]
    assert len(heard) == 20
    assert 1 <= feature.most_running <= 3


def test_call_in_a_batch_can_ask_the_client() -> None:
    revision = "2025-03-26"
    with session(revision, {"sampling": {}}) as client:
        client.send([curious(revision, 1, ask=["sample"]), request(2, "ping")])
        question = client.hear()
        assert question["method"] == "sampling/createMessage"
        client.send([result(question, **SAMPLED)])
        heard = client.hear()
    assert sorted(message["id"] for message in heard) == [1, 2]
