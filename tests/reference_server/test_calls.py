"""Calls as seen by a handler: progress, cancellation, detaching, and the end of workers."""

import threading
import time
from typing import Any

import pytest

from reference_server.protocol import progress
from reference_server.protocol.calls import Call, Detached
from reference_server.protocol.workers import Workers
from reference_server.surface import Surface
from tests.cases import cases
from tests.client_questions import FORM, tool
from tests.conftest import eventually
from tests.reference_client import (
    LEGACY,
    MODERN,
    InProcess,
    Message,
    initialize,
    modern_as,
    notification,
    request,
    result,
)


class Handler:
    """A feature with one tool that runs the given function."""

    def __init__(self, work: Any) -> None:
        self.work = work

    def __call__(self, surface: Surface) -> None:
        surface.toolbox.add(tool("handled", self.work))


def call_handled(revision: str, request_id: Any = 1, **meta: Any) -> Message:
    if revision == MODERN:
        return modern_as({}, request_id, "tools/call", name="handled", _meta=meta)
    return request(request_id, "tools/call", {"name": "handled", "_meta": meta})


@cases(*((revision, "t") for revision in (*LEGACY, MODERN)), *(("2025-11-25", t) for t in ("", 0)))
def test_progress_increases_and_ends_before_the_answer(
    monkeypatch: pytest.MonkeyPatch, revision: str, token: Any
) -> None:
    monkeypatch.setattr(progress, "SHORTEST_GAP", 0.0)

    def work(call: Call, _arguments: Message) -> Message:
        for done in (1, 1, 0.5, float("nan"), float("inf"), 2, 3):
            call.progress(done, 3, "reading\x07")
        return {}

    with InProcess(features=[Handler(work)]) as client:
        client.open(revision)
        client.send(call_handled(revision, progressToken=token))
        heard = [client.hear()]
        while "id" not in heard[-1]:
            heard.append(client.hear())
        assert client.hears_nothing()
    reported = [message["params"] for message in heard[:-1]]
    assert {message["method"] for message in heard[:-1]} == {"notifications/progress"}
    assert all(one["progressToken"] == token for one in reported)
    assert all(type(one["progressToken"]) is type(token) for one in reported)
    values = [one["progress"] for one in reported]
    assert values == sorted(set(values))
    assert (values[0], values[-1]) == (1, 3)
    assert {one["total"] for one in reported} == {3}
    expected = {None} if revision == "2024-11-05" else {r"reading\x07"}
    assert {one.get("message") for one in reported} == expected


def test_progress_is_sent_only_on_request_and_is_rate_limited() -> None:
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
def test_call_describes_the_client_on_one_short_line(revision: str) -> None:
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


def test_cancel_callbacks_are_called_once() -> None:
    called: list[str] = []
    entered, left = threading.Event(), threading.Event()

    def work(call: Call, _arguments: Message) -> Message:
        call.on_cancel(lambda: called.append("early"))
        entered.set()
        eventually(lambda: call.cancelled)
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


def test_detached_call_continues_after_its_answer() -> None:
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
        reported = client.hear()["params"]
        assert (reported["progress"], reported["_meta"]) == (2, {"about": "it"})
        question = client.hear()
        assert question["params"] == {**FORM, "_meta": {"about": "it"}}
        client.send(result(question, action="cancel"))
        assert client.hear()["params"] == {"answer": "cancel", "_meta": {"about": "it"}}
        assert client.hears_nothing()
    assert waits == [True, False]
    assert not twins[0].cancelled


def test_closing_workers_waits_for_running_work() -> None:
    workers, began, written = Workers(1, 1), threading.Event(), threading.Event()

    def write() -> None:
        began.set()
        eventually(lambda: workers._ended._waiters)  # type: ignore[attr-defined]
        written.set()

    workers.submit(write)
    assert began.wait(20)
    workers.close(20)

    assert written.is_set()


def test_closing_workers_does_not_wait_for_endless_work() -> None:
    workers, stuck = Workers(1, 1), threading.Event()

    def hang() -> None:
        stuck.wait()

    workers.submit(hang)
    begun = time.monotonic()

    workers.close(0.1)

    assert time.monotonic() - begun < 20
    stuck.set()
