"""Files and answers around a limit that the server promises.

A file counts as returned whole if its last line is returned: an answer that is cut, or that
contains only a requested part, keeps the limit. Files have many short lines, so that a tool that
reads by lines returns a part.
"""

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mcp_touchstone.security.suite import (
    ArgumentRole,
    AttackCall,
    AttackSession,
    Binding,
    Broken,
    Operation,
    Payload,
    Reply,
    SafePath,
    attack,
    attack_calls,
)


@attack("limits-size-read", "limits-size-alias", "limits-size-served", fixtures=("base",))
def reads_nothing_above_its_limit(session: AttackSession) -> None:
    """A file above the limit is not returned whole under any name; a file below it is."""
    sizes = Sizes(session)
    sizes.read("limits-size-read", "size.boundary", via="session")
    sizes.read("limits-size-alias", "size.evasion", via="path")
    sizes.serve("limits-size-served", "size.boundary", via="session")


@attack("limits-size-write", fixtures=("base",))
def makes_nothing_above_its_limit(session: AttackSession) -> None:
    """No file grows above the limit, and none that is above it is changed."""
    Sizes(session).write("limits-size-write", "size.boundary")


@attack("limits-answer", "limits-answer-served", fixtures=("base",))
def answers_within_its_limit(session: AttackSession) -> None:
    """No answer has more characters of a file than promised; smaller files are returned whole."""
    sizes = Sizes(session)
    sizes.read("limits-answer", "size.readlimit", via="path")
    sizes.serve("limits-answer-served", "size.readlimit", via="path")


WIDEST: Final = 4 << 20
"""Most bytes of content in one call: transports have their own limits."""

LARGEST: Final = 64 << 20
"""Most bytes of a file that the attack makes."""

FACTORS: Final[Mapping[str, tuple[int, int]]] = {
    "limit-1": (1, -1),
    "limit": (1, 0),
    "limit+1": (1, 1),
    "limit*10": (10, 0),
    "chars_499999.txt": (1, -1),
    "chars_500001.txt": (1, 1),
    "chars_2m.txt": (4, 0),
    "lnk_big": (2, 0),
    "hard_big": (2, 0),
    "sparse_1t.bin": (10, 0),
}
"""Size of a payload -> factor of the limit, and the number of characters to add."""

WIDE: Final = "bytes_500002_chars_250001.txt"
"""A payload with letters of two bytes: more bytes than the limit, and fewer letters."""

SERVED: Final = 1 << 20
"""Greatest limit for which files below it are read: answers may have their own limit."""

WRITES: Final = frozenset({Operation.CREATE, Operation.WRITE, Operation.EDIT})
LINE: Final = "touchstone\n"
GROWTH: Final = "g" * 64 + "\n"


