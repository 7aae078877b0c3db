"""A server whose first answer is almost right: the fault is named, and the rest judged if possible.

Two tests cover servers that are silent: until something comes that no client sends, or once.
"""

import base64
import json
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_touchstone.catalog.loader import load
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.discovery.silence import explain_silence
from mcp_touchstone.engine.runner import Choice, Run, judge
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.wire.near_miss import CURES, READ_ON, Slip, corrected, near_miss
from tests.cases import cases
from tests.hostile_cases import hostile
from tests.http_canned import fixed, mcp, response, serving

pytestmark = pytest.mark.slow

REQUEST = {"jsonrpc": "2.0", "id": 101, "method": "initialize"}
JUDGED = (
    *("jsonrpc-message-kind", "jsonrpc-request-answered", "jsonrpc-response-id-echo"),
    *("lifecycle-initialize-response", "ping-empty-response", "stdio-newline-terminated"),
    *("stdio-stdout-only-messages", "stdio-utf8-output"),
)


def judged(server: str, kind: str, startup: float = 30.0) -> tuple[Run, dict[str, str]]:
    """Return the run, and the failures: clause -> what was seen."""
    target = Target(command=hostile(server, ROOT, argument=kind), timeout=startup)
    choice = Choice(select=JUDGED, revisions=("2025-11-25",), rules_fed=False)
    run = judge(target, load(), choice)
    failed = {
        verdict.clause.id: verdict.judgements[0].actual
        for verdict in run.verdicts
        if verdict.outcome is not Outcome.PASS
    }
    return run, failed


def is_repeated(run: Run) -> bool:
    return any(one.tried > 1 for verdict in run.verdicts for one in verdict.judgements)


@cases(
    ("string", "jsonrpc-response-id-echo", "without changing its type"),
    ("capital", "jsonrpc-message-kind", "misspelled members: Jsonrpc, Id, Result"),
    ("twice encoded", "stdio-stdout-only-messages", "encode the message once"),
    ("sse", "stdio-stdout-only-messages", "server-sent events are for HTTP"),
    ("bom", "stdio-stdout-only-messages", "byte order mark; write UTF-8 without it"),
    ("utf-16-le", "stdio-utf8-output", "UTF-16 or UTF-32"),
    ("quoted", "stdio-stdout-only-messages", "a line that is not JSON"),
)
def test_fault_of_every_message_is_one_failure_and_the_rest_is_judged(
    kind: str, clause: str, words: str
) -> None:
    run, failed = judged("answers_beside_the_id", kind)

    assert set(failed) == {clause}, failed
    assert words in failed[clause]
    assert not run.trouble


@pytest.mark.parametrize("kind", ["null", "missing", "constant"])
def test_answers_that_match_no_request_fail_at_once(kind: str) -> None:
    run, failed = judged("answers_beside_the_id", kind)

    assert set(failed) == {"jsonrpc-response-id-echo"}
    assert "copy the" in failed["jsonrpc-response-id-echo"]
    assert "talked to" in run.trouble
    assert not is_repeated(run)  # each repetition would wait for the first answer again


@cases(
    ("answers_beside_the_id", "stderr", "jsonrpc-request-answered", "JSON-RPC to stderr"),
    ("answers_only_after", "headers", "stdio-stdout-only-messages", "Content-Length"),
    ("answers_only_after", "blank lines", "stdio-newline-terminated", "after an empty line"),
    ("answers_only_after", "initialized", "lifecycle-initialize-response", "initialized"),
    ("answers_only_after", "buffered", "stdio-newline-terminated", "its output is buffered"),
    ("answers_only_after", "end of input", "stdio-newline-terminated", "end of its input"),
)
def test_silent_server_gets_its_cause(server: str, kind: str, clause: str, words: str) -> None:
    run, failed = judged(server, kind)

    assert set(failed) == {clause}, failed
    assert words in failed[clause]
    assert words in run.trouble
    assert not is_repeated(run)  # each repetition would wait for the first answer again


def test_over_http_no_rule_of_stdio_is_broken() -> None:
    stream = response("200 OK", "text/event-stream", b'data: {"jsonrpc": "2.\ndata: 0"}\n\n')
    with serving(fixed(stream)) as server:
        target = Target(url=server.url)
        run = judge(target, load(), Choice(revisions=("2025-11-25",), rules_fed=False))

    assert {verdict.clause.id for verdict in run.of(Outcome.FAIL)} == {"streams-messages-only"}


