"""Diffs that name other files, ask for more than changed lines, or do not fit their file.

A diff is untrusted text: it names files, states their content, and may ask for links, modes or
commands. The call names one file. Only that file may change, and only if every line of the diff
fits it.
"""

import base64
import hashlib
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.security.suite import (
    SECRET,
    ArgumentRole,
    AttackCall,
    AttackSession,
    Binding,
    Broken,
    Call,
    Fact,
    Operation,
    Payload,
    Pointer,
    Reply,
    SafePath,
    attack,
    attack_calls,
    brief,
    changes,
    payload,
    put,
    take,
)

TREES = ("base", "siblings", "links")


@attack("patches-target", fixtures=TREES)
def patches_the_file_of_the_call(session: AttackSession) -> None:
    """No header of a diff leads to a file outside the root."""
    Patches(session).lead_astray("patches-target", "patch.target")


@attack("patches-denied", fixtures=(*TREES, "denied"))
def patches_nothing_that_is_denied(session: AttackSession) -> None:
    """No header of a diff leads to a denied file."""
    Patches(session).lead_astray("patches-denied", "patch.target", "patch.special", denied=True)


@attack("patches-special", fixtures=TREES)
def applies_lines_alone(session: AttackSession) -> None:
    """A diff makes no link, sets no dangerous mode, copies nothing in and runs nothing."""
    Patches(session).ask_for_more("patches-special", "patch.special")


@attack("patches-one-file", "patches-true", "patches-newlines", fixtures=("base",))
def applies_what_is_true(session: AttackSession) -> None:
    """A diff changes one file, completely or not at all, and no line that it does not name."""
    patches = Patches(session)
    patches.name_others("patches-one-file", "patch.target", "patch.special")
    patches.lie("patches-true", "patch.malformed")
    patches.mix_newlines("patches-newlines", "patch.eol")


@attack("patches-hash", fixtures=("base",))
def changes_what_was_read(session: AttackSession) -> None:
    """A tool that takes the hash of a file changes the file only if the hash is right."""
    Patches(session).guess_hashes("patches-hash", "hash.guard")


@attack("patches-edits", fixtures=("base",))
def makes_all_edits_or_none(session: AttackSession) -> None:
    """A call with several edits of which a later one does not fit changes nothing."""
    session.begin()
    threat, file = "patches-edits", session.tree.root / "edits.txt"
    found, at, tried = "", None, 0
    for binding in session.claims.promised(session.bindings, threat, Operation.EDIT):
        several = _several_edits(binding, session, file)
        if several is None:
            continue
        file.write_bytes(LINES)
        session.wire.request(*several([0, 1]), required=False)
        if file.read_bytes() != b"ONE\nTWO\nline3\n":
            continue
        for call in (several([0, 2]), several([0, 1, 2])):
            file.write_bytes(LINES)
            reply = session.wire.request(*call, required=False)
            tried += 1
            if file.read_bytes() != LINES:
                left = brief(file.read_text("replace"))
                found = f"{binding.tool}: an edit does not fit, and the file is {left}"
                at = reply
                break
        if found:
            break
    if not tried:
        session.judge.unseen(threat, "no tool makes several edits in one call")
        return
    session.judge.conclude(
        threat, found, expected="the old bytes", if_passed=f"{tried} times", at=at
    )


PARTS: Final = (("line1", "ONE"), ("line2", "TWO"), ("there is no such line", "NEVER"))
"""Edits of ``LINES``: text to replace, and replacement. The last one does not fit."""


def _several_edits(
    binding: Binding, session: AttackSession, file: SafePath
) -> Callable[[list[int]], Call] | None:
    """Return a function that makes a call with some of ``PARTS``; None if a call takes one edit."""
    ends = {slot.role: slot.pointer for slot in binding.slots}
    old, new = ends.get(ArgumentRole.OLD, ()), ends.get(ArgumentRole.NEW, ())
    index = next((n for n, step in enumerate(old) if isinstance(step, int)), None)
    if index is None or new[: index + 1] != old[: index + 1]:
        return None
    root = str(session.tree.root)
    path = binding.spelled(file.name, root)

    def call(chosen: list[int]) -> Call:
        made = []
        for before, after in (PARTS[number] for number in chosen):
            method, params = binding.call(path, root, before=before.encode(), content=after)
            made.append(_at(params["arguments"], old[:index])[old[index]])
        return method, {**params, "arguments": put(params["arguments"], {old[:index]: made})}

    return call


def _at(value: Any, pointer: Pointer) -> Any:
    for step in pointer:
        value = value[step]
    return value


