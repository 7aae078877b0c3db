"""Questions of the reference server without a session: the rounds of 2026-07-28."""

import threading

from tests.cases import cases
from tests.client_questions import (
    ACCEPTED,
    ELICITS,
    SAMPLED,
    Curious,
    again,
    answers_of,
    exchange,
    first,
    stateless,
)
from tests.reference_client import Message, code_of, data_of, modern_as


def test_sequential_questions_take_one_round_each() -> None:
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


def test_joint_questions_share_a_round_and_missing_answers_are_asked_again() -> None:
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


@cases(
    ({}, "elicit", {"elicitation": {"form": {}}}),
    ({"elicitation": {"url": {}}}, "elicit", {"elicitation": {"form": {}}}),
    ({"elicitation": {}}, "url", {"elicitation": {"url": {}}}),
    ({"elicitation": {}}, "sample", {"sampling": {}}),
    ({"sampling": {}}, "tools", {"sampling": {"tools": {}}}),
    ({"sampling": {}}, "roots", {"roots": {}}),
)
def test_missing_capability_error_ignores_earlier_declarations(
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
                assert data_of(answer) == {"requiredCapabilities": required}


def test_state_of_another_process_is_refused() -> None:
    with stateless() as client:
        asked = exchange(client, first(1))
    with stateless() as client:
        assert code_of(exchange(client, again(first(1), 2, asked, elicit=ACCEPTED))) == -32602


def test_expired_state_is_refused() -> None:
    with stateless(ask_seconds=-1.0) as client:
        asked = exchange(client, first(1))
        answer = exchange(client, again(first(1), 2, asked, elicit=ACCEPTED))
    assert code_of(answer) == -32602
    assert "expired" in answer["error"]["message"]


def test_concurrent_retries_use_a_state_once() -> None:
    with stateless() as client:
        asked = exchange(client, first(1))
        client.send(*(again(first(1), number, asked, elicit=ACCEPTED) for number in range(2, 10)))
        heard = [client.hear() for _ in range(8)]
    assert sum("result" in message for message in heard) == 1
    assert {code_of(message) for message in heard if "error" in message} == {-32602}


def test_used_state_is_refused_in_later_rounds() -> None:
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


def test_question_is_repeated_when_its_subject_changed() -> None:
    feature = Curious()
    with stateless(feature) as client:
        asked = exchange(client, first(1))
        feature.bound_to = b"something else"
        asked = exchange(client, again(first(1), 2, asked, elicit=ACCEPTED))
        assert asked["result"]["resultType"] == "input_required"
        answer = exchange(client, again(first(1), 3, asked, elicit=ACCEPTED))
    assert answers_of(answer) == [ACCEPTED]


def test_abandoned_rounds_keep_no_threads() -> None:
    with stateless() as client:
        before = threading.active_count()  # another test may have left some
        for number in range(200):
            assert "inputRequests" in exchange(client, first(number))["result"]
        assert threading.active_count() - before < 17
