"""Servers that promise a record of each write.

Each write must leave a record, and a file name must not forge one. Only output that is visible from
outside is checked: standard error, and log messages to the client.
"""

import re
import secrets
from pathlib import PurePosixPath
from typing import Any, Final

from mcp_touchstone.security.suite import (
    CHANGING,
    AttackSession,
    Binding,
    Broken,
    Operation,
    Reply,
    Source,
    attack,
    changes,
    now,
    sleep,
    take,
)


@attack("audit-writes", "audit-forged", fixtures=("base",))
def records_what_it_writes(session: AttackSession) -> None:
    """Each write leaves a record with a time and the name of the file, and no name forges one."""
    recorded(session, "audit-writes", "audit.log")
    unforged(session, "audit-forged", "audit.log")


WRITES: Final = CHANGING - {Operation.MKDIR, Operation.STAGE}

TIME: Final = re.compile(r"\d\d:\d\d|\b1\d{9}")
"""A time of day, or seconds or more since 1970."""

LOOK: Final = 0.01
"""Seconds between two looks at a log."""

FORGED: Final = "forged"
"""Word of a payload that gets a new suffix in each call."""


class _Log:
    """The log output since the creation of this object."""

    def __init__(self, session: AttackSession) -> None:
        self._wire = session.wire
        self._bytes = self._wire.process.pipes.stderr_bytes
        self._line = len(self._wire.transcript)

    @property
    def printed(self) -> list[str]:
        """The lines on standard error."""
        pipes = self._wire.process.pipes
        new = pipes.stderr_bytes - self._bytes
        return pipes.stderr_tail[-new:].decode("utf-8", "replace").split("\n") if new else []

    @property
    def records(self) -> list[str]:
        """The lines on standard error, and the log messages to the client."""
        sent = [
            entry.text
            for entry in self._wire.transcript.since(self._line)
            if entry.source is Source.THEM
            and any(message.method == "notifications/message" for message in entry.messages)
        ]
        return self.printed + sent

    def names(self, files: list[str], seconds: float) -> bool:
        """Return whether a record with a time names one of the files within some seconds."""
        end = now() + seconds
        while True:
            if any(TIME.search(one) and any(f in one for f in files) for one in self.records):
                return True
            if now() >= end:
                return False
            sleep(LOOK)


def recorded(session: AttackSession, threat: str, *groups: str) -> None:
    """Write with every tool, and look for a record of each write.

    Raises:
        Broken: nothing was written.
    """
    session.begin()
    missing: list[tuple[Binding, str, Reply]] = []
    tried = 0
    for row, _ in session.payloads.actions("write-logged", *groups):
        session.payloads.fire(row.id)
        for binding in session.claims.promised(session.bindings, threat, *WRITES):
            before = take(session.tree.root)
            log = _Log(session)
            if not missing:
                session.server.mark()
            reply = session.wire.request(*session.targeting.plain(binding), required=False)
            written = _written(session, before)
            tried += bool(written)
            if written and not log.names(written, session.pace.silence):
                missing.append((binding, written[0], reply))
            session.tree.restore()
    if not tried:
        raise Broken("nothing was written")
    unnamed = [f"{where} was written by {binding.tool}" for binding, where, _ in missing]
    session.judge.conclude(
        threat,
        f"{unnamed[0]}, and no record with a time names it; {len(unnamed)} of {tried} writes"
        if unnamed
        else "",
        expected="each write leaves a record with a time and the name of the file",
        if_passed=f"{tried} writes with a record each",
        at=missing[0][2] if missing else None,
    )


def unforged(session: AttackSession, threat: str, *groups: str) -> None:
    """Send file names that look like records or control a terminal."""
    session.begin()
    log = _Log(session)
    sent: list[tuple[str, Binding, Reply]] = []
    root = str(session.tree.root)
    for row, given in session.payloads.actions("newline-forge esc-forge", *groups):
        session.payloads.fire(row.id)
        for binding in session.claims.promised(session.bindings, threat, Operation.READ, *WRITES):
            if not binding.uri:
                name = given["path"].replace(FORGED, f"{FORGED}-{secrets.token_hex(4)}")
                path = binding.spelled(name, root)
                call = binding.call(path, root, to=path)
                sent.append((name, binding, session.wire.request(*call, required=False)))
    if not sent:
        raise Broken("no payload could be fired")
    session.wire.quiet()
    lines = log.printed
    found = [(line, one) for one in sent if (line := _forged(one[0], lines))]
    session.judge.conclude(
        threat,
        f"{found[0][0]}, by {found[0][1][1].tool}" if found else "",
        expected="a record is one line without control characters, whatever its values contain",
        if_passed=f"{len(sent)} calls with names that look like records",
        at=found[0][1][2] if found else None,
    )


def _forged(name: str, lines: list[str]) -> str:
    """Return in words how a file name changed a log; empty if it did not."""
    _, newline, record = name.partition("\n")
    if newline and any(line.startswith(record) for line in lines):
        return "a file name became a record of its own in the log"
    if "\x1b" in name and any(name in line for line in lines):
        return "the log contains the control characters of a file name"
    return ""


def _written(session: AttackSession, before: Any) -> list[str]:
    """Return the names of the changed files of the root."""
    found = changes(before, take(session.tree.root, known=before))
    paths = [PurePosixPath(change.path) for change in found if change.path != "."]
    return [path.name for path in paths if not (session.tree.root / path).is_dir()]
