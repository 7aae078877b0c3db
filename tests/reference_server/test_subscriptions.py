"""Change notifications of the reference server, in sessions and in streams of 2026-07-28."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reference_server import bundle
from reference_server.features import subscriptions
from reference_server.features.subscriptions import watcher
from reference_server.settings import Settings
from reference_server.surface import Surface
from reference_server.workspace.tree import Workspace
from tests.cases import cases
from tests.client_questions import tool
from tests.conftest import eventually
from tests.reference_client import (
    LEGACY,
    MODERN,
    InProcess,
    Message,
    ask,
    code_of,
    initialize,
    modern,
    notification,
)

ID = "io.modelcontextprotocol/subscriptionId"
A, B = "workspace:///a.txt", "workspace:///sub/b.txt"


def offer(surface: Surface) -> None:
    """Add tools that change files and lists inside the server."""

    def toggle(_call: Any, _arguments: Any) -> dict[str, Any]:
        box = surface.toolbox
        box.remove("extra") if "extra" in box.tools() else box.add(tool("extra", toggle))
        return {}

    def write(_call: Any, arguments: Any) -> dict[str, Any]:
        workspace = surface.workspace
        edit = workspace.edit("test")
        path, text = arguments["path"], arguments["text"]
        before = workspace.find(path)
        if text:
            edit.put(path, text.encode(), before=before)
        elif before:
            edit.remove(before)
        edit.commit()
        return {}

    def announce(_call: Any, arguments: Any) -> dict[str, Any]:
        part = surface.part("features.subscriptions")
        if "uri" in arguments:
            part.resource_updated(arguments["uri"])
        else:
            part.list_changed("prompts")
            part.list_changed("resources")
        return {}

    for name, work in (("toggle", toggle), ("write", write), ("announce", announce)):
        surface.toolbox.add(tool(name, work))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    (place / "sub").mkdir(parents=True)
    (place / ".git").mkdir()
    (place / "a.txt").write_bytes(b"one")
    (place / "sub" / "b.txt").write_bytes(b"two")
    return place


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "PERIOD", 0.02)


@pytest.fixture
def client(root: Path, quick: None) -> Iterator[InProcess]:
    with InProcess(Settings([str(root)]), [*bundle.ALL_FEATURES, offer]) as one:
        yield one


def answer(client: InProcess, question: Message) -> Message:
    """Send a request and return its answer; no other message may arrive."""
    client.send(question)
    heard: Message = client.hear()
    assert heard.get("id") == question["id"], heard
    return heard


def listen(client: InProcess, request_id: Any, **wanted: Any) -> Message:
    """Open a stream and return the acknowledged subscriptions."""
    client.send(modern(request_id, "subscriptions/listen", notifications=wanted))
    heard = client.hear()
    assert heard["method"] == "notifications/subscriptions/acknowledged"
    assert heard["params"]["_meta"] == {ID: request_id}
    assert type(heard["params"]["_meta"][ID]) is type(request_id)
    honoured: Message = heard["params"]["notifications"]
    return honoured


def run(client: InProcess, revision: str, tool: str, **arguments: Any) -> list[Message]:
    """Call a tool and return the notifications before and right after its answer."""
    client.send(ask(revision, "run", "tools/call", name=tool, arguments=arguments))
    heard: list[Message] = []
    while True:
        message = client.hear()
        if message.get("id") == "run":
            assert "isError" not in message["result"], message
            return heard
        heard.append(message)


def updated(uri: str, request_id: Any = None) -> Message:
    params: Message = {"uri": uri}
    if request_id is not None:
        params["_meta"] = {ID: request_id}
    return notification("notifications/resources/updated", params)


def list_changed(name: str, request_id: Any = None) -> Message:
    method = f"notifications/{name}/list_changed"
    return notification(method, *([{"_meta": {ID: request_id}}] if request_id is not None else []))


def put(root: Path, path: str, data: bytes) -> None:
    """Write a file in one step: a watcher that looks between two steps sees two changes."""
    staged = root.parent / "staged"
    staged.write_bytes(data)
    staged.replace(root / path)


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "mcp-watcher"]


@pytest.mark.parametrize("revision", [LEGACY[0], LEGACY[-1]])
def test_session_that_listed_resources_is_notified_of_new_files(
    client: InProcess, root: Path, revision: str
) -> None:
    client.open(revision)
    put(root, "before.txt", b"")
    assert client.hears_nothing(0.1)
    assert not watchers()
    answer(client, ask(revision, 1, "resources/list"))
    assert client.hears_nothing(0.1)
    put(root, "after.txt", b"")
    assert client.hear() == list_changed("resources")
    put(root, "after.txt", b"more")
    put(root, ".git/new", b"denied, so no resource")
    assert client.hears_nothing(0.1)
    (root / "after.txt").unlink()
    assert client.hear() == list_changed("resources")


def test_watcher_stops_before_the_roots_are_closed(
    root: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = Workspace.close

    def close_slowly(workspace: Workspace) -> None:
        (root / "a.txt").unlink()  # simulates a look at a directory that is being closed
        time.sleep(0.3)
        let_go(workspace)

    monkeypatch.setattr(Workspace, "close", close_slowly)
    (root / "a.txt").write_text("a")
    with InProcess(Settings([str(root)])) as client:
        client.open("2025-11-25")
        answer(client, ask("2025-11-25", 1, "resources/list"))
        client.end_input()

        assert list(client.rest()) == []


def test_change_between_two_lists_is_announced_with_the_second(root: Path) -> None:
    with InProcess(Settings([str(root)])) as client:
        client.open("2025-11-25")
        answer(client, ask("2025-11-25", 1, "resources/list"))
        put(root, "new.txt", b"")
        client.send(ask("2025-11-25", 2, "resources/list"))
        heard = [client.hear(), client.hear()]
    assert list_changed("resources") in heard


@pytest.mark.parametrize("revision", [LEGACY[0], LEGACY[-1]])
def test_session_is_notified_of_changed_tools(client: InProcess, revision: str) -> None:
    client.open(revision)
    assert run(client, revision, "toggle") == [], "no list was shown yet"
    answer(client, ask(revision, 1, "tools/list"))
    assert run(client, revision, "toggle") == [list_changed("tools")]


def test_session_gets_no_notification_before_initialized(client: InProcess, root: Path) -> None:
    client.send(initialize("2025-11-25"))
    client.hear()
    answer(client, ask("2025-11-25", 1, "resources/subscribe", uri=A))
    answer(client, ask("2025-11-25", 2, "resources/list"))
    answer(client, ask("2025-11-25", 3, "tools/list"))
    put(root, "a.txt", b"another")
    put(root, "new.txt", b"")
    assert run(client, "2025-11-25", "toggle") == []
    assert client.hears_nothing(0.1)
    client.send(notification("notifications/initialized"))
    assert [client.hear(), client.hear()] == [updated(A), list_changed("resources")]


def test_undeclared_list_change_is_not_announced(root: Path) -> None:
    def undeclare(surface: Surface) -> None:
        surface.methods.capability("tools", {}, ("2025-11-25",))

    features = [bundle.resources, bundle.subscriptions, undeclare, offer]
    with InProcess(Settings([str(root)]), features) as client:
        client.open("2025-11-25")
        answer(client, ask("2025-11-25", 1, "tools/list"))
        assert run(client, "2025-11-25", "announce") == [list_changed("resources")]
        assert run(client, "2025-11-25", "toggle") == []


def test_feature_can_announce_one_resource(client: InProcess) -> None:
    client.open("2025-11-25")
    answer(client, ask("2025-11-25", 1, "resources/subscribe", uri=A))
    assert run(client, "2025-11-25", "announce", uri=B) == []
    assert run(client, "2025-11-25", "announce", uri=A) == [updated(A)]


@pytest.mark.parametrize("revision", LEGACY)
def test_only_existing_resources_can_be_subscribed_to(client: InProcess, revision: str) -> None:
    client.open(revision)
    for uri in ("x://y", "workspace:///nope", "workspace:///sub", "workspace:///.git/config"):
        refused = answer(client, ask(revision, 1, "resources/subscribe", uri=uri))
        assert code_of(refused) == -32002
    for uri in (A, "workspace:///nope"):
        left = answer(client, ask(revision, 1, "resources/unsubscribe", uri=uri))
        assert left["result"] == {}


def test_number_of_subscriptions_is_bounded(
    client: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MOST_URIS", 1)
    client.open("2025-11-25")
    for uri, accepted in ((A, True), (A, True), (B, False)):
        heard = answer(client, ask("2025-11-25", 1, "resources/subscribe", uri=uri))
        assert ("result" in heard) == accepted
    wanted = {"resourceSubscriptions": [A, B]}
    refused = answer(client, modern(2, "subscriptions/listen", notifications=wanted))
    assert code_of(refused) == -32602


@pytest.mark.parametrize("request_id", [7, "7", "seven", 7.0])
def test_stream_is_acknowledged_and_notified(
    client: InProcess, root: Path, request_id: Any
) -> None:
    wanted = {"toolsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": [A]}
    assert listen(client, request_id, **wanted) == wanted
    answer(client, modern("t", "tools/list"))
    answer(client, modern("r", "resources/list"))
    put(root, "a.txt", b"another")
    assert client.hear() == updated(A, request_id)
    put(root, "new.txt", b"")
    assert client.hear() == list_changed("resources", request_id)
    assert run(client, MODERN, "toggle") == [list_changed("tools", request_id)]
    assert client.hears_nothing(0.1)


@cases(
    {},
    {"notifications": None},
    {"notifications": []},
    {"notifications": {"toolsListChanged": "true"}},
    {"notifications": {"promptsListChanged": None}},
    {"notifications": {"resourcesListChanged": 1}},
    {"notifications": {"resourceSubscriptions": A}},
    {"notifications": {"resourceSubscriptions": None}},
    {"notifications": {"resourceSubscriptions": [1]}},
    {"notifications": {"resourceSubscriptions": ["not a uri"]}},
)
def test_invalid_filter_is_refused(client: InProcess, params: Message) -> None:
    assert code_of(answer(client, modern(1, "subscriptions/listen", **params))) == -32602


def test_changes_are_not_announced_without_a_stream(client: InProcess, root: Path) -> None:
    answer(client, modern("t", "tools/list"))
    answer(client, modern("r", "resources/list"))
    put(root, "new.txt", b"")
    assert run(client, MODERN, "toggle") == []
    assert client.hears_nothing(0.1)
    assert not watchers()


def test_cancelled_stream_is_silent_and_its_watch_ends(client: InProcess, root: Path) -> None:
    listen(client, 1, resourceSubscriptions=[A], resourcesListChanged=True)
    client.send(notification("notifications/cancelled", {"requestId": 1}))
    answer(client, modern(2, "server/discover"))
    put(root, "a.txt", b"another")
    put(root, "new.txt", b"")
    assert client.hears_nothing(0.1)
    eventually(lambda: not watchers())
    assert listen(client, 1, resourceSubscriptions=[A]) == {"resourceSubscriptions": [A]}
    put(root, "a.txt", b"and another")
    assert client.hear() == updated(A, 1)


def test_tools_subscription_starts_no_watcher(client: InProcess) -> None:
    listen(client, 1, toolsListChanged=True)
    assert not watchers()


def test_change_between_acknowledgment_and_first_look_is_announced(root: Path) -> None:
    with InProcess(Settings([str(root)]), [*bundle.ALL_FEATURES, offer]) as client:
        listen(client, 1, resourceSubscriptions=[A], resourcesListChanged=True)
        put(root, "a.txt", b"another")
        put(root, "new.txt", b"")
        assert [client.hear(), client.hear()] == [updated(A, 1), list_changed("resources", 1)]


def test_subscription_to_lines_is_notified_of_a_file_change(client: InProcess, root: Path) -> None:
    uri = A + "?lines=1-1"
    assert listen(client, 1, resourceSubscriptions=[uri]) == {"resourceSubscriptions": [uri]}
    put(root, "a.txt", b"another")
    assert client.hear() == updated(uri, 1)


def test_stream_and_session_are_both_notified(client: InProcess, root: Path) -> None:
    client.open("2025-06-18")
    answer(client, ask("2025-06-18", 1, "resources/subscribe", uri=A))
    listen(client, 2, resourceSubscriptions=[A])
    put(root, "a.txt", b"another")
    assert [client.hear(), client.hear()] == [updated(A), updated(A, 2)]


def test_number_of_streams_is_bounded(client: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MOST_STREAMS", 1)
    listen(client, 1)
    refused = answer(client, modern(2, "subscriptions/listen", notifications={}))
    assert code_of(refused) == -32600
    client.send(notification("notifications/cancelled", {"requestId": 1}))
    listen(client, 2)


def test_open_stream_does_not_delay_the_exit(root: Path) -> None:
    started = time.monotonic()
    with InProcess(Settings([str(root)])) as client:
        listen(client, 1, resourceSubscriptions=[A], resourcesListChanged=True)
        client.end_input()
        client.rest()
    assert client.code == 0
    assert time.monotonic() - started < 5
    eventually(lambda: not watchers())
