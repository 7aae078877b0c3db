"""The file of one conversation: a line of JSON for each line of a peer, written before it passes.

The first line describes the recording. Each other line has ``at`` (seconds since the start) and
``from``: ``client``, ``server``, ``stderr`` or ``event``. Bytes that are not UTF-8 are lone
surrogates, as in Python's ``surrogateescape``.

Over HTTP each line has ``exchange``, the number of its request. A line with ``headers`` is the head
of a request or a response, any other line a body or, with ``event``, the data of an event. Headers
that may hold secrets have no value, and neither have parameters in a query.

What looks like a secret, anywhere, is replaced by a name of its own: equal values stay equal.
"""

import itertools
import json
import os
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.catalog.revision import ALL, META, is_modern
from mcp_touchstone.report.text import Masks
from mcp_touchstone.runtime.console import say
from mcp_touchstone.runtime.input_file import InputFile, parsed
from mcp_touchstone.runtime.members import Members
from mcp_touchstone.runtime.secrets import (
    hideable,
    in_header,
    in_message,
    in_words,
    is_recorded,
    is_whole,
    secrets,
)
from mcp_touchstone.transport.process import now
from mcp_touchstone.version import __version__
from mcp_touchstone.wire.events import Happened, Side
from mcp_touchstone.wire.exchange import Headers
from mcp_touchstone.wire.framing import LINE_LIMIT, Line, LineSplitter, value_in
from mcp_touchstone.wire.framing import read as read_line
from mcp_touchstone.wire.http_headers import NAME, PARAMETER, SESSION, VERSION, decoded, encoded
from mcp_touchstone.wire.sse import ServerEvent

FORMAT: Final = 1
SUFFIX: Final = ".jsonl"

ROOM: Final = 4096
"""Bytes kept for the last row of a full recording."""

MOST_SECRETS: Final = 1000
"""Greatest number of secrets that are remembered; the oldest are forgotten."""

LARGEST: Final = 96 << 20
"""Greatest size of a recording that is written or read, in bytes; reading takes at most 1 GiB."""

MOST_ROWS: Final = 200_000
"""Greatest number of lines of a recording that is written or read."""

ALL_TOGETHER: Final = 256 << 20
"""Greatest size of the recordings of a folder that are read together, in bytes."""

CURE: Final = "name a recording of `mcp-touchstone tap`"

