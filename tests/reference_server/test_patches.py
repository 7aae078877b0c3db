"""``file_apply_patch_only`` on the wire: applied and refused patches."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reference_server.settings import Settings
from tests.cases import cases
from tests.reference_client import InProcess, Message

OLD = b"line1\nline2\nline3\n"
NEW = b"line1\nnew\nline3\n"
HUNK = "@@ -1,3 +1,3 @@\n line1\n-line2\n+new\n line3\n"
DIFF = "--- a/p.txt\n+++ b/p.txt\n" + HUNK


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    (place / "sub").mkdir(parents=True)
    (place / "p.txt").write_bytes(OLD)
    (place / "other.txt").write_bytes(b"line2\n")
    (place / "sub" / "q.txt").write_bytes(OLD)
    (tmp_path / "canary.txt").write_bytes(OLD)
    return place


def tree(place: Path) -> dict[str, Any]:
    """Return kind, mode, inode, time and bytes of every entry below a directory."""
    found: dict[str, Any] = {}
    for path in sorted(place.rglob("*")):
        about = path.lstat()
        facts: tuple[Any, ...] = (about.st_mode, about.st_nlink)
        if path.is_file() and not path.is_symlink():
            facts += (about.st_ino, about.st_mtime_ns, path.read_bytes())
        found[str(path.relative_to(place))] = facts
    return found


def patch(place: Path, **arguments: Any) -> Message:
    """Return the result or the error of a patch."""
    arguments = {"path": "p.txt", "expectedHash": sha256(OLD), "diffText": DIFF, **arguments}
    arguments = {name: value for name, value in arguments.items() if value is not ...}
    with InProcess(Settings([str(place)])) as client:
        return client.found("file_apply_patch_only", **arguments)


def refused(place: Path, **arguments: Any) -> Message:
    """Return the structured error, and assert that no byte, time or inode changed."""
    before = tree(place.parent)
    error = patch(place, **arguments)
    assert error["message"]
    assert tree(place.parent) == before
    return error


LATIN_1 = {"encoding": "iso-8859-1"}


@cases(
    (b"a\r\nb\nc\rd", "@@ -2 +2 @@\n-b\n+x\n", b"a\r\nx\nc\rd", {}),
    (b"\xef\xbb\xbfa\n", "@@ -1 +1 @@\n-a\n+x\n", b"\xef\xbb\xbfx\n", {}),
    (b"\xef\xbb\xbfa\n", "@@ -1 +0,0 @@\n-a\n", b"\xef\xbb\xbf", {}),
    (
        "\ufeffa\r\né\r\n".encode("utf-16-le"),
        "@@ -2 +2 @@\n-é\n+\U0001f600\n",
        "\ufeffa\r\n\U0001f600\r\n".encode("utf-16-le"),
        {},
    ),
    (b"\xe9\nx\n", "@@ -2 +2 @@\n-x\n+\xe8\n", b"\xe9\n\xe8\n", LATIN_1),
    (b"\xff\0\x85\n", "@@ -1 +1,2 @@\n \xff\0\x85\n+b\n", b"\xff\0\x85\nb\n", LATIN_1),
)
def test_bytes_outside_the_diff_are_unchanged(
    root: Path, old: bytes, hunk: str, new: bytes, more: Message
) -> None:
    (root / "p.txt").write_bytes(old)
    diff = "--- a/p.txt\n+++ b/p.txt\n" + hunk
    answer = patch(root, expectedHash=sha256(old), diffText=diff, **more)
    assert (root / "p.txt").read_bytes() == new
    assert answer["after"]["sha256"] == sha256(new)


def test_strict_and_normalized_hash_are_accepted(root: Path) -> None:
    old = b"\xef\xbb\xbfline1\r\nline2\r\nline3\r\n"
    for key in (sha256(old), sha256(OLD), sha256(old).upper(), sha256(OLD).upper()):
        (root / "p.txt").write_bytes(old)
        answer = patch(root, expectedHash=key)
        assert answer["before"] == {"sha256": sha256(old), "sha256_normalized": sha256(OLD)}
        assert answer["after"]["sha256_normalized"] == sha256(NEW)
        assert (root / "p.txt").read_bytes() == b"\xef\xbb\xbfline1\r\nnew\r\nline3\r\n"


RIGHT = sha256(OLD)


@cases(
    sha256(b"line1\nline2\n"),
    sha256(b"line2\n"),
    sha256(NEW),
    sha256(b""),
    sha256(OLD.replace(b"\n", b"\r\n")),
    ("0" if RIGHT[0] != "0" else "1") + RIGHT[1:],
    RIGHT[:-1] + ("0" if RIGHT[-1] != "0" else "1"),
    RIGHT[::-1],
    "0" * 64,
)
def test_stale_hash_writes_nothing_and_error_omits_the_current_hash(root: Path, key: str) -> None:
    error = refused(root, expectedHash=key)
    assert (error["type"], error["code"]) == ("ConflictError", "HASH_MISMATCH")
    assert error["field"] == "expectedHash"
    assert error["context"] == {"file": "p.txt"}
    assert error["related_tools"] == ["file_read", "file_read_range"]
    assert error["recovery_steps"][0] == "Read the file again."
    assert RIGHT not in json.dumps(error).lower()


@cases(
    *("", "*", RIGHT[:8], RIGHT[:32], RIGHT + "00", RIGHT + "\n", f" {RIGHT} ", f"0x{RIGHT}"),
    *(f"sha256:{RIGHT}", f"\u200b{RIGHT}", f"\u200b{RIGHT[1:]}", RIGHT + "\0"),
    "".join(chr(ord(digit) + 0xFEE0) if digit.isdigit() else digit for digit in RIGHT),
    base64.b64encode(bytes.fromhex(RIGHT)).decode(),
    *(hashlib.new(name, OLD).hexdigest() for name in ("md5", "sha1", "sha512")),
    *(None, ..., 0, True, [RIGHT], [RIGHT, "0" * 64], {}, {"sha256": RIGHT}),
)
def test_malformed_hash_is_refused_before_any_file_is_opened(root: Path, key: Any) -> None:
    assert refused(root, expectedHash=key)["code"] == "INVALID_ARGUMENTS"
    missing = refused(root, expectedHash=key, path="no such file")
    assert missing["code"] == "INVALID_ARGUMENTS"


def test_workspace_policy_applies_before_the_file_is_read(root: Path) -> None:
    assert refused(root, path="bin/none.txt")["code"] == "WRITE_DENIED"


def test_patch_is_written_only_after_confirmation(root: Path) -> None:
    patch = {"path": "p.txt", "expectedHash": sha256(OLD), "diffText": DIFF}
    with InProcess(Settings([str(root)], confirm_writes=True)) as client:
        tools = client.ask("tools/list")["result"]["tools"]
        (shown,) = (tool for tool in tools if tool["name"] == "file_apply_patch_only")
        pending = client.call(shown["name"], **patch)
        assert pending["confirmed"] is False
        assert (root / "p.txt").read_bytes() == OLD
        patch["confirm_token"] = pending["confirm_token"]
        answer = client.call(shown["name"], **patch)
    assert (root / "p.txt").read_bytes() == NEW
    for body in (pending, answer):
        jsonschema.validate(body, shown["outputSchema"])
