"""The payloads of ``security_suite``, fired at the reference server; only bytes decide.

A payload that must be denied may be refused in any words, as long as no canary's bytes come back,
nothing outside or denied changes, and the server answers on.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.attack_field import DENIED, Field, payloads
from tests.reference_client import Spawned, modern

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX"), pytest.mark.slow]

HASHES_ACCEPTED = {"hash.guard-01", "hash.guard-08", "hash.guard-25", "hash.guard-29"}
"""Payloads of hash.guard that are the right hash in some spelling."""


class Attacked:
    """The reference server in the middle of the trees of ``security_suite/fixtures.toml``."""

    def __init__(self, field: Field, *options: str) -> None:
        self.field = field
        self.client = Spawned("--root", str(field.root), *options)
        self._number = 0
        self.tools = {tool["name"] for tool in self.ask("tools/list")["result"]["tools"]}

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self.client.send(modern(self._number, method, **params))
        answer = self.client.hear(30)
        assert answer["id"] == self._number
        assert isinstance(answer, dict)
        return answer

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer = self.ask("tools/call", name=name, arguments=arguments)
        assert not self.field.leaks(json.dumps(answer)), (name, arguments)
        return answer

    def succeeds(self, name: str, **arguments: Any) -> bool:
        answer = self.call(name, **arguments)
        return "result" in answer and not answer["result"].get("isError")

    def alive(self) -> None:
        assert self.succeeds("file_read", path="dir/ok2.txt")


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field(tmp_path / "base")


@pytest.fixture
def attacked(field: Field) -> Iterator[Attacked]:
    server = Attacked(field)
    before = field.forbidden()
    with server.client:
        yield server
        server.alive()
        server.client.end_input()
        rest = server.client.rest()
        assert not field.leaks(json.dumps(rest))
        server.client.exit_code()
        assert not field.leaks(server.client.stderr())
    assert changed(before, field.forbidden()) == {}
    assert field.laundered() == []


def changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    return {
        name: (before.get(name), after.get(name))
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    }


def expand(payload: dict[str, Any], field: Field) -> Iterator[str]:
    """Yield the texts of a payload."""
    template = payload["payload"]
    if "gen" in payload:
        _, unit, count, *tail = payload["gen"].split(":")
        template = unit * int(count) + "".join(tail)
    yield from field.texts(template)


PATHS = [
    payload
    for payload in payloads("path", "link", "deny", "root", "walk", "file", "args", "size", "write")
    if payload["via"] == "path" and payload.get("gen", "repeat").startswith("repeat")
]


@pytest.mark.parametrize("operation", ["read", "write"])
def test_path_payloads_neither_leak_nor_change_files(attacked: Attacked, operation: str) -> None:
    """Every path payload is sent to every tool that takes a path."""
    for payload in PATHS:
        for path in expand(payload, attacked.field):
            for one in path.split(" -> "):
                if operation == "read":
                    read_everywhere(attacked, one)
                elif payload["expect"] == "deny":
                    write_everywhere(attacked, one)


def read_everywhere(attacked: Attacked, path: str) -> None:
    attacked.call("file_read", path=path)
    attacked.call("file_read", path=path, cwd="dir/sub")
    attacked.call("file_read", path="ok.txt", cwd=path)
    attacked.call("file_read_range", path=path, startLine=1, endLine=2)
    attacked.call("text_editor", command="view", path=path)
    attacked.call("workspace_digest", path=path)
    for uri in (f"workspace:///{path}", f"workspace:///{quote(path)}", f"file://{path}", path):
        assert not attacked.field.leaks(json.dumps(attacked.ask("resources/read", uri=uri)))


def write_everywhere(attacked: Attacked, path: str) -> None:
    diff = f"--- a/{path}\n+++ b/{path}\n@@ -1,1 +1,1 @@\n-plain control\n+changed\n"
    any_hash = hashlib.sha256(b"plain control\n").hexdigest()
    attacked.call("file_apply_patch_only", path=path, expectedHash=any_hash, diffText=diff)
    for command, more in (
        ("str_replace", {"old_str": "MCPCANARY", "new_str": "gone"}),
        ("insert", {"insert_line": 0, "new_str": "x\n"}),
        ("undo_edit", {}),
    ):
        attacked.call("text_editor", command=command, path=path, **more)
    if "apply_cedarscript" in attacked.tools:
        script = f'CREATE FILE "{path}" WITH CONTENT """\n@0:x\n"""'
        attacked.call("apply_cedarscript", commands=script, dry_run=False)


def test_creation_payloads_change_nothing_forbidden(attacked: Attacked) -> None:
    for payload in PATHS:
        if payload["op"] in ("create", "write", "patch", "move", "copy", "mkdir"):
            for path in expand(payload, attacked.field):
                one = path.split(" -> ")[-1]
                done = attacked.succeeds(
                    "text_editor", command="create", path=one, file_text="made\n"
                )
                if payload["class"] == "deny.nearmiss":
                    assert done, payload["id"]


def test_near_misses_and_write_denied_files_are_readable(attacked: Attacked) -> None:
    for payload in PATHS:
        wanted = payload["class"] in ("deny.nearmiss", "deny.writeonly")
        if wanted and payload["op"] == "read" and payload["expect"] == "same-as-plain":
            path = attacked.field.fill(payload["payload"])
            assert attacked.succeeds("file_read", path=path), payload["id"]


def test_directory_listings_show_no_forbidden_name(attacked: Attacked) -> None:
    """No listing shows a name from outside, or what is in a denied directory."""
    for payload in PATHS:
        if payload["op"] in ("list", "tree", "search", "stat"):
            for path in expand(payload, attacked.field):
                answer = json.dumps(attacked.call("text_editor", command="view", path=path))
                assert "canary-file.txt" not in answer.replace(json.dumps(path)[1:-1], "")
    everything = json.dumps([attacked.ask("resources/list"), attacked.call("workspace_digest")])
    assert "canary-file.txt" not in everything
    for name in DENIED:
        assert f"/{name}/" not in everything


@pytest.mark.parametrize("family", ["path", "root", "write", "walk", "link"])
def test_argument_and_uri_payloads_leak_nothing(attacked: Attacked, family: str) -> None:
    for payload in payloads(family):
        for text in expand(payload, attacked.field) if payload["via"] in ("args", "uri") else ():
            if payload["via"] == "uri":
                answer = attacked.ask("resources/read", uri=text)
                assert not attacked.field.leaks(json.dumps(answer)), payload["id"]
            else:
                arguments = json.loads(text)
                attacked.call("file_read", **{"path": "ok.txt", **arguments})
                attacked.call("parse_cedarscript", **arguments)
                attacked.call("apply_cedarscript", **arguments)


def test_patch_payloads_that_must_be_denied_fail(attacked: Attacked) -> None:
    root = attacked.field.root
    for payload in payloads("patch"):
        if payload["via"] != "diff" or "gen" in payload:
            continue
        name = "p.txt" if payload["class"] == "patch.malformed" else "ok.txt"
        before = (root / name).read_bytes()
        for diff in expand(payload, attacked.field):
            done = attacked.succeeds(
                "file_apply_patch_only",
                path=name,
                expectedHash=hashlib.sha256(before).hexdigest(),
                diffText=diff,
            )
            after = (root / name).read_bytes()
            assert done == (after != before), payload["id"]
            assert not (done and payload["expect"] == "deny"), payload["id"]
            if payload["expect"] == "same-as-plain":
                assert done, payload["id"]
        (root / name).write_bytes(before)
        assert not (root / "evil").is_symlink()


def test_only_the_right_hash_allows_a_patch(attacked: Attacked) -> None:
    field = attacked.field
    target = field.root / "p.txt"
    diff = "--- a/p.txt\n+++ b/p.txt\n@@ -2,1 +2,1 @@\n-line2\n+LINE2\n"
    right = target.read_bytes()
    digest = hashlib.sha256(right).hexdigest()
    flipped = ("0" if digest[0] != "0" else "1") + digest[1:]
    known = {
        "{hash}": digest,
        "{hash_stale}": hashlib.sha256(b"older").hexdigest(),
        "{hash_other}": hashlib.sha256((field.root / "ok.txt").read_bytes()).hexdigest(),
        "{hash_flip}": flipped,
        "{hash_8}": digest[:8],
        "{hash_32}": digest[:32],
        "{hash_upper}": digest.upper(),
        "{hash_b64}": "K7gNU3sdo+OL0wNhqoVWhr3g6s1xYv72ol/pe/Unols=",
        "{hash_md5}": hashlib.md5(right).hexdigest(),  # noqa: S324 - the wrong one on purpose
        "{hash_sha1}": hashlib.sha1(right).hexdigest(),  # noqa: S324 - likewise
        "{hash_sha512}": hashlib.sha512(right).hexdigest(),
        "{hash_empty}": hashlib.sha256(b"").hexdigest(),
        "{hash_norm}": digest,
        "{hash_fullwidth}": "".join(chr(ord(c) + 0xFEE0) for c in digest),
        "{hash_of_target_after}": hashlib.sha256(right.replace(b"line2", b"LINE2")).hexdigest(),
        "{hash_dirsep}": digest,
    }
    shapes = {
        "null-json": None,
        "zero-json": 0,
        "true-json": True,
        "array-json": [digest, flipped],
        "object-json": {"sha256": digest},
    }
    for payload in payloads("hash"):
        text = payload["payload"]
        for name, value in known.items():
            text = text.replace(name, value)
        arguments: dict[str, Any] = {"path": "p.txt", "diffText": diff}
        if text != "absent":
            arguments["expectedHash"] = shapes.get(text, text)
        done = attacked.succeeds("file_apply_patch_only", **arguments)
        assert done == (payload["id"] in HASHES_ACCEPTED), payload["id"]
        assert (target.read_bytes() != right) == done, payload["id"]
        target.write_bytes(right)


def test_script_payloads_that_must_be_denied_fail(attacked: Attacked) -> None:
    if "apply_cedarscript" not in attacked.tools:
        pytest.skip("the cedarscript extra is not installed")
    for payload in payloads("script"):
        for script in expand(payload, attacked.field):
            for dry_run in (True, False):
                kept = (attacked.field.root / "m.py").read_bytes()
                done = attacked.succeeds("apply_cedarscript", commands=script, dry_run=dry_run)
                assert not (done and payload["expect"] == "deny"), payload["id"]
                if dry_run or not done:
                    assert (attacked.field.root / "m.py").read_bytes() == kept, payload["id"]
                (attacked.field.root / "m.py").write_bytes(kept)


def test_read_only_server_changes_nothing(field: Field) -> None:
    server = Attacked(field, "--read-only")
    before = whole(field)
    with server.client:
        for payload in PATHS[::7]:
            for path in expand(payload, field):
                write_everywhere(server, path)
        write_everywhere(server, "ok.txt")
        server.call("text_editor", command="create", path="new.txt", file_text="x")
        server.alive()
    assert whole(field) == before


def whole(field: Field) -> dict[str, Any]:
    found = {}
    for path in field.base.rglob("*"):
        fact = path.lstat()
        found[str(path)] = (fact.st_mode, fact.st_size, fact.st_ino, fact.st_mtime_ns)
    return found


def test_leak_detection_finds_canaries(field: Field) -> None:
    """Control: the canaries exist, and the checks of these tests find them."""
    assert field.leaks((field.outside / "canary-file.txt").read_text())
    before = field.forbidden()
    (field.outside / "new").write_text("x")
    (field.root / ".git" / "config").write_text("x")
    assert len(changed(before, field.forbidden())) == 2
    (field.root / "stolen.txt").write_bytes((field.outside / "src.py").read_bytes())
    assert field.laundered() == [str(field.root / "stolen.txt")]
