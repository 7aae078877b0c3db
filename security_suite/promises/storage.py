"""Writes that are interrupted.

If a server is killed while it writes, the file must contain the old bytes or the new ones. To learn
the new bytes, the attack makes the same write twice without a kill. It also measures the duration.
Half of the kills are spread over that duration. The others come at the first change of the file or
its folder, as a write in place has begun by then.

If the disk is full during a write, the file must contain the old bytes or the new ones. No disk is
filled: the size of the files that the server may write is limited. A write then fails half-way as
on a full disk (EFBIG for ENOSPC), or SIGXFSZ ends the process.
"""

from dataclasses import dataclass, field
from typing import Final

from mcp_touchstone.security.suite import (
    PATIENCE,
    PLANTED,
    ArgumentRole,
    AttackSession,
    Binding,
    Breach,
    Broken,
    Call,
    Operation,
    Reply,
    SafePath,
    Trigger,
    attack,
    killed,
    now,
    rlimits,
    sleep,
)


@attack("storage-full", fixtures=("base",))
def keeps_the_old_where_there_is_no_room(session: AttackSession) -> None:
    """A write that fails half-way leaves no half of a file."""
    fill(session, "storage-full")


@attack("storage-killed", fixtures=("base",))
def keeps_old_or_new_when_it_is_killed(session: AttackSession) -> None:
    """A server that is killed while it writes leaves no half of a file."""
    kill(session, "storage-killed")


SIZES: Final = (64 << 10, 512 << 10, 2 << 20)
"""Sizes of the file in bytes; kills use the largest one that the server writes in time."""

QUICK: Final = 1.0
"""Most seconds of a write after which a larger size is tried."""

MOMENTS: Final = 6
"""Kills spread over the duration of a write."""

SIGHTS: Final = 3
"""Kills at the first change of the file, and as many at the first change in its folder."""

SETTLING: Final = 0.5
"""Seconds that a torn file must stay the same before it counts: no process writes it then."""

NAME: Final = "file.txt"
FIRST: Final = "touchstone line 1\n"
BEFORE: Final = "what was there before"
AFTERWARDS: Final = "what is there afterwards"
EXPECTED: Final = "the old bytes or the new ones, whole"
WRITERS: Final = (Operation.WRITE, Operation.EDIT, Operation.CREATE)

Stamp = tuple[int, ...]
"""Inode, size and time of a file; empty if there is none."""


def kill(session: AttackSession, threat: str) -> None:
    """Kill the server while it writes with each tool that writes, makes or edits files."""
    session.begin()
    kills, tools, left = 0, 0, ""
    for number, binding in enumerate(sorted(_writers(session, threat), key=_makes)):
        target = _Target(session, binding, session.tree.root / f"killed-{number}")
        took = target.measure()
        if not took:
            continue
        tools += 1
        for when in _turns(took):
            kills += 1
            reply, torn = target.kill_during_write(when)
            if torn:
                session.judge.conclude(
                    threat, torn, expected=EXPECTED, at=reply, script=target.script()
                )
                return
            session.renew()
            left = left or target.left()
    if not tools:
        session.judge.unseen(threat, "no tool wrote the same twice")
        return
    session.judge.conclude(
        threat,
        left,
        expected="nothing beside the file, once the server runs again",
        if_passed=f"{kills} kills of {tools} tools",
        mild=Breach.NOTE,
        because="the file itself is whole",
    )


def _writers(session: AttackSession, threat: str) -> list[Binding]:
    """Return the tools whose files contain exactly the content of the call."""
    found = session.claims.promised(session.bindings, threat, *WRITERS)
    return [binding for binding in found if binding.gives_content and binding.is_verbatim]


def _makes(binding: Binding) -> bool:
    """Return whether a tool makes files; such tools come last, as no old content is at risk."""
    return binding.operation is Operation.CREATE


