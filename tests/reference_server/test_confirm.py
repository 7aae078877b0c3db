"""Destructive writes need a confirmation: by form, by round, or by token; and their previews."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_server.features import confirmation as confirm
from reference_server.features.confirmation import previews
from reference_server.protocol.calls import Call
from reference_server.settings import Settings
from reference_server.surface import Surface
from reference_server.tools.schemas import CONFIRM, outputs
from reference_server.workspace import Change
from reference_server.workspace.paths import Location
from tests.cases import cases
from tests.client_questions import again, exchange, tool
from tests.reference_client import (
    ALL,
    LEGACY,
    MODERN,
    InProcess,
    Message,
    ask,
    modern_as,
    refusal,
    result,
)

ELICITS: Message = {"elicitation": {}}
YES: Message = {"action": "accept", "content": {"confirm": True}}


def writing(surface: Surface) -> None:
    """Offer ``write {"files": {path: text or null}}``; null removes."""

    def work(call: Call, arguments: Message) -> Message:
        workspace = surface.workspace
        edit = workspace.edit(call.who)
        for path, text in arguments["files"].items():
            before = workspace.find(path)
            if text is None and before is not None:
                edit.remove(before)
            elif text is not None:
                edit.put(path, text.encode("latin-1"), before=before)
        pending: Message | None = surface.part("features.confirmation").commit(
            call, edit, arguments
        )
        return {"written": True} if pending is None else pending

    more = {"confirm_token": CONFIRM} if surface.settings.confirm_writes else {}
    for name in ("write", "write2"):
        surface.toolbox.add(
            tool(
                name,
                work,
                input_schema={
                    "type": "object",
                    "properties": {"files": {"type": "object"}, **more},
                    "required": ["files"],
                    "additionalProperties": False,
                },
                output_schema=outputs(pending=True, written={"type": "boolean"}),
            )
        )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a").write_text("one\ntwo\n")
    (tmp_path / "b").write_text("bee\n")
    return tmp_path


@contextmanager
def serving(
    root: Path, revision: str = MODERN, capabilities: Message | None = None, *, wanted: bool = True
) -> Iterator[InProcess]:
    with InProcess(Settings([str(root)], confirm_writes=wanted), [writing]) as client:
        client.open(revision, capabilities)
        yield client


def write(
    revision: str,
    request_id: Any,
    files: Message,
    capabilities: Message | None = None,
    tool: str = "write",
    **more: Any,
) -> Message:
    arguments = {"files": files, **more}
    if revision == MODERN:
        return modern_as(
            capabilities or {}, request_id, "tools/call", name=tool, arguments=arguments
        )
    return ask(revision, request_id, "tools/call", name=tool, arguments=arguments)


def body(answer: Message) -> Message:
    found = json.loads(answer["result"]["content"][-1]["text"])
    assert isinstance(found, dict)
    return found


def state(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in root.iterdir() if path.is_file()}


BEFORE = {"a": "one\ntwo\n", "b": "bee\n"}
EDIT: Message = {"a": "one\n2\n", "b": None, "c": "new\n"}
AFTER = {"a": "one\n2\n", "c": "new\n"}


def test_write_that_changes_nothing_needs_no_confirmation(root: Path) -> None:
    with serving(root, "2025-11-25", ELICITS) as client:
        assert body(exchange(client, write("2025-11-25", 1, {"a": BEFORE["a"]}))) == {
            "written": True
        }


@cases(
    {"action": "decline"},
    {"action": "cancel"},
    {"action": "decline", "content": {"confirm": True}},
    {"action": "accept"},
    {"action": "accept", "content": None},
    {"action": "accept", "content": {}},
    {"action": "accept", "content": {"confirm": False}},
    {"action": "accept", "content": {"confirm": "true"}},
    {"action": "accept", "content": {"confirm": 1}},
    {"action": "yes", "content": {"confirm": True}},
)
def test_answer_other_than_yes_writes_nothing(root: Path, answer: Message) -> None:
    with serving(root, "2025-11-25", ELICITS) as client:
        client.send(write("2025-11-25", 1, EDIT))
        client.send(result(client.hear(), **answer))
        heard = client.hear()
        assert heard["result"]["isError"] is True
        assert (body(heard)["type"], body(heard)["code"]) == ("ConflictError", "NOT_CONFIRMED")
        assert state(root) == BEFORE


def test_error_answer_or_silence_writes_nothing(root: Path) -> None:
    settings = Settings([str(root)], confirm_writes=True, ask_seconds=0.2)
    with InProcess(settings, [writing]) as client:
        client.open("2025-11-25", ELICITS)
        client.send(write("2025-11-25", 1, EDIT))
        client.send(refusal(client.hear()))
        assert body(client.hear())["code"] == "NOT_CONFIRMED"
        client.send(write("2025-11-25", 2, EDIT))
        assert client.hear()["method"] == "elicitation/create"
        assert client.hear()["method"] == "notifications/cancelled"
        assert body(client.hear())["code"] == "NOT_CONFIRMED"
    assert state(root) == BEFORE


KEY = "a key that these processes share"


@pytest.mark.parametrize(("key", "written"), [(KEY, True), (KEY + "!", False), (None, False)])
def test_confirmation_continues_in_another_process_with_the_same_key(
    key: str | None, written: bool, root: Path
) -> None:
    message = write(MODERN, 1, EDIT, ELICITS)
    settings = Settings([str(root)], confirm_writes=True, state_key=KEY)
    with InProcess(settings, [writing]) as client:
        asked = exchange(client, message)
    settings = Settings([str(root)], confirm_writes=True, state_key=key)
    with InProcess(settings, [writing]) as client:
        answer = exchange(client, again(message, 2, asked, confirm=YES))
    assert state(root) == (AFTER if written else BEFORE)
    assert written or answer["error"]["code"] == -32602


def test_shared_key_does_not_make_token_and_state_interchangeable(root: Path) -> None:
    settings = Settings([str(root)], confirm_writes=True, state_key=KEY)
    with InProcess(settings, [writing]) as client:
        token = body(exchange(client, write(MODERN, 1, EDIT)))["confirm_token"]
        message = write(MODERN, 2, EDIT, ELICITS)
        asked = exchange(client, message)
        stale = write(MODERN, 3, EDIT, confirm_token=asked["result"]["requestState"])
        assert body(exchange(client, stale))["code"] == "CONFIRMATION_STALE"
        asked["result"]["requestState"] = token
        assert exchange(client, again(message, 4, asked, confirm=YES))["error"]["code"] == -32602
    assert state(root) == BEFORE


def test_yes_for_a_changed_file_leads_to_a_new_question(root: Path) -> None:
    message = write(MODERN, 1, EDIT, ELICITS)
    with serving(root) as client:
        asked = exchange(client, message)
        (root / "a").write_text("someone else\n")
        asked = exchange(client, again(message, 2, asked, confirm=YES))
        assert asked["result"]["resultType"] == "input_required"
        assert "someone else" in asked["result"]["inputRequests"]["confirm"]["params"]["message"]
        assert body(exchange(client, again(message, 3, asked, confirm=YES))) == {"written": True}
    assert state(root) == AFTER


@cases(
    *((revision, {}) for revision in ALL),
    *((revision, ELICITS) for revision in LEGACY[:2]),
    *((revision, {"elicitation": {"url": {}}}) for revision in ("2025-11-25", MODERN)),
)
def test_preview_token_writes_the_previewed_edit_once(
    root: Path, revision: str, capabilities: Message
) -> None:
    with serving(root, revision, capabilities) as client:
        pending = body(exchange(client, write(revision, 1, EDIT, capabilities)))
        assert set(pending) == {"confirmed", "confirm_token", "preview"}
        assert pending["confirmed"] is False
        assert "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" in pending["preview"]
        assert "--- a/b\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-bee" in pending["preview"]
        assert "--- /dev/null\n+++ b/c\n@@ -0,0 +1,1 @@\n+new" in pending["preview"]
        assert state(root) == BEFORE
        token = pending["confirm_token"]
        message = write(revision, 2, EDIT, capabilities, confirm_token=token)
        assert body(exchange(client, message)) == {"written": True}
        assert state(root) == AFTER
        (root / "a").write_text(BEFORE["a"])
        (root / "b").write_text(BEFORE["b"])
        (root / "c").unlink()
        answer = exchange(client, {**message, "id": 3})
        assert answer["result"]["isError"] is True
        assert (body(answer)["type"], body(answer)["code"]) == (
            "ConflictError",
            "CONFIRMATION_STALE",
        )
    assert state(root) == BEFORE


def token_for(client: InProcess, files: Message) -> str:
    token = body(exchange(client, write("2025-11-25", "t", files)))["confirm_token"]
    assert isinstance(token, str)
    return token


@cases(
    ({"a": "one\n3\n", "b": None, "c": "new\n"}, "write"),
    ({"a": "one\n2\n", "b": None}, "write"),
    ({"a": "one\n2\n", "b": None, "d": "new\n"}, "write"),
    ({"c": "new\n"}, "write"),
    (EDIT, "write2"),
)
def test_token_is_valid_for_one_edit_of_one_tool(root: Path, files: Message, tool: str) -> None:
    with serving(root, "2025-11-25") as client:
        token = token_for(client, EDIT)
        answer = exchange(client, write("2025-11-25", 1, files, tool=tool, confirm_token=token))
        assert body(answer)["code"] == "CONFIRMATION_STALE"
        assert state(root) == BEFORE
        answer = exchange(client, write("2025-11-25", 2, EDIT, confirm_token=token))
        assert body(answer) == {"written": True}


def test_token_is_valid_only_for_the_previewed_bytes(root: Path) -> None:
    with serving(root, "2025-11-25") as client:
        token = token_for(client, EDIT)
        (root / "b").write_text("bees\n")
        answer = exchange(client, write("2025-11-25", 1, EDIT, confirm_token=token))
        assert body(answer)["code"] == "CONFIRMATION_STALE"


def test_altered_or_invented_token_is_refused(root: Path) -> None:
    with serving(root, "2025-11-25") as client:
        token = token_for(client, EDIT)
        altered = ("B" if token[0] == "A" else "A") + token[1:]
        for number, wrong in enumerate(("", ".", "x", altered, token[:-1], token + " ", "é.é")):
            answer = exchange(client, write("2025-11-25", number, EDIT, confirm_token=wrong))
            assert body(answer)["code"] == "CONFIRMATION_STALE"
    assert state(root) == BEFORE


def test_token_expires(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm, "TOKEN_SECONDS", -1.0)
    with serving(root, "2025-11-25") as client:
        token = token_for(client, EDIT)
        answer = exchange(client, write("2025-11-25", 1, EDIT, confirm_token=token))
    assert body(answer)["code"] == "CONFIRMATION_STALE"
    assert "expired" in body(answer)["message"]
    assert state(root) == BEFORE


def test_token_is_valid_once_for_concurrent_calls(root: Path) -> None:
    with serving(root, "2025-11-25") as client:
        token = token_for(client, EDIT)
        calls = [write("2025-11-25", number, EDIT, confirm_token=token) for number in range(8)]
        client.send(*calls)
        heard = [client.hear() for _ in calls]
    assert sum("isError" not in message["result"] for message in heard) == 1
    assert state(root) == AFTER


def test_token_is_an_unknown_argument_without_the_setting(root: Path) -> None:
    with serving(root, "2025-11-25", wanted=False) as client:
        answer = exchange(client, write("2025-11-25", 1, EDIT, confirm_token="x"))
    assert answer["result"]["isError"] is True
    assert state(root) == BEFORE


def change(path: str, before: bytes | None, after: bytes | None) -> Change:
    return Change(Location(0, tuple(path.split("/")), None), before, after)


def shown(before: bytes | None, after: bytes | None, most: int = 10_000) -> list[str]:
    return previews.diffs([change("f", before, after)], most).split("\n")


def test_preview_escapes_invisible_characters() -> None:
    assert shown(b"a\x1b[2K\r\nb", "a\u202eb\u2028\n\ufeff".encode())[3:] == [
        r"-a\x1b[2K\r",
        "-b",
        "\\ No newline at end of file",
        r"+a\u202eb\u2028",
        r"+\ufeff",
        "\\ No newline at end of file",
    ]


def test_preview_shows_newlines_only_where_they_change() -> None:
    assert shown(b"a\r\nb\r\n", b"a\r\nc\r\n")[3:] == [" a", "-b", "+c"]
    assert shown(b"a\r\n", b"a\n")[3:] == [r"-a\r", "+a"]


def test_preview_of_binary_bytes_states_their_size() -> None:
    assert shown(b"\xff\xfe", None)[2] == "(no UTF-8 text; 2 bytes before, 0 bytes after)"
    assert shown(b"a\0", b"b")[2] == "(no UTF-8 text; 2 bytes before, 1 bytes after)"


def test_long_preview_is_cut_with_a_notice() -> None:
    changes = [change(f"file{number}", b"x" * 1000 + b"\n", b"y\n" * 1000) for number in range(99)]
    text = previews.diffs(changes, 5000)
    assert len(text) < 10_000
    assert text.endswith("not shown)")
    assert "not shown" in text
    named = previews.summary(changes)
    assert named.count("\n") == previews.MOST_FILES
    assert named.endswith("and 49 files more")


def test_large_change_does_not_displace_a_small_one_in_the_preview() -> None:
    changes = [change("large", b"", b"y\n" * 100_000), change("small", b"one\n", b"two\n")]
    text = previews.diffs(changes, 2000)
    assert len(text) < 2200
    assert text.endswith("--- a/small\n+++ b/small\n@@ -1,1 +1,1 @@\n-one\n+two")


def test_preview_of_difficult_files_is_fast() -> None:
    began = time.process_time()
    worst = [
        (b"a\n" * 400_000, b"b\n" * 400_000),
        (b"a\nb\n" * 249, b"b\na\n" * 249),
        (b"x" * 9_000_000, b"y" * 9_000_000),
        (bytes(range(1, 128)) * 5000, bytes(range(127, 0, -1)) * 5000),
        (b"\r" * 1_000_000, b"\n" * 1_000_000),
    ]
    for before, after in worst:
        shown(before, after)
    assert time.process_time() - began < 10


def apply(before: list[str], lines: list[str]) -> list[str]:
    """Apply a preview, and assert that every line it keeps or removes exists."""
    after: list[str] = []
    at = 0
    for line in lines:
        if line.startswith("@@"):
            start, size = (int(number) for number in line.split()[1][1:].split(","))
            start -= size > 0
            after += before[at:start]
            at = start
        elif line.startswith("+"):
            after.append(line[1:])
        else:
            assert before[at] == line[1:]
            after += before[at : at + 1] if line.startswith(" ") else []
            at += 1
    return after + before[at:]


@given(
    before=st.lists(st.sampled_from("abc"), max_size=30),
    after=st.lists(st.sampled_from("abc"), max_size=30),
)
def test_preview_shows_exactly_the_changes(before: list[str], after: list[str]) -> None:
    old, new = ("".join(f"{line}\n" for line in side).encode() for side in (before, after))
    assert apply(before, shown(old, new)[2:]) == after