_HEADS: Final = {True: re.compile("[^ :]+( |$)"), False: re.compile("[1-9][0-9][0-9]( |$)")}
"""Beginning of the head of a request, and of a response."""
_SIDES: Final = frozenset(map(str, Side))
_NO_BYTE: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that ``surrogateescape`` does not write."""


class Recorder:
    """The writer of one recording; a line is in the file before ``take`` returns.

    Args:
        path: the new file; None to keep the lines in memory, where no other process reaches them.
        about: further members of the first line.
        environment: variables whose secrets are hidden.
        most: its greatest size, in bytes; 0 for that of a file.
        planted: values of ours that are no secrets; what has one is recorded as it is, in a header
            or a query.

    Attributes:
        is_first: whether its folder had no recording before.
        kept: its lines in memory.
        full: whether it takes no more lines.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(
        self,
        path: Path | None,
        about: Mapping[str, Any],
        environment: Mapping[str, str],
        most: int = 0,
        planted: Collection[str] = (),
    ) -> None:
        most = most or LARGEST
        self._own, self._learned = Masks(), Masks(MOST_SECRETS)
        for name, secret in secrets(environment):
            self._own.add(name, secret)
        self._open = {*planted}
        self._planted = planted
        self._numbers = itertools.count(1)
        self._begun = now()
        self._most, self._left, self._rows = most, most - ROOM, MOST_ROWS - 1
        self._lock = threading.RLock()  # `_write` takes it again
        self._splitters = {side: LineSplitter(min(most, LINE_LIMIT)) for side in Side}
        self.is_first = path is None or not any(path.parent.glob(f"*{SUFFIX}"))
        self.kept, self.full, self._closed = bytearray(), False, False
        self._file = -1
        if path is not None:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._write({"recording": FORMAT, "tool": __version__, "started": started, **about})

    def take(self, side: Side, chunk: bytes) -> None:
        """Record the lines that the next bytes of a side complete."""
        with self._lock:
            for line in self._splitters[side].feed(chunk):
                self._write(self._row(side, line))
            if self._file < 0 and self._splitters[side].overlong:
                self.full = True  # it is not kept until its end, which may never come

    def end(self, side: Side) -> None:
        """Record the bytes after the last line feed of a side, if there are any."""
        with self._lock:
            rest = self._splitters[side].close()
            if rest is not None:
                self._write(self._row(side, rest))

    def event(self, sentence: str) -> None:
        """Record something that is no line."""
        self._write(self._row(Side.EVENT, sentence))

    def http(
        self,
        side: Side,
        exchange: int,
        text: str | Line,
        headers: Headers | None = None,
        **more: Any,
    ) -> None:
        """Record a part of an HTTP exchange.

        Args:
            side: who sent it; EVENT for its end.
            text: a body, the data of an event, a sentence, or what precedes headers.
        """
        row = self._row(side, text, exchange=exchange)
        if headers is not None:
            for name, value in headers:
                if is_whole(name) and value not in self._learned:
                    self._open.add(value)  # what earlier lines have must stay what it is
                self.hide(in_header(name, _plain(name, value)))
            row["headers"] = [[name, self._header(name, value)] for name, value in headers]
            self.hide(in_words(row["text"]))
        self._write(row | more)

    def _header(self, name: str, value: str) -> str:
        """Return the value of a header for the recording: one that repeats a body still does."""
        plain = _plain(name, value)
        shown = plain if plain == value else self._masked(plain)
        if not (is_recorded(name) or self.plants(plain)):
            return "HIDDEN"
        return value if shown == plain else encoded(shown)

    def plants(self, value: str) -> bool:
        """Return whether a value has one that is planted."""
        return any(one in value for one in self._planted)

    def hide(self, found: Iterable[str]) -> None:
        """Keep secrets out of this row and all later ones."""
        with self._lock:
            for secret in found:
                known = secret in self._own or secret in self._learned or secret in self._open
                if not known and not self.plants(secret) and hideable(secret):
                    self._learned.add(f"TOKEN-{next(self._numbers)}", secret)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
            self._file, self._closed = -1, True

    def _row(self, side: Side, text: str | Line, **about: Any) -> dict[str, Any]:
        row: dict[str, Any] = {"at": round(now() - self._begun, 6), "from": side, **about}
        if not isinstance(text, Line):
            return row | {"text": text}
        row["text"] = said = text.raw.decode("utf-8", "surrogateescape")
        self.hide(in_message(said))
        if text.cut:
            row["length"] = text.length
        if not text.terminated:
            row["open"] = True
        return row

    def _write(self, row: Mapping[str, Any]) -> None:
        """Append a line in one call; a full disk must not disturb the conversation."""
        with self._lock:
            if self._closed:
                return
            shown = {key: self._masked(value) for key, value in row.items()}
            raw = json.dumps(shown).encode() + b"\n"
            self._left, self._rows = self._left - len(raw), self._rows - 1
            why = f"{Happened.FULL}it may have {self._most >> 20} MiB" if self._left < 0 else ""
            why = f"{Happened.FULL}it may have {MOST_ROWS:,} lines" if self._rows < 0 else why
            if why:
                raw = json.dumps(self._row(Side.EVENT, why)).encode() + b"\n"
            try:
                if self._file < 0:
                    self.kept += raw
                else:
                    os.write(self._file, raw)
            except OSError as error:
                why = str(error.strerror)
            self.full = self.full or bool(why)
            if why:
                if self._file >= 0:
                    say(f"mcp-touchstone tap: it records no more: {why}", error=True)
                self.close()

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._learned.masked(self._own.masked(value))
        return [self._masked(one) for one in value] if isinstance(value, list) else value


def _plain(name: str, value: str) -> str:
    """Return the value of a header that may be in Base64 (2026-07-28, #value-encoding)."""
    repeats = name.lower().startswith((NAME.lower(), PARAMETER.lower()))
    return (decoded(value) if repeats else None) or value


def recorder(folder: Path, about: Mapping[str, Any], environment: Mapping[str, str]) -> Recorder:
    """Start a recording in a folder, which is made if there is none.

    Raises:
        InputError: it cannot be written there.
    """
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}{SUFFIX}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Recorder(folder / name, about, environment)
    except OSError as error:
        raise InputError(f"{folder}: no recording can be written: {error.strerror}") from error


@dataclass(slots=True, unsafe_hash=True)  # never changed; frozen, it is made five times as slowly
class Row:
    """One line of a recording.

    Attributes:
        at: seconds since the start.
        side: where it comes from.
        line: its bytes; for an event its sentence.
        exchange: number of its HTTP request; 0 on stdio.
        headers: those of the head that it is; None for anything else.
        event: the event of a stream that has it as its data; None for anything else.
    """

    at: float
    side: Side
    line: Line
    exchange: int = 0
    headers: Headers | None = None
    event: ServerEvent | None = None

    @property
    def text(self) -> str:
        """The line as text, with replacement characters for invalid UTF-8."""
        return self.line.raw.decode("utf-8", "replace")

    @property
    def happened(self) -> Happened | None:
        """The event that it is; None for a line, and for an event that no rule reads."""
        return Happened.of(self.text) if self.side is Side.EVENT else None

    @property
    def barred(self) -> bool:
        """Whether it is the head of a response that asks for a token, or for another scope."""
        head = self.headers is not None and self.side is Side.SERVER
        return head and self.text.partition(" ")[0] in {"401", "403"}


