"""Scenario tools: clients, rounds, pending requests, tasks and streams."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Level
from mcp_touchstone.catalog.scenario import Scenario
from mcp_touchstone.connection import answers, mrtr
from mcp_touchstone.connection.client_tasks import ClientTasks
from mcp_touchstone.connection.mrtr import altered
from mcp_touchstone.connection.pending import Pending, Window
from mcp_touchstone.connection.profile import Client, willing
from mcp_touchstone.connection.server_profile import Request
from mcp_touchstone.connection.server_requests import questions
from mcp_touchstone.connection.subscriptions import Subscription
from mcp_touchstone.connection.tasks import Task
from mcp_touchstone.discovery.probes import run_probes
from mcp_touchstone.discovery.recon import explore
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.engine.stages import probe_context
from mcp_touchstone.judging.conversation import Conversation
from mcp_touchstone.judging.judge import Judge
from mcp_touchstone.judging.run_settings import RunSettings
from mcp_touchstone.judging.used_server import Examples, UsedServer
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.scratch import World
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.lifecycle import Role
from tests.canned import clause
from tests.cases import cases
from tests.conftest import HERE

LEGACY = rev.LATEST_LEGACY
MODERN = rev.LATEST_MODERN
ERAS = pytest.mark.parametrize("revision", [LEGACY, MODERN])
TOY = str(HERE / "toy_server.py")
SCENARIO = Scenario(
    id="toy.py::talks", clauses=(), title="", why="", path="toy.py", line=1, order=0, body=print
)


@contextmanager
def talking(revision: str, *features: str, words: tuple[str, ...] = ()) -> Iterator[Conversation]:
    target = Target(command=(sys.executable, "-S", TOY, ROOT, *features), timeout=20.0)
    with World() as world:
        pool = ProcessPool(target, world, Pace(20.0))
        try:
            profile, connections, _ = explore(pool.spawn, pool.pace, (revision,))
            pool.adopt(connections, profile)
            run_probes(profile, {revision: set(words)}, probe_context(pool, threading.Event()))
            server = UsedServer(pool.lender.get(revision), lambda: pool.spawn(revision, "other"))
            judge = Judge(server, SCENARIO, (), revision=revision)
            yield Conversation(server, judge, Examples(server, profile, revision), RunSettings())
        finally:
            pool.close()


def call(name: str, **arguments: Any) -> Request:
    return Request("tools/call", {"name": name, "arguments": arguments})


def said(reply: Any) -> str:
    text = reply.result["content"][0]["text"]
    assert isinstance(text, str)
    return text


@pytest.mark.skipif(sys.platform == "win32", reason="no process can catch SIGTERM there")
def test_lines_after_the_exit_of_the_process_are_read() -> None:
    with talking(MODERN, "last-words") as talk:
        line = len(talk.wire.transcript)
        talk.server.terminate()

        methods = [message.method for entry in talk.since(line) for message in entry.messages]
        assert methods == ["notifications/last"]


def test_example_is_found_by_its_word_and_run() -> None:
    with talking(LEGACY, "echo", words=("callable-tool",)) as talk:
        example = talk.examples.best("callable-tool")

        assert example.name == "echo"
        assert said(talk.run(example)) == "hello"
        with pytest.raises(LookupError, match="slow-call"):
            talk.examples.best("slow-call")
        assert talk.examples("slow-call") == []


def test_example_paths_are_moved_to_the_current_root() -> None:
    with talking(LEGACY, "echo", words=("callable-tool",)) as talk, World() as world:
        talk.examples.profile = replace(talk.profile, root=str(talk.root))
        nested = {"text": f"{talk.root}/a", "more": [f"file://{talk.root}", 1]}
        example = replace(talk.examples.best("callable-tool"), params={"arguments": nested})
        talk.wire.answers.root = world.root

        assert talk.examples.here(example).arguments == {
            "text": f"{world.root}/a",
            "more": [f"file://{world.root}", 1],
        }


@ERAS
def test_messages_written_together_are_separate_lines(revision: str) -> None:
    with talking(revision, "echo") as talk:
        line = len(talk.wire.transcript)
        first = talk.wire.build("tools/list")
        talk.wire.say_together(first, talk.wire.build("tools/list"))

        assert talk.wire.answer_to(line + 1).result is not None
        assert talk.wire.answer_to(line + 2).result is not None
        assert talk.wire.transcript[line + 1].value == first


@ERAS
@cases(
    (answers.accept(), '{"action": "accept", "content": {"name": "example"}}'),
    (answers.decline(), '{"action": "decline"}'),
    (answers.dismiss(), '{"action": "cancel"}'),
    (answers.give({"action": 5}), '{"action": 5}'),
    (answers.late(0.1, answers.decline()), '{"action": "decline"}'),
)
def test_provoked_question_gets_the_answer_of_the_client(
    revision: str, policy: Any, expected: str
) -> None:
    client = Client(capabilities={"elicitation": {}}, elicitation=policy)
    with talking(revision, "elicit") as talk:
        talk.server.reopen(client)
        provoked = mrtr.provoke(talk.wire, call("elicit"))

        (question,) = provoked.questions
        assert question.method == "elicitation/create"
        assert question.member["message"] == "Who?"
        assert said(provoked.reply) == expected
        assert (question.answers is None) is (revision == LEGACY)


def test_new_capabilities_need_a_new_process_only_in_legacy() -> None:
    with talking(LEGACY, "elicit") as talk:
        first = talk.wire
        talk.server.reopen(willing(LEGACY))
        assert talk.wire is not first
        assert talk.server.connections == [first, talk.wire]
        assert "elicitation" in talk.wire.transcript.capabilities
    with talking(MODERN, "elicit") as talk:
        first = talk.wire
        talk.server.reopen(willing(MODERN))
        assert talk.wire is first


def test_answers_may_change_within_a_session() -> None:
    with talking(LEGACY, "elicit") as talk:
        talk.server.reopen(willing(LEGACY))
        for policy, action in ((answers.decline(), "decline"), (answers.dismiss(), "cancel")):
            provoked = mrtr.provoke(talk.wire, call("elicit"), Client(elicitation=policy))
            assert action in said(provoked.reply)
        assert len(list(questions(talk.since(0)))) == 2


def test_unanswered_question_blocks_only_its_call() -> None:
    silent = Client(capabilities={"elicitation": {}}, elicitation=answers.silence())
    with talking(LEGACY, "elicit", "echo") as talk:
        talk.server.reopen(silent)
        usual, talk.wire.pace.startup = talk.wire.pace.startup, 0.3
        provoked = mrtr.provoke(talk.wire, call("elicit"))
        talk.wire.pace.startup = usual

        assert not provoked.reply.answered
        assert said(talk.run(call("echo", text="on"))) == "on"


def test_late_answer_does_not_block_other_calls() -> None:
    late = Client(
        capabilities={"elicitation": {}}, elicitation=answers.late(0.3, answers.decline())
    )
    with talking(LEGACY, "elicit", "echo") as talk:
        talk.server.reopen(late)
        pending = Pending(talk.wire, call("elicit"))
        assert said(talk.run(call("echo", text="first"))) == "first"
        assert "decline" in said(pending.reply())
        assert pending.age >= 0.3


def test_unprovoked_questions_are_recorded() -> None:
    with talking(LEGACY, "curious") as talk:
        talk.server.reopen(Client(capabilities={"roots": {}}, roots=answers.offer("file:///here")))
        provoked = mrtr.provoke(talk.wire, Request(""))

        assert [question.method for question in provoked.questions] == ["roots/list"]


def test_client_creates_a_task_for_a_sampling_request() -> None:
    tasks = ClientTasks(polls=1)
    client = Client(capabilities={"sampling": {}, "tasks": {}}, tasks=tasks)
    made = client.answer("sampling/createMessage", {"task": {}})
    assert made.body is not None
    assert tasks.ids == ["client-task-1"]


def test_rounds_answer_questions_until_the_result() -> None:
    with talking(MODERN, "elicit") as talk:
        first, last = mrtr.rounds(talk.wire, call("elicit"), willing(MODERN))

        assert first.asks
        assert list(first.requests) == ["it"]
        assert first.state == "S1"
        assert last.sent["requestState"] == "S1"
        assert last.sent["inputResponses"]["it"]["action"] == "accept"
        assert not last.asks
        assert "example" in said(last.reply)


def test_round_can_be_retried_with_wrong_state_or_answers() -> None:
    with talking(MODERN, "elicit", "echo") as talk:
        first = mrtr.begin(talk.wire, call("elicit"), willing(MODERN))

        assert mrtr.retry(talk.wire, first, state=altered(first.state)).asks
        assert mrtr.retry(talk.wire, first, responses={}).asks
        assert mrtr.retry(talk.wire, first, responses={"another": {"action": "accept"}}).asks
        sent = mrtr.retry(talk.wire, first, state=None).sent
        assert sent.keys() == {"name", "arguments", "inputResponses"}
        assert "inputResponses" not in mrtr.retry(talk.wire, first, responses=None).sent
        elsewhere = mrtr.retry(talk.wire, first, request=call("echo", text="x"))
        assert elsewhere.sent["requestState"] == "S1"
        assert said(elsewhere.reply) == "x"
        assert said(mrtr.retry(talk.wire, first).reply)


def test_refused_question_is_not_retried() -> None:
    stubborn = Client(capabilities={"elicitation": {}}, elicitation=answers.refuse())
    with talking(MODERN, "elicit") as talk:
        (only,) = mrtr.rounds(talk.wire, call("elicit"), stubborn)

        assert only.asks


def test_rounds_stop_at_their_limit() -> None:
    endless = Client(capabilities={"elicitation": {}}, elicitation=answers.decline())
    with talking(MODERN, "elicit") as talk:
        request = Request("tools/call", {**call("elicit").params, "requestState": "lost"})
        taken = mrtr.rounds(talk.wire, request, endless, most=1)

        assert len(taken) == 1


@pytest.mark.parametrize("state", ["S1", "", "a", "0123456789", "AAAA"])
def test_altered_state_differs_and_keeps_its_length(state: str) -> None:
    assert altered(state) != state
    assert len(altered(state)) == max(1, len(state))


@ERAS
def test_pending_request_can_be_watched_and_cancelled(revision: str) -> None:
    with talking(revision, "nap", "echo") as talk:
        pending = Pending(talk.wire, call("nap", duration=5), token=7)
        talk.wire.wait(pending.progress, 5.0)
        assert pending.progress()
        assert said(talk.run(call("echo", text="meanwhile"))) == "meanwhile"

        line = pending.cancel("enough")
        window = Window(talk.wire, 0.4)
        assert said(talk.run(call("echo", text="after"))) == "after"
        window.wait()

        assert pending.answers(line) == []
        late = [entry.at for entry, _ in pending.progress(line)]
        assert len(late) < 10
        assert pending.cancelled == line
        assert talk.wire.transcript.session.unanswered() == []


def test_progress_tokens_of_different_types_are_distinguished() -> None:
    with talking(LEGACY, "nap") as talk:
        number, text = (
            Pending(talk.wire, call("nap", duration=0.1), token=token) for token in (7, "7")
        )
        assert number.reply().answered
        assert text.reply().answered
        assert {m.value["params"]["progressToken"] for _, m in number.progress()} == {7}
        assert {m.value["params"]["progressToken"] for _, m in text.progress()} == {"7"}
        assert Pending(talk.wire, call("nap", duration=0)).progress() == []


def test_windows_elapse_concurrently() -> None:
    with talking(LEGACY) as talk:
        begun = now()
        windows = [Window(talk.wire, 0.3) for _ in range(4)]
        heard = [window.wait() for window in windows]

        assert heard == [[], [], [], []]
        assert now() - begun < 0.9


@pytest.mark.parametrize("name", ["work", "toil"])
def test_task_is_polled_until_its_result(name: str) -> None:
    with talking(LEGACY, name) as talk:
        task = Task(talk.wire, call(name, duration=0.2), ttl=1000, more={"x": 1})

        assert talk.wire.transcript[task.request.line].value["params"]["task"] == {
            "ttl": 1000,
            "x": 1,
        }
        assert task.id.startswith("t1")
        assert task.status == "working"
        assert task.wait(5.0)
        assert task.status == "completed"
        assert 0 < task.lasted < task.request.age
        assert said(task.result()) == "worked"
        assert len(task.states) > 1


def test_long_task_can_be_cancelled_without_waiting_for_it() -> None:
    with talking(LEGACY, "work") as talk:
        task = Task(talk.wire, call("work", duration=30))

        assert not task.wait(0.1)
        assert (task.cancel().result or {})["status"] == "cancelled"
        assert task.ended


def test_task_result_may_be_requested_early() -> None:
    with talking(LEGACY, "work") as talk:
        task = Task(talk.wire, call("work", duration=0.2))
        pending = task.start_result()
        assert task.get().answered
        assert said(pending.reply()) == "worked"
        assert task.start_result() is pending


def test_non_task_result_has_no_id_or_status() -> None:
    with talking(LEGACY, "echo") as talk:
        task = Task(talk.wire, Request("tools/list"))

        assert task.id == ""
        assert task.status is None
        assert not task.ended
        assert not task.wait(0.1)


@pytest.mark.parametrize("request_id", [None, "s-1", 5])
def test_subscription_is_acknowledged_notified_and_cancelled(request_id: Any) -> None:
    with talking(MODERN, "listen") as talk:
        stream = Subscription(talk.wire, {"toolsListChanged": True}, id=request_id)

        acknowledged = stream.acknowledged()
        assert acknowledged is not None
        assert stream.granted == {"toolsListChanged": True}
        talk.wire.quiet()
        assert [message.method for _, message in stream.heard()] == [
            "notifications/subscriptions/acknowledged",
            "notifications/tools/list_changed",
        ]
        assert not stream.refusal.answered
        line = stream.cancel()
        assert stream.heard(line) == []
        assert talk.wire.transcript.session.unanswered() == []


def test_refused_subscription_returns_at_once() -> None:
    with talking(MODERN) as talk:
        begun = now()
        stream = Subscription(talk.wire, {})

        assert stream.acknowledged() is None
        assert now() - begun < 2.0
        assert stream.refusal.code == -32601
        assert stream.granted == {}


def test_subscriptions_are_independent() -> None:
    with talking(MODERN, "listen") as talk:
        one, two = Subscription(talk.wire, {}), Subscription(talk.wire, {"toolsListChanged": True})
        assert one.acknowledged()
        assert two.acknowledged()
        talk.wire.quiet()
        assert len(one.heard()) == 1
        assert len(two.heard()) == 2
        assert all(message.role is Role.NOTIFICATION for _, message in two.heard())


def test_acknowledgment_of_another_subscription_is_ignored() -> None:
    with talking(MODERN, "listen") as talk:
        forgotten = Subscription(talk.wire, {"forgotten": True}, id=102)
        other = Subscription(talk.wire, {}, id="102")

        assert other.acknowledged()
        assert forgotten.acknowledged(0.1) is None


def test_only_clauses_without_a_judgement_go_unseen_at_the_end() -> None:
    rows = [clause(name, "toy", Level.MUST, LEGACY, conditional=True) for name in ("one", "two")]
    scenario = replace(SCENARIO, clauses=(*rows, clause("other", "toy", Level.MUST, MODERN)))
    with talking(LEGACY) as talk:
        judge = Judge(talk.server, scenario, rows, revision=LEGACY)
        judge("one", True, expected="anything")

        judge.otherwise_unseen(("one", "two", "other"), "it did nothing")

    assert [(one.clause, one.outcome) for one in judge.judgements] == [
        ("one", Outcome.PASS),
        ("two", Outcome.UNSEEN),
    ]
