"""Verdicts on recorded conversations, and their screen."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.catalog.loader import CLIENTS, load
from mcp_touchstone.catalog.revision import META
from mcp_touchstone.cli import main
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.tap import recording
from mcp_touchstone.tap.breaches import CLIENT
from mcp_touchstone.tap.judge import judge
from mcp_touchstone.tap.recording import Recorder
from mcp_touchstone.tap.replay import replay
from mcp_touchstone.wire.events import Happened, Side
from mcp_touchstone.wire.framing import Line
from tests.cases import cases

INFO = {"name": "x", "version": "1"}
TASKS: dict[str, Any] = {"requests": {"tools": {"call": {}}}}
OPENING: list[Any] = [
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": INFO,
        },
    },
    {
        "id": 1,
        "result": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": INFO,
        },
    },
    {"method": "notifications/initialized"},
]
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


def write(folder: Path, *said: tuple[Side, Any] | str, name: str = "1") -> Path:
    """Write a recording: the opening, then messages, bytes and events."""
    folder.mkdir(exist_ok=True)
    recorder = Recorder(folder / f"{name}.jsonl", {"command": ["server"]}, {})
    opening = zip((Side.CLIENT, Side.SERVER, Side.CLIENT), OPENING, strict=True)
    for one in (*opening, *said):
        if isinstance(one, str):
            recorder.event(one)
            continue
        side, message = one
        raw = message if isinstance(message, bytes) else _line(message)
        recorder.take(side, raw)
    recorder.end(Side.CLIENT)
    recorder.end(Side.SERVER)
    return folder


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def asked(number: int, method: str, **params: Any) -> tuple[Side, Any]:
    return Side.CLIENT, {"id": number, "method": method, "params": params}


def answered(number: int, **result: Any) -> tuple[Side, Any]:
    return Side.SERVER, {"id": number, "result": result}


def verdicts(folder: Path, side: str) -> dict[str, str]:
    """Return the outcome of each clause of a side."""
    report = folder.with_suffix(".json")
    main(["judge", str(folder), "--side", side, "--json", str(report), "-q"])
    found = json.loads(report.read_text())
    return {one["clause"]: one["outcome"] for one in found["verdicts"]}


def test_a_fault_of_the_server_is_found_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path / "r", (Side.SERVER, b"hello\n"))

    assert main(["judge", str(folder), "--side", "server"]) == 1

    out = capsys.readouterr().out
    assert "▸ 4 ← hello" in out
    assert f"mcp-touchstone judge {folder} --side server" in out
    assert verdicts(folder, "server")["stdio-stdout-only-messages"] == "fail"


def test_a_server_without_a_fault_passes(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "r",
        asked(2, "tools/list"),
        answered(2, tools=[]),
        Happened.CLIENT_CLOSED,
        Happened.SERVER_CLOSED,
        Happened.EXITED + "0",
    )

    assert main(["judge", str(folder), "--side", "server"]) == 0


def test_a_recorded_result_is_held_against_the_schema_of_its_tool(tmp_path: Path) -> None:
    counts = {"type": "object", "properties": {"count": {"type": "integer"}}}
    plain = {"name": "add", "inputSchema": {"type": "object"}}
    clause, outcomes = "tools-structured-content-conforms", []
    for number, count in (("right", 2), ("wrong", "2")):
        folder = write(
            tmp_path / number,
            asked(2, "tools/list"),
            answered(2, tools=[{**plain, "outputSchema": counts}]),
            asked(3, "tools/call", name="add", arguments={}),
            answered(3, content=[], structuredContent={"count": count}),
            Happened.CLIENT_CLOSED,
            Happened.SERVER_CLOSED,
            Happened.EXITED + "0",
        )
        outcomes.append(verdicts(folder, "server").get(clause))

    assert outcomes == ["pass", "fail"]


def test_a_server_that_closes_its_output_after_its_input_did_not_close_first(
    tmp_path: Path,
) -> None:
    exited = f"{Happened.EXITED}0"
    after = write(tmp_path / "a", Happened.CLIENT_CLOSED, Happened.SERVER_CLOSED, exited)
    first = write(tmp_path / "b", Happened.SERVER_CLOSED, Happened.CLIENT_CLOSED, exited)

    clause = "stdio-server-initiated-close"
    assert verdicts(after, "server")[clause] == "unseen"
    assert verdicts(first, "server")[clause] == "note"


def test_silence_at_the_end_of_a_recording_is_no_fault(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", asked(2, "tools/list"))

    assert "fail" not in verdicts(folder, "server").values()


def test_an_exit_soon_after_a_signal_is_no_fault_of_the_server(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "r",
        Happened.CLIENT_CLOSED,
        Happened.SIGNALLED + "SIGTERM",
        Happened.DIED + "SIGTERM",
    )

    assert not {"fail", "warn"} & set(verdicts(folder, "server").values())


@cases(("LARGEST", 1 << 20, 2**17, "1 MiB"), ("MOST_ROWS", 8, 2, "8 lines"))
def test_a_full_recording_is_judged_in_part_and_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    most: int,
    size: int,
    shown: str,
) -> None:
    monkeypatch.setattr(recording, name, most)
    folder = write(tmp_path / "full", *[(Side.STDERR, b"x" * size + b"\n")] * 9, "an event")
    (path,) = folder.glob("*.jsonl")

    said = capsys.readouterr().err
    status = main(["judge", str(folder)])

    assert path.stat().st_size <= 1 << 20
    full = f"the recording is full: it may have {shown}"
    assert said == f"mcp-touchstone tap: it records no more: {full}\n"
    assert status == 2
    assert full in " ".join(capsys.readouterr().out.split())


def test_a_recording_is_read_beyond_the_limits_of_a_live_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("SILENT_LIMIT", "ENTRIES_LIMIT"):
        monkeypatch.setattr(f"mcp_touchstone.wire.transcript.{limit}", 5)
    calls: list[Any] = []
    for n in range(2, 9):
        calls.append((Side.CLIENT, {"id": n, "method": "ping"}))
        calls.append((Side.SERVER, {"id": n, "result": {}}))

    (source,) = recording.read_all(write(tmp_path / "r", *calls))

    assert judge([source], CLIENT, Choice()).trouble == ""
    assert len(replay(source).lines) == len(OPENING) + len(calls)


def test_a_conversation_without_a_revision_is_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.jsonl"
    Recorder(path, {"command": ["server"]}, {}).event(Happened.NOT_STARTED + "No such file")

    assert main(["judge", str(path)]) == 2

    assert "the server could not be started: No such file" in capsys.readouterr().out


def test_the_screen_has_answers_beside_requests_and_faults_below_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(
        tmp_path / "r",
        asked(2, "tools/call", name="a\x1b[31m"),
        answered(2, content=[]),
        (Side.SERVER, b"noise \x1b[2J\n"),
        asked(3, "tools/list"),
    )

    assert main(["tap", "show", str(folder)]) == 0

    lines = capsys.readouterr().out.splitlines()
    call = next(line for line in lines if "tools/call" in line)
    assert "in line 5, " in call
    noise = next(n for n, line in enumerate(lines) if "noise" in line)
    assert "✗ stdio-stdout-only-messages" in lines[noise + 1]
    assert lines[-1] == "never answered: client line 7, 3 tools/list"
    assert "\x1b" not in "".join(lines)


def test_authorization_is_judged_with_the_session_that_a_client_falls_back_to(
    tmp_path: Path,
) -> None:
    recorder = Recorder(tmp_path / "1.jsonl", {}, {})
    side, message = asked(0, "server/discover", _meta=MODERN)
    recorder.take(side, _line(message))
    recorder.event(Happened.AUTHORIZATION + "authorize {}")
    recorder.take(side, _line(OPENING[0]))
    recorder.close()

    part = recording.read(tmp_path / "1.jsonl").fallback
    assert part is not None
    assert [row.side for row in part.rows] == [Side.CLIENT, Side.CLIENT]


def test_a_question_for_the_eras_is_judged_although_it_names_no_revision(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "1.jsonl", {}, {})
    refused = {"code": -32602, "message": "_meta lacks a member"}
    recorder.take(Side.CLIENT, _line({"id": 1, "method": "server/discover", "params": {}}))
    recorder.take(Side.SERVER, _line({"id": 1, "error": refused}))
    recorder.take(Side.CLIENT, _line(OPENING[0]))
    recorder.close()

    run = judge(recording.read_all(tmp_path), CLIENT, Choice(), ("client",))

    found = {v.clause.id for v in run.verdicts if v.outcome.name == "FAIL"}
    assert {"client-meta-version", "client-meta-capabilities"} <= found


@cases((False, "pass"), (True, "warn"))
def test_a_client_that_waited_in_vain_for_the_eras_may_fall_back(
    tmp_path: Path, in_time: bool, outcome: str
) -> None:
    """The result comes after its ``initialize``, or before; the clause is only a SHOULD."""
    discover = asked(1, "server/discover", _meta=MODERN)
    result = answered(1, resultType="complete", supportedVersions=["2026-07-28"], capabilities={})
    fallback = asked(2, "initialize", protocolVersion="2025-11-25", capabilities={})
    refusal = Side.SERVER, {"id": 2, "error": {"code": -32601, "message": "no"}}
    listed = asked(3, "tools/list", _meta=MODERN)
    said = [discover, result, fallback] if in_time else [discover, fallback, result]
    recorder = Recorder(tmp_path / "1.jsonl", {"command": ["server"]}, {})
    for side, message in (*said, refusal, listed):
        recorder.take(side, _line(message))
    recorder.close()

    assert verdicts(tmp_path, "client")["client-era-kept"] == outcome


@cases(
    ([], "2026-07-28", "fail"),
    (["2025-11-25"], "2025-11-25", "warn"),
    (["2025-11-25", "2026-07-28"], "2026-07-28", "fail"),
)
def test_a_client_that_only_looks_for_a_token_speaks_what_it_names_elsewhere(
    tmp_path: Path, names: list[str], revision: str, outcome: str
) -> None:
    probe = {"id": 1, "method": "server/discover", "params": {"_meta": MODERN}}
    said = {"2025-11-25": ("tools_call", OPENING[0]), "2026-07-28": ("stateless", probe)}
    for own in names:
        scenario, message = said[own]
        about = {"scenario": scenario, "revision": own}
        recorder = Recorder(tmp_path / f"{own}.jsonl", about, {})
        recorder.take(Side.CLIENT, _line(message))
        recorder.close()
    about = {"url": "http://127.0.0.1:1/mcp", "scenario": "auth-stranger", "revision": "2026-07-28"}
    recorder = Recorder(tmp_path / "token.jsonl", about, {})
    offers = dict.fromkeys(("resource", "place", "scope", "more"), "")
    server = json.dumps({**offers, "foreign": False, "defaults": False, "stranger": True})
    recorder.event(f"{Happened.AUTHORIZATION}server {server}")
    token = json.dumps({"client_id": "x", "issuer": 1, "known": False})
    recorder.event(f"{Happened.AUTHORIZATION}token {token}")
    recorder.close()

    clause = "client-auth-credentials-bound"
    run = judge(recording.read_all(tmp_path), CLIENT, Choice(), ("client",))

    (found,) = (v for v in run.verdicts if v.clause.id == clause and v.outcome.name != "UNSEEN")
    assert (found.revision, found.outcome.value) == (revision, outcome)
    shown = [said[names[-1]][0]] if names else []
    words = [word for name in ("auth-stranger", *shown) for word in ("--scenario", name)]
    assert [*found.judgements[0].replay] == words


@cases(("request", "fail"), ("", "unseen"))
def test_who_saw_no_challenge_has_no_url_of_its_metadata(
    tmp_path: Path, first: str, outcome: str
) -> None:
    about = {"url": "http://127.0.0.1:1/mcp", "scenario": "auth", "revision": "2026-07-28"}
    recorder = Recorder(tmp_path / "1.jsonl", about, {})
    offers = {"resource": "http://127.0.0.1:1/mcp", "place": "/metadata", "scope": "", "more": ""}
    facts = {
        "server": {**offers, "foreign": False, "defaults": False},
        "request": {"request": "POST initialize", "token": "none", "status": 401},
        "document": {"path": "/.well-known/oauth-protected-resource/mcp", "version": ""},
    }
    for place in filter(None, ("server", first, "document")):
        recorder.event(f"{Happened.AUTHORIZATION}{place} {json.dumps(facts[place])}")
    recorder.event(Happened.FAILED)
    recorder.close()

    run = judge(recording.read_all(tmp_path), CLIENT, Choice())

    (found,) = (v for v in run.verdicts if v.clause.id == "client-auth-metadata-url")
    assert found.outcome.value == outcome


@cases(
    ("auth-known", [False]),
    ("auth-pre-registered", [False]),
    ("auth-enterprise", []),
    ("auth-machine", []),
)
def test_a_client_id_that_was_given_for_another_grant_need_not_be_used(
    tmp_path: Path, scenario: str, passed: list[bool]
) -> None:
    about = {"url": "http://127.0.0.1:1/mcp", "scenario": scenario, "revision": "2026-07-28"}
    recorder = Recorder(tmp_path / "1.jsonl", about, {})
    offers = {"resource": "http://127.0.0.1:1/mcp", "place": "", "scope": "", "more": ""}
    given = {"client_id": "given", "documents": False, "stranger": False}
    asked = {"known": True, "registered": True, "state": True, "challenge": "S256"}
    facts = {
        "server": {**offers, **given, "foreign": False, "defaults": False},
        "authorize": {**asked, "client_id": "another"},
    }
    for place, said in facts.items():
        recorder.event(f"{Happened.AUTHORIZATION}{place} {json.dumps(said)}")
    recorder.close()
    (source,) = recording.read_all(tmp_path)

    record = replay(source, "2026-07-28").client_record()

    name = "client-auth-pre-registered"
    (rule,) = (r for r in load(CLIENTS).ambients if any(c.id == name for c in r.clauses))
    assert [one.passed for one in rule.watch(record) if one.clause == name] == passed


def test_reports_of_one_side_only_are_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path / "r")

    assert main(["judge", str(folder), "--json", str(tmp_path / "x")]) == 2
    assert "add --side" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("can", "support", "task", "outcome"),
    [
        ({}, "optional", True, "fail"),
        ({}, "required", False, "pass"),
        ({"tasks": TASKS}, "optional", True, "unseen"),
        ({"tasks": TASKS}, "required", True, "pass"),
        ({"tasks": TASKS}, "required", False, "warn"),
        ({"tasks": TASKS}, "forbidden", True, "warn"),
        ({"tasks": TASKS}, "forbidden", False, "pass"),
    ],
)
def test_a_call_is_a_task_where_the_server_and_the_tool_say_so(
    can: dict[str, Any],
    support: str,
    task: bool,
    outcome: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened = {"id": 1, "result": {**OPENING[1]["result"], "capabilities": {"tools": {}, **can}}}
    monkeypatch.setitem(globals(), "OPENING", [OPENING[0], opened, OPENING[2]])
    tool = {"name": "a", "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}}
    folder = write(
        tmp_path / "r",
        asked(2, "tools/list"),
        answered(2, tools=[tool]),
        asked(3, "tools/call", name="a", **{"task": {}} if task else {}),
    )

    assert verdicts(folder, "client")["client-task-support"] == outcome


def http_exchange(
    recorder: Recorder, number: int, verb: str, last: str, events: list[tuple[str, Any]], left: str
) -> None:
    """Record a request without a body of its own, and the stream of its response."""
    version = ("MCP-Protocol-Version", "2025-11-25")
    headers = (version, ("Mcp-Session-Id", "s"), *([("Last-Event-ID", last)] if last else []))
    recorder.http(Side.CLIENT, number, f"{verb} /mcp", headers)
    recorder.http(Side.SERVER, number, "200 OK", (("Content-Type", "text/event-stream"),))
    for own, message in events:
        raw = _line(message).rstrip()
        line = Line(raw, len(raw))
        recorder.http(Side.SERVER, number, line, event=["message", own, None])
    recorder.http(Side.EVENT, number, left)


@cases(("1-1", "pass"), ("1-2", "pass"), ("1-3", "warn"))
def test_a_client_that_left_resumes_from_the_last_event_it_read(
    tmp_path: Path, last: str, outcome: str
) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    recorder = Recorder(folder / "1.jsonl", {"url": "http://127.0.0.1:1/mcp"}, {})
    sample = {"messages": [], "maxTokens": 1, "_meta": {"progressToken": "p1"}}
    asks = {"id": "q1", "method": "sampling/createMessage", "params": sample}
    ping = {"id": "q2", "method": "ping"}
    events = [("1-1", ping), ("1-2", asks)]
    http_exchange(recorder, 1, "POST", "", events, Happened.CLIENT_LEFT)
    http_exchange(recorder, 2, "GET", last, events[1:], "")
    recorder.close()

    assert verdicts(folder, "client")["client-http-resumes"] == outcome
    # An event that is delivered again is no second request with the same token.
    assert verdicts(folder, "server")["progress-server-tokens"] == "pass"


@cases((True, "pass"), (False, "fail"))
def test_an_id_may_be_used_again_after_the_response_that_had_no_answer(
    tmp_path: Path, ended: bool, outcome: str
) -> None:
    """Two processes without a session have the same ids, one after the other."""
    recorder = Recorder(tmp_path / "1.jsonl", {"url": "http://127.0.0.1:1/mcp"}, {})
    meta = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}
    params = {"name": "a", "arguments": {}, "_meta": {**meta, "progressToken": 3}}
    raw = _line({"id": 3, "method": "tools/call", "params": params}).rstrip()
    for number in (1, 2):
        recorder.http(Side.CLIENT, number, "POST /mcp", (("Mcp-Method", "tools/call"),))
        recorder.http(Side.CLIENT, number, Line(raw, len(raw)))
        recorder.http(Side.SERVER, number, "200 OK", ())
        if ended:
            recorder.http(Side.EVENT, number, "")
    recorder.close()

    found = verdicts(tmp_path, "client")
    assert found["client-request-id-unique"] == outcome
    assert found["client-progress-token-unique"] == outcome
