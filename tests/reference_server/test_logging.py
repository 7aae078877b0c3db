"""Log messages to the client: levels, revisions, rate and size."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reference_server.bundle import client_log as feature
from reference_server.features import client_log
from reference_server.protocol.calls import Call
from reference_server.protocol.modern import LOG_LEVELS
from reference_server.settings import Settings
from reference_server.surface import Surface
from tests.client_questions import tool
from tests.reference_client import MODERN, InProcess, Message, ask, modern_as, request

LEVEL = "io.modelcontextprotocol/logLevel"


def talkative(surface: Surface) -> None:
    """Offer a tool that logs as its arguments request, or once at each level."""

    def work(call: Call, arguments: Message) -> Message:
        for number, level in enumerate(arguments.get("levels", LOG_LEVELS)):
            call.log(level, arguments.get("data", number), arguments.get("logger"))
        return {}

    surface.toolbox.add(tool("talk", work))


@contextmanager
def talking(revision: str, *features: Any) -> Iterator[InProcess]:
    settings = Settings(deprecated=True)
    with InProcess(settings, [*(features or (feature,)), talkative]) as client:
        client.open(revision)
        yield client


def talk(revision: str, level: str | None = None, **arguments: Any) -> Message:
    if revision == MODERN:
        meta = {} if level is None else {LEVEL: level}
        return modern_as({}, "t", "tools/call", name="talk", arguments=arguments, _meta=meta)
    return ask(revision, "t", "tools/call", name="talk", arguments=arguments)


def messages(client: InProcess, message: Message) -> list[Message]:
    """Call, and return the params of the log messages before the answer; none may follow it."""
    client.send(message)
    heard = [client.hear()]
    while "id" not in heard[-1]:
        heard.append(client.hear())
    assert heard[-1]["id"] == "t"
    assert client.hears_nothing(0.05)
    assert {one["method"] for one in heard[:-1]} <= {"notifications/message"}
    return [one["params"] for one in heard[:-1]]


def levels(client: InProcess, message: Message) -> list[str]:
    """Return the levels of the messages of the tool itself."""
    return [one["level"] for one in messages(client, message) if isinstance(one["data"], int)]


def set_level(client: InProcess, level: Any) -> Message:
    client.send(request("s", "logging/setLevel", {"level": level}))
    answer = client.hear()
    assert isinstance(answer, dict)
    return answer


def test_session_level_and_request_level_are_independent() -> None:
    with talking("2025-11-25") as client:
        set_level(client, "emergency")
        assert levels(client, talk(MODERN, "debug")) == list(LOG_LEVELS)
        assert levels(client, talk("2025-11-25")) == ["emergency"]
        set_level(client, "debug")
        assert levels(client, talk(MODERN)) == []


def test_nothing_is_sent_without_the_logging_feature() -> None:
    with talking(MODERN, lambda _surface: None) as client:
        assert levels(client, talk(MODERN, "debug")) == []


def test_log_rate_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_log, "RATE", 100.0)
    with talking("2025-11-25") as client:
        flood = talk("2025-11-25", levels=["error"] * 5000)
        assert client_log.BURST <= len(levels(client, flood)) < 500


def test_long_log_data_is_cut() -> None:
    with talking("2025-11-25") as client:
        (params,) = messages(client, talk("2025-11-25", levels=["error"], data="x" * 100_000))
    assert isinstance(params["data"], str)
    assert len(params["data"]) < 5000


def test_session_log_reports_calls_failures_and_refusals_by_level(tmp_path: Path) -> None:
    wanted = {
        "debug": ["called", "succeeded", "failed", "called", "failed", "refused"],
        "notice": ["failed", "failed", "refused"],
        "warning": [],
    }
    (tmp_path / "a.txt").write_text("secret")
    for level, events in wanted.items():
        heard = []
        with InProcess(Settings([str(tmp_path)])) as client:
            client.open("2025-11-25")
            set_level(client, level)
            for asked in (
                ("tools/call", {"name": "file_read", "arguments": {"path": "a.txt"}}),
                ("tools/call", {"name": "file_read", "arguments": {}}),
                ("tools/call", {"name": "file_read", "arguments": {"path": ".git/config"}}),
                ("resources/read", {"uri": "workspace:///.git/config"}),
            ):
                heard += messages(client, request("t", *asked))
        assert [one["data"]["event"] for one in heard] == events
        assert all(one["data"]["request_id"].startswith("req_") for one in heard)
        assert "secret" not in json.dumps(heard)
        codes = [one["data"]["code"] for one in heard if "code" in one["data"]]
        assert codes == (["INVALID_ARGUMENTS", "DENIED", -32002] if events else [])