@dataclass(frozen=True, slots=True)
class _When:
    """A moment to kill.

    Attributes:
        seconds: time after the call is sent; None for the first change.
        beside: whether any change in the folder counts, not only one of the file.
    """

    seconds: float | None = None
    beside: bool = False


def _turns(took: float) -> list[_When]:
    spread = [_When(took * (number + 0.5) / MOMENTS) for number in range(MOMENTS)]
    return [*([_When(), _When(beside=True)] * SIGHTS), *spread]


@dataclass
class _Target:
    """One tool and the file that it writes when the server is killed."""

    session: AttackSession
    binding: Binding
    folder: SafePath
    size: int = 0
    new: bytes = field(default=b"", repr=False)

    @property
    def path(self) -> SafePath:
        return self.folder / self.binding.naming.suffixed(NAME)

    @property
    def old(self) -> bytes | None:
        """The content before the write; None if the tool makes the file."""
        if self.binding.operation is Operation.CREATE:
            return None
        return (FIRST + _lines(BEFORE, self.size)).encode()

    def measure(self) -> float:
        """Find the largest file that is written in time; return the seconds it took, or 0."""
        found = 0.0
        for size in SIZES:
            before, self.size = self.size, size
            took, made = self._undisturbed()
            if took and self._undisturbed()[1] == made:
                found, self.new = took, made
                if took <= QUICK:
                    continue
            self.size = size if found == took and found else before
            break
        return found

    def kill_during_write(self, when: _When) -> tuple[Reply, str]:
        """Kill the server during the write; return the reply and the fault of the file."""
        self._lay()
        wire = self.session.wire
        end = wire.process.doomed()
        call = wire.build(*self._call())
        trigger = Trigger(end, lambda: self._seen(when), when.seconds)
        if when.seconds is None:
            trigger.start()
        asked = wire.say(call, required=False)
        if when.seconds is not None:
            trigger.start()
        reply = wire.answer_to(asked, max(PATIENCE, self.session.pace.reply))
        trigger.stop()
        end()
        wire.process.wait(PATIENCE)
        return reply, self._torn()

    def left(self) -> str:
        """Return in words which file is left beside the file; empty if there is none."""
        names = sorted(one.name for one in self.folder.iterdir() if one != self.path)
        return f"{self.binding.tool}: {names[0]} is left beside the file" if names else ""

    def script(self) -> str:
        """Return a script that kills the server during the same write."""
        path = self.path.relative_to(self.session.tree.root).as_posix()
        units = _line(AFTERWARDS), _line(BEFORE)
        return killed(self.session.scene, self._call(), path, self.old, units)

    # --- the file

    def _lay(self) -> None:
        self.folder.mkdir(exist_ok=True)
        for one in self.folder.iterdir():
            one.unlink()
        if self.old is not None:
            self.path.write_bytes(self.old, PLANTED)

    def _held(self) -> bytes | None:
        return self.path.read_bytes() if self.path.is_file() else None

    def _torn(self) -> str:
        """Return in words why the file is neither old nor new, once it no longer changes."""
        held = self._held()
        while held not in {self.old, self.new}:
            sleep(SETTLING)
            before, held = held, self._held()
            if before == held:
                there = "nothing" if held is None else f"{len(held)} bytes"
                was = "no file was" if self.old is None else f"{len(self.old)} bytes were"
                name = self.binding.tool
                return f"{name}: {there} where {was} and {len(self.new)} were to be"
        return ""

    # --- the write

    def _undisturbed(self) -> tuple[float, bytes]:
        """Let the server write; return the seconds until the answer, and the new content.

        Return zero and no bytes if the write failed.
        """
        self._lay()
        wire = self.session.wire
        asked = wire.say(wire.build(*self._call()), required=False)
        begun = now()
        reply = wire.answer_to(asked, max(PATIENCE, self.session.pace.reply))
        took, made = now() - begun, self._held()
        if not reply.answered:
            self.session.renew()
        changed = reply.answered and made not in {None, self.old} and len(made or b"") >= self.size
        return (took, made or b"") if changed else (0.0, b"")

    def _call(self) -> Call:
        root = str(self.session.tree.root)
        name = self.binding.in_style(str(self.path.relative_to(self.session.tree.root)), root)
        content = FIRST.replace("line 1", "line 1 as it is now")
        if self.binding.operation is not Operation.EDIT and not self.binding.has(ArgumentRole.DIFF):
            content += _lines(AFTERWARDS, self.size)
        return self.binding.call(name, root, before=self.old or b"", content=content)

    # --- the moment

    def _seen(self, when: _When) -> tuple[object, ...]:
        names = sorted(one.name for one in self.folder.iterdir()) if when.beside else ()
        return (*names, *_stamp(self.path))