@dataclass(frozen=True, slots=True)
class Recording:
    """One conversation that was recorded.

    Attributes:
        about: the members of its first line.
    """

    path: Path
    about: Mapping[str, Any]
    rows: list[Row] = field(default_factory=list)

    @property
    def command(self) -> list[str]:
        """The command of the server; empty if it is ours."""
        found = self.about.get("command")
        return [str(word) for word in found] if isinstance(found, list) else []

    @property
    def url(self) -> str:
        """The URL of the server; empty on stdio."""
        return str(self.about.get("url") or "")

    @property
    def scenario(self) -> str:
        """The scenario that our server played; empty for another server."""
        return str(self.about.get("scenario") or "")

    @property
    def offered(self) -> str:
        """The revision that our server offers a client under test; empty for another server."""
        found = self.about.get("revision")
        return str(found) if found in ALL else ""

    @property
    def probes(self) -> bool:
        """Whether the client only asked which eras the server speaks."""
        said = [read_line(row.line).value for row in self.rows if row.side is Side.CLIENT]
        return {str(value_in(message, "method")) for message in said} == {"server/discover"}

    @property
    def fallback(self) -> "Recording | None":
        """The part up to the first ``initialize``, if a client spoke 2026-07-28 before it.

        It named it, or asked ``server/discover``. Without authorization, which belongs to the
        session that begins.
        """
        named = False
        for position, row in enumerate(self.rows):
            message = read_line(row.line).value if row.side is Side.CLIENT else None
            if value_in(message, "method") == "initialize":
                rows = self.rows[: position + 1]
                rows = [one for one in rows if one.happened is not Happened.AUTHORIZATION]
                return replace(self, rows=rows) if named else None
            version = value_in(message, "params", "_meta", META + "protocolVersion")
            asks = value_in(message, "method") == "server/discover"
            named = named or asks or is_modern(str(version))
        return None

    @property
    def versions(self) -> Iterator[str]:
        """Yield the revisions that headers of the client name."""
        heads = (row.headers for row in self.rows if row.side is Side.CLIENT and row.headers)
        return (v for head in heads for k, v in head if k.lower() == VERSION.lower())

    def events(self, *kinds: Happened) -> Iterator[Row]:
        """Yield the events of some kinds."""
        return (row for row in self.rows if row.happened in kinds)


def read(path: Path, *, named: bool = True) -> Recording:
    """Read a recording; a last line that was cut off by a kill is left out.

    Args:
        named: whether the user named this very file, so that it may be a link.

    Raises:
        InputError: it is no recording.
    """
    rows = InputFile(path, CURE, named=named, most=LARGEST).rows(cut=True)
    where, value = next(rows, (str(path), None))
    about = Members.of(value, f"{where}: the head of a recording")
    if about.get("recording", int) > FORMAT:
        raise InputError(f"{path}: a newer version wrote it; update mcp-touchstone")
    for name in ("scenario", "started", "revision"):
        about.get(name, str, "")
    about.texts("command")
    about.number("pid", int, 0)
    try:
        urlsplit(about.get("url", str, ""))
    except ValueError as error:
        raise InputError(f"{where}: url: {error}; {CURE}") from None
    found = [_row(Members.of(row, at)) for at, row in itertools.islice(rows, MOST_ROWS)]
    if next(rows, None) is not None:
        raise InputError(f"{path}: it has more than {MOST_ROWS:,} lines; {CURE}")
    return Recording(path, about.value, found)


def kept(raw: bytes, path: Path) -> Recording:
    """Return what a recorder kept in memory, under the name of a file."""
    about, *rows = map(json.loads, raw.split(b"\n")[:-1])
    return Recording(path, about, [_row(Members.of(row, str(path))) for row in rows])