LINES: Final = b"line1\nline2\nline3\n"
PLAIN: Final = b"plain control\n"

WHOLE: Final = frozenset({b"line1\nnew\nline3\n", b"line1\nnew\n\n"})
"""``LINES`` after a diff that some tools apply and others refuse: never half of the diff."""

FAR: Final = 0o7000
"""Mode bits that no diff of text sets."""

JSON: Final[Mapping[str, Any]] = {"null-json": None, "zero-json": 0, "true-json": True}
ABSENT: Final = "absent"

Look = Callable[[AttackCall], str]
"""Checks the tree after a call; returns the forbidden effect in words, or an empty text."""


class Patches:
    """Tools that apply diffs, under attack."""

    def __init__(self, session: AttackSession) -> None:
        self._session = session
        self._tree = session.tree
        self._before: dict[str, Fact] = {}
        self._file = self._tree.root / "ok.txt"
        self._kept = PLAIN

    # --- attacks

    def lead_astray(self, threat: str, *groups: str, denied: bool = False) -> None:
        """Name other files in the headers of a diff, and judge the files outside.

        Args:
            groups: classes of payloads.
            denied: whether to send only payloads that name a denied file.
        """
        rows = [row for row in self._rows("diff", *groups) if row.is_denied or not denied]
        self._judge(threat, rows, "ok.txt", PLAIN, lambda _shot: "")

    def ask_for_more(self, threat: str, *groups: str) -> None:
        """Send diffs that ask for links, modes and commands, and judge their effects."""
        self._judge(threat, self._rows("diff", *groups), "ok.txt", PLAIN, self._grave)

    def name_others(self, threat: str, *groups: str) -> None:
        """Name other files of the root, and judge whether only the file of the call changes."""
        rows = [row for row in self._rows("diff", *groups) if "{outside" not in row.text]
        self._judge(threat, rows, "ok.txt", PLAIN, self._others)

    def lie(self, threat: str, *groups: str) -> None:
        """Send diffs that do not fit the file, and judge whether it stays unchanged."""

        def look(shot: AttackCall) -> str:
            fits = {self._kept, *(WHOLE if shot.payload.expect == "safe" else ())}
            return "" if self._now() in fits else f"{self._file.name} was changed"

        rows = [r for r in self._rows("diff", *groups) if r.expect != "same-as-plain"]
        self._judge(threat, [r for r in rows if not r.recipe], "p.txt", LINES, look)

    def mix_newlines(self, threat: str, *groups: str) -> None:
        """Patch files whose line endings differ from the diff; other lines must not change."""
        rows = {r.text: r for r in self._rows("session", *groups)}
        cases = [(row, case) for case in CASES for row in rows.values() if case.name in row.text]
        fits: dict[str, frozenset[bytes]] = {row.id: case.fits for row, case in cases}

        def look(shot: AttackCall) -> str:
            now = self._now()
            left = now == self._kept or now in fits[shot.payload.id]
            return "" if left else f"lines that are not in the diff were changed: {now!r}"

        def shots() -> Iterator[AttackCall]:
            for row, case in cases:
                for binding in self._patchers(threat):
                    self._prepare("eol.txt", case.before)
                    text = f"--- a/eol.txt\n+++ b/eol.txt\n{case.hunk}"
                    yield AttackCall(row, text, binding, self._patch(binding, text), live=True)

        self._fire(threat, shots(), look)

    def guess_hashes(self, threat: str, *groups: str) -> None:
        """Send changes with wrong hashes, and judge whether the file stays unchanged."""
        rows = [r for r in self._rows("hash", *groups) if r.expect == "deny"]

        def shots() -> Iterator[AttackCall]:
            for row in rows:
                for binding in self._session.claims.promised(self._session.bindings, threat):
                    for slot in binding.slots:
                        loose = row.text in {ABSENT, "null-json"} and not slot.needed
                        if slot.role is ArgumentRole.HASH and not loose:
                            self._prepare("p.txt", LINES)
                            call = self._guarded(binding, slot.pointer, row.text)
                            yield AttackCall(row, row.text, binding, call, live=True)

        def look(_shot: AttackCall) -> str:
            same = self._now() == self._kept and self._fact() == self._before["p.txt"]
            return "" if same else f"{self._file.name} was changed"

        self._fire(threat, shots(), look)

    # --- firing

    def _rows(self, via: str, *groups: str) -> list[Payload]:
        return self._session.payloads(*groups, via=via)

    def _patchers(self, threat: str) -> list[Binding]:
        return [
            b
            for b in self._session.claims.promised(self._session.bindings, threat)
            if b.has(ArgumentRole.DIFF)
        ]

    def _judge(
        self, threat: str, rows: Iterable[Payload], name: str, data: bytes, look: Look
    ) -> None:
        def shots() -> Iterator[AttackCall]:
            for row, text in self._tree.each(rows):
                for binding in self._patchers(threat):
                    self._prepare(name, data)
                    yield AttackCall(row, text, binding, self._patch(binding, text), live=True)

        self._fire(threat, shots(), look)

    def _fire(self, threat: str, shots: Iterable[AttackCall], look: Look) -> None:
        def oracle(shot: AttackCall, _reply: Reply) -> str:
            return look(shot)

        self._session.begin()
        tally = attack_calls(
            self._session,
            threat,
            shots,
            oracle=oracle,
            expected="the file that is named changes if the diff is true, and nothing else does",
        )
        if tally.hits or tally.deaths:
            return
        guarded = [
            b
            for b in self._session.claims.promised(self._session.bindings, threat)
            if b.has(ArgumentRole.DIFF) or b.has(ArgumentRole.HASH)
        ]
        if not all(self._works(b) for b in guarded if b.tool in tally.tools):
            self._session.judge.judgements.pop()
            raise Broken("a diff that is true is no longer applied after the attack")

    def _works(self, binding: Binding) -> bool:
        """Return whether the tool still makes a plain change."""
        self._prepare("p.txt", LINES)
        root = str(self._tree.root)
        path = binding.spelled(self._file.name, root)
        method, params = binding.call(path, root, before=LINES, content="zero")
        self._session.wire.request(method, params, required=False)
        return self._now() != LINES

    def _prepare(self, name: str, data: bytes) -> None:
        """Write the file of the call, and record the state of the root."""
        self._clear()
        self._file, self._kept = self._tree.root / name, data
        self._file.remove()
        self._file.write_bytes(data)
        self._before = take(self._tree.root, known=self._before)

    def _clear(self) -> None:
        """Remove the files that the previous call made in the root."""
        for change in self._changed() if self._before else ():
            if change.what.startswith("made"):
                (self._tree.root / change.path).remove()

    def _patch(self, binding: Binding, text: str) -> Call:
        method, params = self._plain(binding)
        pointers = [slot.pointer for slot in binding.slots if slot.role is ArgumentRole.DIFF]
        changed = put(params["arguments"], dict.fromkeys(pointers, text))
        return method, {**params, "arguments": changed}

    def _guarded(self, binding: Binding, pointer: Pointer, text: str) -> Call:
        method, params = self._plain(binding)
        arguments = put(params["arguments"], {pointer: self._hashed(text)})
        if text == ABSENT:
            here: Any = arguments
            for step in pointer[:-1]:
                here = here[step]
            del here[pointer[-1]]
        return method, {**params, "arguments": arguments}

    def _plain(self, binding: Binding) -> Call:
        root = str(self._tree.root)
        path = binding.spelled(self._file.name, root)
        return binding.call(path, root, before=self._kept, content="zero")

    def _hashed(self, text: str) -> Any:
        """Return the value to send for the hash that a payload names."""
        right = hashlib.sha256(self._kept).hexdigest()
        if text in JSON:
            return JSON[text]
        if text == "array-json":
            return [right, "0" * len(right)]
        if text == "object-json":
            return {"sha256": right}
        names = {
            "hash": right,
            "hash_stale": hashlib.sha256(b"line0\n" + self._kept).hexdigest(),
            "hash_other": hashlib.sha256(PLAIN).hexdigest(),
            "hash_dirsep": hashlib.sha256(PLAIN).hexdigest(),
            "hash_flip": right[:-1] + ("0" if right[-1] != "0" else "1"),
            "hash_8": right[:8],
            "hash_32": right[:32],
            "hash_upper": right.upper(),
            "hash_b64": base64.b64encode(hashlib.sha256(self._kept).digest()).decode(),
            "hash_md5": hashlib.md5(self._kept, usedforsecurity=False).hexdigest(),
            "hash_sha1": hashlib.sha1(self._kept, usedforsecurity=False).hexdigest(),
            "hash_sha512": hashlib.sha512(self._kept).hexdigest(),
            "hash_empty": hashlib.sha256(b"").hexdigest(),
            "hash_fullwidth": right.translate({ord("0") + n: 0xFF10 + n for n in range(10)}),
            "hash_of_target_after": hashlib.sha256(b"zero\n" + self._kept).hexdigest(),
        }
        return payload.fill(text, names)

    # --- looking

    def _now(self) -> bytes:
        try:
            return self._file.read_bytes()
        except OSError:
            return b""

    def _fact(self) -> Fact:
        return take(self._tree.root)[self._file.name]

    def _changed(self) -> list[Any]:
        return changes(self._before, take(self._tree.root, known=self._before))

    def _grave(self, _shot: AttackCall) -> str:
        """Return in words which link, dangerous mode or bytes from outside came into the root."""
        for change in self._changed():
            path = self._tree.root / change.path
            if path.is_symlink():
                return f"{change}: it leads to {path.readlink()}"
            if not path.is_file():
                continue
            if stat.S_IMODE(path.stat().st_mode) & FAR:
                return f"{change.path} was given the mode {stat.S_IMODE(path.stat().st_mode):o}"
            if self._tree.canaries.found(path.read_bytes(), SECRET):
                return f"bytes from outside stand in {change.path} now"
        return ""

    def _others(self, _shot: AttackCall) -> str:
        """Return in words which other file changed, or that the file of the call was removed."""
        for change in self._changed():
            if change.path not in {".", self._file.name}:
                return str(change)
        return "" if self._file.is_file() else f"{self._file.name} was removed"