def _stamp(path: SafePath) -> Stamp:
    try:
        seen = path.stat()
    except OSError:
        return ()
    return seen.st_ino, seen.st_size, seen.st_mtime_ns


def _lines(words: str, size: int) -> str:
    """Return few long lines, because tools that compare lines are slow on many."""
    line = _line(words)
    return line * (size // len(line) + 1)


def _line(words: str) -> str:
    return (words + " ") * (4096 // len(words)) + "\n"


ROOM: Final = 64 << 10
"""Most bytes of a file while the disk is full; the old content is much smaller."""

NEW: Final = 256 << 10
"""Least bytes of the new content: more than ``ROOM``."""

FULL_FIRST: Final = "touchstone line 1\n"
FULL_BEFORE: Final = FULL_FIRST + "what was there before\n" * 256
FILLED_EXPECTED: Final = "the old bytes or the new ones, and nothing left beside them"


def fill(session: AttackSession, threat: str) -> None:
    """Write more than there is room for with each tool that writes, makes or edits files.

    Raises:
        Broken: nothing could be written.
    """
    session.begin()
    found, tried, at = "", 0, None
    ways = sorted(_writers(session, threat), key=lambda way: WRITERS.index(way.operation))
    for number, binding in enumerate(ways):
        folder = session.tree.root / f"full-{number}"
        folder.mkdir()
        path = folder / binding.naming.suffixed("file.txt")
        if binding.operation is not Operation.CREATE:
            path.write_text(FULL_BEFORE)
        with rlimits.narrowed(session.wire.process.pid, ROOM) as held:
            if not held:
                session.judge.unseen(threat, "only Linux can limit what another process may write")
                return
            reply = _write(session, binding, path)
        tried += 1
        found = _flaw(binding, path, answered=reply.answered)
        if found:
            at = reply
            break
        if not reply.answered:
            session.renew()
    if not tried:
        raise Broken("no tool could be used")
    session.judge.conclude(
        threat, found, expected=FILLED_EXPECTED, if_passed=f"{tried} tools", at=at
    )


def _write(session: AttackSession, binding: Binding, path: SafePath) -> Reply:
    """Send the call that writes the new content."""
    root = str(session.tree.root)
    name = binding.in_style(path.relative_to(session.tree.root).as_posix(), root)
    content = "what is there afterwards\n" * (NEW // 24)
    before = FULL_BEFORE.encode() if path.exists() else b""
    call = binding.call(name, root, before=before, content=content)
    limit = max(PATIENCE, session.pace.reply)
    return session.wire.request(*call, required=False, seconds=limit)


def _flaw(binding: Binding, path: SafePath, *, answered: bool) -> str:
    """Return the fault in words; other files in the folder count only if the server answered."""
    left = path.read_bytes() if path.is_file() else None
    old = None if binding.operation is Operation.CREATE else FULL_BEFORE.encode()
    if left != old and (left is None or len(left) < NEW):
        size = "nothing" if left is None else f"{len(left)} bytes"
        was = "no file was" if old is None else f"{len(old)} bytes were"
        return f"{binding.tool}: {size} where {was}, after a write with room for {ROOM}"
    beside = sorted(one.name for one in path.parent.iterdir() if one != path)
    return f"{binding.tool}: {beside[0]} is left beside the file" if beside and answered else ""
