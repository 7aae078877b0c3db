"""`tap --fault`: what a host should survive happens once, and the recording says so."""

import http.client
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_touchstone.cli import main
from mcp_touchstone.tap import proxy, recording
from mcp_touchstone.tap.faults import FaultError, faults, first_event
from mcp_touchstone.tap.proxy import Proxy
from mcp_touchstone.wire.events import Side
from tests.cases import cases
from tests.http_canned import fixed, serving
from tests.tap.test_proxy import JSON, STREAM, chunk

if os.name != "posix":
    pytest.skip("signals and groups of POSIX", allow_module_level=True)

SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {}}), flush=True)
"""
EVENT = b"id: 1\ndata: \n\n"


def call(number: int, method: str = "tools/call") -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method}).encode() + b"\n"


def tapped(folder: Path, fault: str, said: bytes) -> tuple[int, list[int]]:
    """Say something to a server behind a tap; return its status and the ids of the answers."""
    words = ["tap", "--report", str(folder), "--fault", fault, "--", sys.executable, "-c", SERVER]
    done = subprocess.run(
        [sys.executable, "-m", "mcp_touchstone", *words],
        input=said,
        stdout=subprocess.PIPE,
        check=False,
        timeout=120,
    )
    return done.returncode, [json.loads(line)["id"] for line in done.stdout.splitlines()]


def test_the_answer_to_the_first_call_is_dropped(tmp_path: Path) -> None:
    said = call(1, "ping") + call(2) + call(3)

    assert tapped(tmp_path, "drop-answer,delay=0.05", said) == (0, [1, 3])

    (found,) = recording.read_all(tmp_path)
    texts = [row.text for row in found.rows]
    assert "the tap dropped the answer" in texts
    assert sum(row.side is Side.SERVER for row in found.rows) == 3
    assert texts.index("the tap dropped the answer") > 0


def test_the_server_is_ended_at_the_first_call_of_the_first_process(tmp_path: Path) -> None:
    first, _ = tapped(tmp_path, "restart", call(1, "ping") + call(2))

    assert first == -9
    assert tapped(tmp_path, "restart", call(1, "ping") + call(2)) == (0, [1, 2])


@cases(
    ("drop-answer", None, "the tap dropped the answer"),
    ("close-stream", EVENT, "the tap closes the stream"),
)
def test_a_response_over_http_is_lost_or_ends_early(
    tmp_path: Path, fault: str, body: bytes | None, sentence: str
) -> None:
    answer = b'data: {"jsonrpc": "2.0", "id": 2, "result": {}}\n\n'
    canned = STREAM + chunk(EVENT + answer) + chunk(b"")
    with serving(fixed(canned)) as server:
        recorder = recording.recorder(tmp_path, {"url": server.url}, {})
        made = faults(fault, http=True).recorded_by(recorder)
        with Proxy(proxy.upstream(server.url), recorder, 0, made) as tap:
            tap.start()
            found = [_answer(tap.server_address[1], n) for n in (2, 3)]

    assert found == [body, EVENT + answer]
    (kept,) = recording.read_all(tmp_path)
    assert sentence in [row.text for row in kept.rows]


def _answer(port: int, number: int) -> bytes | None:
    """Return the body of the answer to a call; None if the connection was closed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/mcp", call(number), JSON)
        return connection.getresponse().read()
    except http.client.RemoteDisconnected:
        return None
    finally:
        connection.close()


@cases(
    ("close-stream", False, "on stdio"),
    ("restart", True, "over HTTP"),
    ("sleep", False, "drop-answer, restart, delay=SECONDS"),
    ("delay=x", False, "write seconds"),
    ("delay=1e9", False, "at most 600"),
    ("delay=nan", False, "write seconds"),
)
def test_a_word_that_is_no_fault_is_named(word: str, http: bool, said: str) -> None:
    with pytest.raises(FaultError) as error:
        faults(word, http=http)

    assert said in str(error.value)


def test_a_wrong_fault_leaves_no_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["tap", "--report", str(tmp_path / "r"), "--fault", "sleep", "--", "true"]

    assert main(words) == 2
    assert "--fault: 'sleep' is no fault on stdio" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


@cases((b"data: 1\n\ndata: 2\n\n", b"data: 1\n\n"), (b"a\r\n\r\nb", b"a\r\n\r\n"), (b"a", b"a"))
def test_the_first_event_of_a_stream_is_cut_off(piece: bytes, first: bytes) -> None:
    assert first_event(piece) == first