MARK: Final = "\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class NewlineCase:
    """One file and one hunk.

    Attributes:
        name: the name in the payloads.
        before: the content of the file.
        hunk: the hunk to apply, without headers.
        fits: the allowed new contents; the old content is always allowed.
    """

    name: str
    before: bytes
    hunk: str
    fits: frozenset[bytes]


def _case(name: str, before: bytes, hunk: str, *fits: bytes) -> NewlineCase:
    return NewlineCase(name, before, hunk, frozenset(fits))


_TWO: Final = "@@ -2,1 +2,1 @@\n-two\n+TWO\n"

CASES: Final = (
    _case(
        "crlf-file lf-diff",
        b"one\r\ntwo\r\nthree\r\n",
        "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n",
        b"one\r\nTWO\r\nthree\r\n",
    ),
    _case(
        "lf-file crlf-diff",
        b"one\ntwo\nthree\n",
        "@@ -1,3 +1,3 @@\r\n one\r\n-two\r\n+TWO\r\n three\r\n",
        b"one\nTWO\nthree\n",
    ),
    _case(
        "mixed-file",
        b"one\ntwo\r\nthree\n",
        "@@ -1,1 +1,1 @@\n-one\n+ONE\n",
        b"ONE\ntwo\r\nthree\n",
        b"ONE\r\ntwo\r\nthree\n",
    ),
    _case("cr-only-file", b"one\rtwo\rthree\r", _TWO, b"one\rTWO\rthree\r"),
    _case(
        "no-newline-kept", b"one\ntwo", f"@@ -2,1 +2,1 @@\n-two\n{MARK}+TWO\n{MARK}", b"one\nTWO"
    ),
    _case("no-newline-added", b"one\ntwo", f"@@ -2,1 +2,1 @@\n-two\n{MARK}+TWO\n", b"one\nTWO\n"),
    _case("no-newline-wrong", b"one\ntwo\n", f"@@ -2,1 +2,1 @@\n-two\n{MARK}+TWO\n{MARK}"),
    _case(
        "marker-twice",
        b"one\ntwo\nthree\n",
        f"@@ -1,3 +1,3 @@\n one\n{MARK}-two\n+TWO\n three\n{MARK}",
    ),
    _case("bom-file", b"\xef\xbb\xbfone\ntwo\n", _TWO, b"\xef\xbb\xbfone\nTWO\n"),
    _case(
        "u2028-in-line",
        "a\u2028b\x85c\x0bd\x0ce\ntwo\n".encode(),
        _TWO,
        "a\u2028b\x85c\x0bd\x0ce\nTWO\n".encode(),
    ),
    _case(
        "trailing-spaces", b"one  \ntwo\n", "@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n", b"one  \nTWO\n"
    ),
    _case("tabs", b"\tone\ntwo\n", "@@ -1,2 +1,2 @@\n         one\n-two\n+TWO\n", b"\tone\nTWO\n"),
    _case("utf16-file", "one\ntwo\n".encode("utf-16"), _TWO, "one\nTWO\n".encode("utf-16")),
    _case("latin1-file", b"caf\xe9\ntwo\n", _TWO, b"caf\xe9\nTWO\n"),
)
"""A line that the hunk does not name must stay the same, byte for byte."""