def _row(row: Members) -> Row:
    text, side = row.get("text", str), row.get("from", str)
    if side not in _SIDES:
        raise InputError(f"{row.where}: from must be one of {', '.join(Side)}")
    if _NO_BYTE.search(text):
        raise InputError(f"{row.where}: text has a surrogate that stands for no byte")
    if side == Side.EVENT and Happened.of(text) is Happened.AUTHORIZATION:
        facts = text.removeprefix(Happened.AUTHORIZATION).partition(" ")[2]
        Members.of(parsed(facts, f"{row.where}: text", CURE, is_line=True), f"{row.where}: text")
    raw = text.encode("utf-8", "surrogateescape")
    headers = event = None
    if row.has("headers"):
        pairs = row.arrays("headers", ("name", "value"))
        headers = tuple((one.get("name", str), one.get("value", str)) for one in pairs)
        if not _HEADS[side == Side.CLIENT].match(text):
            raise InputError(f"{row.where}: text must begin with a method, or with a status")
    if row.has("event"):
        one = row.array("event", ("name", "id", "retry"))
        own = one.get("id", str) if one.has("id") else None
        retry = one.number("retry", int) if one.has("retry") else None
        event = ServerEvent(raw or None, one.get("name", str), own, retry)
    line = Line(raw, row.number("length", int, len(raw)), terminated=not row.has("open"))
    at, exchange = row.number("at", float), row.number("exchange", int, 0)
    return Row(at, Side(side), line, exchange, headers, event)


def read_all(folder: Path) -> list[Recording]:
    """Read the recordings of a folder, the oldest first.

    Raises:
        InputError: there are none, or one cannot be read.
    """
    named = not folder.is_dir()
    paths = [folder] if named else sorted(folder.glob(f"*{SUFFIX}"))
    if not paths:
        below = sorted({str(path.parent) for path in folder.glob(f"*/*{SUFFIX}")})
        hint = f"; name one of {', '.join(below)}" if below else "; `mcp-touchstone tap` makes them"
        raise InputError(f"{folder}: it has no recordings{hint}")
    if not named and sum(path.lstat().st_size for path in paths) > ALL_TOGETHER:
        raise InputError(f"{folder}: it has more than {ALL_TOGETHER:,} bytes; name one recording")
    return [one for path in paths for one in conversations(read(path, named=named))]


def conversations(source: Recording) -> list[Recording]:
    """Split what a tap over HTTP recorded into its sessions; return others as they are.

    An ``initialize`` begins a session, to which earlier requests belong that got no result; so does
    one that is refused for want of a token, and a question for the eras, when the last session has
    an id. Others belong to the session whose id they have, or else to the last one.
    """
    if not source.url:
        return [source]
    facts: dict[int, _Facts] = {}
    for row in source.rows:
        if row.exchange:
            facts.setdefault(row.exchange, _Facts()).learn(row)
    groups: list[set[int]] = []
    sessions: dict[str, set[int]] = {}
    reopened: list[tuple[int, set[int], Happened]] = []
    current: set[int] = set()
    for number, one in facts.items():
        begun = one.opens and any(facts[n].opens or facts[n].result for n in current)
        asks = one.probes and not one.session
        asks |= one.initializes and not one.opens
        again = asks and any(facts[n].issued for n in current)
        if not groups or begun or again:
            lost = [group for group in groups if any(facts[n].lost for n in group)]
            how = Happened.REOPENED_BY_ID if one.session else Happened.REOPENED
            reopened += [(number, group, how) for group in lost if one.initializes]
            groups.append(current := set())
        group = current if one.initializes else sessions.get(one.session, current)
        group.add(number)
        if one.opens and one.issued:
            sessions[one.issued] = group
    found = [Recording(source.path, source.about) for _ in groups or [set()]]
    for row in source.rows:
        for session, group in zip(found, groups or [set()], strict=True):
            if not row.exchange or row.exchange in group:
                session.rows.append(row)
            elif row.headers and row.side is Side.CLIENT:
                for number, before, how in reopened:
                    if number == row.exchange and before is group:
                        raw = how.encode()
                        session.rows.append(Row(row.at, Side.EVENT, Line(raw, len(raw))))
    return found


@dataclass(slots=True)
class _Facts:
    """What tells to which session an exchange belongs."""

    session: str = ""
    issued: str = ""
    initializes: bool = False
    opens: bool = False
    probes: bool = False
    result: bool = False
    lost: bool = False

    def learn(self, row: Row) -> None:
        if row.headers is not None:
            given = {name.lower(): value for name, value in row.headers}.get(SESSION.lower(), "")
            if row.side is Side.CLIENT:
                self.session = given
            else:
                self.opens &= not row.barred
                self.issued = given
                self.lost = bool(self.session) and row.text.startswith("404")
        elif row.side is Side.CLIENT:
            method = value_in(read_line(row.line).value, "method")
            self.initializes = self.opens = method == "initialize"
            self.probes = method == "server/discover"
        elif row.side is Side.SERVER:
            value = read_line(row.line).value
            self.result |= isinstance(value, dict) and "result" in value
