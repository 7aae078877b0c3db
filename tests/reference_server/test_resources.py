"""Pagination of the reference server's lists, and files below the roots as resources."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reference_server.content.media_types import media_type
from reference_server.content.uris import target_of, uri_of
from reference_server.protocol import pages
from reference_server.protocol.errors import ProtocolError
from reference_server.settings import Settings
from tests.cases import cases
from tests.reference_client import MODERN, InProcess, Message, ask, code_of

PNG = b"\x89PNG\r\n\x1a\n\0"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    (place / "sub" / "deep").mkdir(parents=True)
    (place / ".git").mkdir()
    (place / "a.txt").write_bytes(b"one\ntwo\r\nthree")
    (place / "sub.md").write_bytes(b"# title")
    (place / "sub" / "b.py").write_bytes(b"pass\n")
    (place / "sub" / "deep" / "ä & ?#%.txt").write_bytes("grün".encode())
    (place / "picture.png").write_bytes(PNG)
    (place / "unknown").write_bytes(b"\xff\xfe\xfd")
    (place / ".git" / "config").write_bytes(b"secret")
    (tmp_path / "outside.txt").write_bytes(b"canary")
    return place


URIS = [
    "workspace:///a.txt",
    "workspace:///picture.png",
    "workspace:///sub/b.py",
    "workspace:///sub/deep/%C3%A4%20&%20%3F%23%25.txt",
    "workspace:///sub.md",
    "workspace:///unknown",
]


def exchange(root: Path, method: str, size: int = 100, **params: Any) -> Message:
    with InProcess(Settings([str(root)], max_file_size=size)) as client:
        return client.ask(method, **params)


def contents(root: Path, uri: str) -> Message:
    (found,) = exchange(root, "resources/read", uri=uri)["result"]["contents"]
    assert found["uri"] == uri
    one: Message = found
    return one


def walk(items: list[Any], size: int, place: Any = None) -> list[list[Any]]:
    found = []
    params: dict[str, Any] = {}
    while True:
        page = pages.page(items, params, "things", size, place)
        found.append(page["things"])
        if "nextCursor" not in page:
            return found
        params = {"cursor": page["nextCursor"]}


@pytest.mark.parametrize("count", range(8))
def test_pages_contain_every_item_once(count: int) -> None:
    items = list(range(count))
    found = walk(items, 3)
    assert [one for page in found for one in page] == items
    assert len(found) == max(1, -(-count // 3))


def test_cursor_keeps_its_position_when_the_list_changes() -> None:
    def page(items: str, **params: str) -> Message:
        return pages.page(list(items), params, "things", 2, place=lambda item: item)

    cursor = page("bdfh")["nextCursor"]
    assert page("bdfh", cursor=cursor)["things"] == ["f", "h"]
    assert page("bfh", cursor=cursor)["things"] == ["f", "h"], "what the cursor was at is gone"
    assert page("abcdefh", cursor=cursor)["things"] == ["e", "f"]
    assert page("ab", cursor=cursor) == {"things": []}


def forgeries() -> list[Any]:
    cursor = pages.page([1, 2, 3], {}, "things", 1)["nextCursor"]
    other = pages.page([1, 2, 3], {}, "others", 1)["nextCursor"]
    raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    flipped = raw[:-1] + bytes([raw[-1] ^ 1])
    spelled = [
        base64.urlsafe_b64encode(one).decode().rstrip("=") for one in (flipped, raw[:16] + b"[" * 9)
    ]
    signed = [
        pages._text(pages._signature("things", body) + body)
        for body in (b'"x"', b"null", b"[1]", b"{}", b"", b"\xff", b"[" * 9, b"[" * 100_000)
    ]
    wrong = [*signed, cursor[:-1], cursor + "=", cursor + "!", cursor[1:], "A" + cursor]
    return [other, *spelled, *wrong, "", "0", "1", "ä", "x" * 100_000, None, 1, True, [], {}]


@pytest.mark.parametrize(
    "cursor", forgeries(), ids=[f"forgery {number}" for number in range(len(forgeries()))]
)
def test_forged_cursor_is_refused(cursor: Any) -> None:
    with pytest.raises(ProtocolError) as caught:
        pages.page([1, 2, 3], {"cursor": cursor}, "things", 1)
    assert caught.value.code == -32602


def test_cursor_is_accepted_by_another_process(root: Path) -> None:
    """The cursor comes from this process, which shares no memory with the spawned server."""
    with InProcess(Settings([str(root)], page_size=1)) as client:
        client.send(ask(MODERN, 1, "tools/list"))
        first = client.hear()["result"]
    command = [sys.executable, "-m", "reference_server", "--root", str(root), "--page-size", "1"]
    request = json.dumps(ask(MODERN, 1, "tools/list", cursor=first["nextCursor"])) + "\n"
    done = subprocess.run(
        command, input=request.encode(), capture_output=True, check=True, timeout=60
    )
    second = json.loads(done.stdout)["result"]
    assert len(second["tools"]) == 1
    assert second["tools"] != first["tools"]


@pytest.mark.parametrize("path", ["a", "a/b.c", "ä ö", "%41", "a?b#c", "!$&'()*+,;=:@", "[x]{y}"])
def test_path_survives_the_uri_round_trip(path: str) -> None:
    uri = uri_of(path)
    assert uri.isascii()
    target = target_of(uri)
    assert target is not None
    assert (target.path, target.lines) == (path, None)


@cases("", "not a uri", "a.txt", "/a.txt", "workspace:///a b", "workspace:///ä", "a:%zz")
def test_invalid_uri_is_refused(uri: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        target_of(uri)
    assert caught.value.code == -32602


@cases(
    *("file:///etc/passwd", "x://nope", "workspace:", "workspace:a", "WORKSPACE:///a"),
    *("workspace:///", "workspace://host/a", "workspace:////a", "workspace:///a/"),
    *("workspace:///./a", "workspace:///a//b", "workspace:///../a", "workspace:///%2e%2e/a"),
    *("workspace:///a%2Fb", "workspace:///%FF", "workspace:///a#b", "workspace:///a?b"),
    *("workspace:///a?lines=1", "workspace:///a?lines=1-2&x", "workspace:///a?lines=-1-2"),
)
def test_uri_without_a_workspace_path_has_no_target(uri: str) -> None:
    assert target_of(uri) is None


@cases(
    ("a.py", "text/x-python"), ("b/a.PNG", "image/png"), ("a", None), (".py", None), ("a.x", None)
)
def test_media_type_depends_on_the_suffix(path: str, kind: str | None) -> None:
    assert media_type(path) == kind


def test_file_over_the_size_limit_is_not_listed(root: Path) -> None:
    result = exchange(root, "resources/list", 7)["result"]
    assert URIS[0] not in [one["uri"] for one in result["resources"]]
    assert code_of(exchange(root, "resources/read", 7, uri=URIS[0])) == -32602


def test_files_of_every_kind_are_read_as_text_or_blob(root: Path) -> None:
    (root / "empty").write_bytes(b"")
    (root / "utf16.txt").write_bytes("\ufeffä".encode("utf-16-le"))
    (root / "nul.txt").write_bytes(b"a\0b")
    (root / "text.png").write_bytes(b"no picture")
    for uri in [*URIS, *map(uri_of, ("empty", "utf16.txt", "nul.txt", "text.png"))]:
        found = contents(root, uri)
        assert ("text" in found) != ("blob" in found)
    assert contents(root, uri_of("empty"))["text"] == ""
    assert contents(root, uri_of("utf16.txt"))["text"] == "ä"
    assert contents(root, uri_of("nul.txt"))["mimeType"] == "application/octet-stream"
    assert "blob" in contents(root, uri_of("text.png"))
