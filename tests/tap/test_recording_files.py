"""Recordings that somebody else wrote: refused with a line, or read and judged like any other."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.cli import main
from mcp_touchstone.tap import recording, show
from mcp_touchstone.tap.recording import Recorder
from mcp_touchstone.wire.events import Happened, Side
from tests.odd_values import mutants
from tests.tap.test_judge import answered, asked, write

OFFERS = {
    "resource": "http://127.0.0.1:1/mcp",
    "place": "/metadata",
    "scope": "read",
    "more": "",
    "foreign": False,
    "defaults": False,
    "tenant": "",
    "places": ["/a"],
    "metadata": [],
    "response": [],
}
NOTES: dict[str, dict[str, Any]] = {
    "server": OFFERS,
    "document": {"path": "/metadata", "version": "2025-03-26"},
    "metadata": {"path": "/a"},
    "register": {"client_id": "c", "application_type": "native"},
    "authorize": {
        "client_id": "c",
        "redirect_uri": "http://localhost/",
        "scope": "read",
        "known": True,
        "resource": "http://127.0.0.1:1/mcp",
        "registered": True,
        "challenge": "S256",
        "state": True,
    },
    "token": {"client_id": "c", "known": True, "code": True, "verified": True},
    "request": {"request": "POST initialize", "token": "valid", "status": 403},
}


def rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def over_http(folder: Path) -> Path:
    """Write a recording of one request and its answer over HTTP."""
    folder.mkdir()
    recorder = Recorder(folder / "1.jsonl", {"url": "http://127.0.0.1:1/mcp"}, {})
    opening = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}},
    }
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-11-25"}}
    recorder.http(Side.CLIENT, 1, "POST /mcp", (("Host", "a"), ("Mcp-Session-Id", "b")))
    recorder.http(Side.CLIENT, 1, json.dumps(opening))
    recorder.http(Side.SERVER, 1, "200 OK", (("Content-Type", "text/event-stream"),))
    recorder.http(Side.SERVER, 1, json.dumps(answer), event=["message", "1", 5])
    recorder.http(Side.EVENT, 1, "")
    for place, facts in NOTES.items():
        recorder.event(f"{Happened.AUTHORIZATION}{place} {json.dumps(facts)}")
    recorder.close()
    return folder


def is_usable(path: Path) -> bool:
    """Return whether a recording is read; then it is shown, with the rules that it breaks."""
    try:
        found = recording.read_all(path)
    except InputError:
        return False
    for one in found:
        assert list(show.text(one, 80))
    return True


@pytest.mark.parametrize("kind", ["stdio", "http"])
def test_a_wrong_member_is_refused_or_does_no_harm(kind: str, tmp_path: Path) -> None:
    said = (asked(2, "tools/list"), answered(2, tools=[]), (Side.STDERR, b"\xff\n"))
    ended = (Happened.CLIENT_CLOSED, f"{Happened.EXITED}0")
    folder = tmp_path / "r"
    source = rows(
        (write(folder, *said, *ended) if kind == "stdio" else over_http(folder)) / "1.jsonl"
    )
    path, usable = tmp_path / "a.jsonl", 0
    seen: set[tuple[str, ...]] = set()
    for n, row in enumerate(source):
        form = (*row, row.get("from", ""))
        for mutant in mutants(row) if form not in seen else ():
            found = [*source[:n], mutant, *source[n + 1 :]]
            path.write_text("".join(f"{json.dumps(one)}\n" for one in found))
            usable += is_usable(path)
        seen.add(form)

    assert usable, "members that nobody reads may have any value"


def test_a_wrong_fact_of_our_server_breaks_no_rule_of_ours(tmp_path: Path) -> None:
    source = rows(over_http(tmp_path / "r") / "1.jsonl")
    path, usable = tmp_path / "a.jsonl", 0
    for place, facts in NOTES.items():
        texts = [json.dumps(mutant) for mutant in list(mutants(facts))[::2]]
        for text in ["", "{", "[]", *texts]:
            note = {"at": 1, "from": "event", "text": f"{Happened.AUTHORIZATION}{place} {text}"}
            kept = [row for row in source if f"{Happened.AUTHORIZATION}{place} " not in str(row)]
            path.write_text("".join(f"{json.dumps(one)}\n" for one in [*kept, note]))
            usable += is_usable(path)

    assert usable, "what our server never notes is left out"


@pytest.mark.skipif(os.name != "posix", reason="named pipes are files there")
def test_what_stands_in_a_folder_is_no_link_and_no_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = write(tmp_path / "r") / "1.jsonl"
    for name in ("link", "pipe", "sparse"):
        (tmp_path / name).mkdir()
    (tmp_path / "link" / "1.jsonl").symlink_to(real)
    os.mkfifo(tmp_path / "pipe" / "1.jsonl")
    (tmp_path / "sparse" / "1.jsonl").touch()
    os.truncate(tmp_path / "sparse" / "1.jsonl", 1 << 40)

    for name, why in (("link", "a link"), ("pipe", "a named pipe"), ("sparse", "more than")):
        for command in ("judge", "tap show"):
            assert main([*command.split(), str(tmp_path / name)]) == 2
            assert why in capsys.readouterr().err
    assert main(["tap", "show", str(tmp_path / "link" / "1.jsonl")]) == 0, "the user names it"