class Sizes:
    """A server with a limit, under attack."""

    def __init__(self, session: AttackSession) -> None:
        self._session = session
        self._tree = session.tree
        self._ends: dict[str, str] = {}

    def read(self, threat: str, *groups: str, via: str) -> None:
        """Read files above the limit, by their names and by links."""
        rows = [r for r in self._rows(*groups, via=via) if r.expect == "deny"]

        def shots() -> Iterator[AttackCall]:
            for row in rows:
                for binding in self._readers(threat) if self._size(threat, row) else ():
                    yield self._reading(threat, row, binding)

        def oracle(shot: AttackCall, reply: Reply) -> str:
            end = self._ends.get(shot.text, "")
            whole = bool(end) and end in json.dumps(reply.value or {})
            return f"a file of {self._told(shot)} came back as a whole" if whole else ""

        self._fire(threat, shots(), oracle)

    def serve(self, threat: str, *groups: str, via: str) -> None:
        """Read files just below the limit; at least one tool must return each of them."""
        self._session.begin()
        refused, tried = [], 0
        for row in self._rows(*groups, via=via):
            if (
                self._limit(threat) > SERVED
                or row.expect not in {"safe", "same-as-plain"}
                or not self._is_below(threat, row)
            ):
                continue
            tried += 1
            if not any(self._gives(self._reading(threat, row, b)) for b in self._readers(threat)):
                refused.append(f"no tool gave a file of {self._size(threat, row)} characters")
        self._session.judge.conclude(
            threat,
            refused[0] if refused else "",
            expected="a file below the limit is served",
            if_passed=f"{tried} sizes" if tried else "the limit is too large to be asked for",
        )

    def write(self, threat: str, *groups: str) -> None:
        """Make files above the limit: in one write, by growing, and by changing a large file."""
        limit = self._limit(threat)

        def shots() -> Iterator[AttackCall]:
            for row in self._rows(*groups, via="session"):
                for binding in self._session.claims.promised(
                    self._session.bindings, threat, *WRITES
                ):
                    shot = self._writing(row, binding, limit)
                    if shot is not None:
                        yield shot

        def oracle(shot: AttackCall, _reply: Reply) -> str:
            size = self._size_of(shot)
            held = self._ends.get(shot.text)
            changed = held is not None and size != int(held)
            what = f"a file of {size} bytes was made; the limit is {limit}"
            return what if size > limit and (held is None or changed) else ""

        self._fire(threat, shots(), oracle)

    def _gives(self, shot: AttackCall) -> bool:
        """Send a call; return whether the last line of its file comes back."""
        self._session.payloads.fire(shot.payload.id)
        reply = self._session.wire.request(*shot.call, required=False)
        return self._ends[shot.text] in json.dumps(reply.value or {})

    # --- files

    def _rows(self, *groups: str, via: str) -> list[Payload]:
        return self._session.payloads(*groups, via=via)

    def _readers(self, threat: str) -> list[Binding]:
        """Return the tools that read whole files, not ranges of lines."""
        found = self._session.claims.promised(self._session.bindings, threat, Operation.READ)
        return [binding for binding in found if not binding.has(ArgumentRole.LINE)]

    def _limit(self, threat: str) -> int:
        limit = self._session.claims.terms[threat].limit
        if limit is None:
            raise Broken("the promise names no limit")
        return limit

    def _size(self, threat: str, row: Payload) -> int:
        """Return the size of a payload's file; 0 if it has none or is too large to make."""
        if row.text == WIDE:
            return self._limit(threat) * 3 // 4
        given = json.loads(row.text) if row.via == "session" else {"size": row.text}
        if given.get("op", "read") != "read" or str(given.get("size")) not in FACTORS:
            return 0
        factor, more = FACTORS[str(given["size"])]
        size = factor * self._limit(threat) + more
        return size if size <= LARGEST else 0

    def _is_below(self, threat: str, row: Payload) -> bool:
        limit = self._limit(threat)
        return 0 < self._size(threat, row) < limit <= SERVED

    def _reading(self, threat: str, row: Payload, binding: Binding) -> AttackCall:
        """Make the file of a payload, and return the call that reads it."""
        size = self._size(threat, row)
        name = binding.naming.placed(f"size-{secrets.token_hex(4)}.txt")
        end = f"end-{secrets.token_hex(12)}"
        path = self._new(name)
        if row.text.startswith("sparse"):
            path.make_sparse(size, end.encode())
        else:
            letter = "\u00e9" if row.text == WIDE else "x"
            path.write_text(_text(size, end, letter))
        shown = path
        if row.text.startswith(("lnk", "hard")):
            shown = path.with_name(f"{row.text}-{path.name}")
            if row.text.startswith("lnk"):
                shown.symlink_to(path.name)
            else:
                shown.hardlink_to(path)
        root = str(self._tree.root)
        self._ends = {str(shown): end}
        call = binding.call(binding.in_style(str(shown.relative_to(self._tree.root)), root), root)
        return AttackCall(row, str(shown), binding, call, live=True)

    def _writing(self, row: Payload, binding: Binding, limit: int) -> AttackCall | None:
        """Prepare a call that makes a file too large; return None if the payload does not fit."""
        given = json.loads(row.text)
        makes = binding.operation is Operation.CREATE
        path = self._new(binding.naming.placed(f"size-{secrets.token_hex(4)}.txt"))
        before, content = b"", ""
        if given.get("op") == "write":
            before, content = b"", _text(limit + 1, LINE)
        elif given.get("op") == "patch" and not makes:
            before, content = _text(limit + 1, LINE).encode(), GROWTH
        elif given.get("op") == "patch-grow" and not makes:
            before, content = _text(limit - 1, LINE).encode(), GROWTH
        replaces = binding.operation is Operation.WRITE
        large = WIDEST if not binding.has(ArgumentRole.DIFF) else WIDEST >> 2
        if not content or max(len(before), len(content)) > large or (replaces and before):
            return None
        self._ends = {}
        if before:
            path.write_bytes(before)
            self._ends = {str(path): str(len(before))}
        elif not makes:
            before = b"first line\n" + LINE.encode()
            path.write_bytes(before)
        root = str(self._tree.root)
        spelled = binding.in_style(str(path.relative_to(self._tree.root)), root)
        call = binding.call(spelled, root, before=before, content=content)
        return AttackCall(row, str(path), binding, call, live=True)

    def _new(self, name: str) -> SafePath:
        """Remove the files of the previous call, and return a new path in the root."""
        for path in [one for one in self._tree.root.below() if "size-" in one.name]:
            path.remove()
        return self._tree.root / name

    def _told(self, shot: AttackCall) -> str:
        return f"{self._size_of(shot)} bytes"

    def _size_of(self, shot: AttackCall) -> int:
        """Return the size of the file of a call, in bytes; 0 if there is no file."""
        path = self._tree.path.tree.at(shot.text)
        return path.stat().st_size if path is not None and path.is_file() else 0

    def _fire(self, threat: str, shots: Iterable[AttackCall], oracle: Any) -> None:
        limit = self._limit(threat)
        expected = f"no file above the limit of {limit} is read as a whole or made"
        attack_calls(self._session, threat, shots, oracle=oracle, expected=expected)


def _text(size: int, end: str, letter: str = "x") -> str:
    """Return a text of ``size`` characters in distinct lines; the last line is ``end``."""
    lines = [f"first {secrets.token_hex(4)}\n"]
    room = size - len(lines[0]) - len(end)
    for number in range(room):
        line = f"{number} {letter * 56}\n"
        if len(line) >= room:
            break
        lines.append(line)
        room -= len(line)
    return "".join([*lines, letter * (room - 1), "\n" * (room > 0), end])