def test_over_http_a_message_encoded_twice_is_no_message() -> None:
    def twice(message: bytes) -> bytes:
        data = json.dumps(message.decode()).encode()
        return response("200 OK", "text/event-stream", b"data: " + data + b"\n\n")

    with serving(mcp(written=twice)) as server:
        wanted = Choice(
            select=("streams-messages-only", "ping-empty-response"), revisions=("2025-11-25",)
        )
        run = judge(Target(url=server.url), load(), wanted)

    assert {verdict.clause.id for verdict in run.of(Outcome.FAIL)} == {"streams-messages-only"}
    assert CURES[Slip.ENCODED_TWICE] in run.trouble


def test_a_trace_that_quotes_a_message_is_not_taken_for_one() -> None:
    trace = '    reply = {"jsonrpc": "2.0", "id": 1}\\n'
    words = f"import sys; sys.stdin.readline(); sys.stderr.write('{trace}'); sys.exit(1)"
    target = Target(command=(sys.executable, "-c", words))

    run = judge(target, load(), Choice(select=("ping",), revisions=("2025-11-25",)))

    assert "status 1" in run.trouble
    assert "stderr" not in run.trouble


def test_slow_first_start_is_not_taken_for_silence() -> None:
    run, failed = judged("is_slow_at_its_first_start", "6.5", startup=12.0)

    assert failed == {}
    assert not run.trouble


@cases(
    ({"jsonrpc": "2.0", "id": 101, "result": {}}, None),
    ({"jsonrpc": "2.0", "id": 101, "method": "ping"}, None),
    ({"jsonrpc": "2.0", "id": "x", "method": "ping"}, None),
    ({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}, None),
    ({"id": 101}, None),
    ([{"jsonrpc": "2.0", "id": "101", "result": {}}], None),
    ({"jsonrpc": "2.0", "id": "101", "result": {}}, Slip.ID_AS_TEXT),
    ({"jsonrpc": "2.0", "id": [101], "result": {}}, Slip.ID_IN_A_BOX),
    ({"jsonrpc": "2.0", "id": "100", "result": {}}, Slip.ID_OTHER),
    ({"jsonrpc": "2.0", "error": {}}, Slip.ID_MISSING),
)
def test_only_a_response_can_be_a_near_miss(value: Any, slip: Slip | None) -> None:
    found = near_miss(b"", value, REQUEST)

    assert (found.slip if found else None) is slip


PLAIN = b'{"jsonrpc": "2.0", "id": 101, "result": {}}'


@cases(
    (PLAIN.replace(b'"', b"'"), Slip.PYTHON_TEXT),
    (b"INFO 12:00:01 send " + PLAIN, Slip.TEXT_BEFORE),
    (b"\x1e" + PLAIN, Slip.CONTROLS),
    (PLAIN + b"\0", Slip.CONTROLS),
    (base64.b64encode(PLAIN), Slip.BASE64),
    (b"data: " + PLAIN, Slip.EVENT_STREAM),
)
def test_answer_inside_another_text_is_a_near_miss(raw: bytes, slip: Slip) -> None:
    found = near_miss(raw, None, REQUEST)

    assert found is not None
    assert (found.slip, found.meant["id"]) == (slip, 101)


@cases(
    b"Listening on port 3000",
    b"{'a': 1}",
    b"data: {}",
    b"\x1e{}",
    b"e30=",
    b'x{"id":7}',
    b"{" * 9999,
)
def test_other_lines_are_no_near_miss(raw: bytes) -> None:
    assert near_miss(raw, None, REQUEST) is None


def test_exact_id_is_never_corrected() -> None:
    said = {"jsonrpc": "2.0", "id": "7", "result": {}}

    assert corrected(Slip.ID_AS_TEXT, b"", said, ["7", 7]) is None
    assert corrected(Slip.ID_AS_TEXT, b"", said, [7]) == {**said, "id": 7}
    assert corrected(Slip.ID_AS_TEXT, b"", said, [8]) is None


def test_each_fault_has_a_cure() -> None:
    assert set(CURES) == set(Slip)
    assert set(Slip) - READ_ON == {Slip.ID_OTHER, Slip.ID_MISSING}


def test_silence_is_not_explained_before_the_first_request() -> None:
    """A busy machine may not have written the first request yet."""
    never_asked: Any = SimpleNamespace(
        transcript=NoTranscript(), gone=False, pace=SimpleNamespace(startup=0.0)
    )
    over = threading.Event()
    timer = threading.Timer(0.3, over.set)
    timer.start()

    def spawn(revision: str, label: str, *, judged: bool = True) -> Connection:
        raise AssertionError("a process was started")

    assert explain_silence(spawn, {"2025-11-25": never_asked}, over) is None
    timer.join()


class NoTranscript(list[Any]):
    spoke = False
