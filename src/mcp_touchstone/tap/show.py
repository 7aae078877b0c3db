"""A recorded conversation as a sequence on a screen."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.report.text import cut, plural
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.tap.breaches import SIDES, breaches, trouble_of
from mcp_touchstone.tap.recording import SUFFIX, Recording, Row, read_all
from mcp_touchstone.tap.replay import Replay, replay
from mcp_touchstone.wire.events import Side
from mcp_touchstone.wire.framing import Kind, brief, id_key, kind_of, object_in, value_in
from mcp_touchstone.wire.lifecycle import Asked
from mcp_touchstone.wire.transcript import Transcript

ARROWS: Final = {Side.CLIENT: "→", Side.SERVER: "←", Side.STDERR: "!", Side.EVENT: "·"}
SHOWN: Final = 60
"""Characters of a value on a line."""

UNANSWERED: Final = "no answer"


@dataclass(frozen=True, slots=True)
class View:
    """Which lines of a conversation are shown.

    Attributes:
        tail: the number of the last lines; 0 for all.
        method: a method, or a pattern such as ``tools/*``: its requests, answers and notifications.
        broken: whether only lines that break a rule are shown.
        headers: whether the recorded HTTP headers are shown.
        until_broken: whether nothing is shown after the first line that breaks a rule.
        unjudged: whether no rule is asked. It takes most of the time.
    """

    tail: int = 0
    method: str = ""
    broken: bool = False
    headers: bool = False
    until_broken: bool = False
    unjudged: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether it has every line."""
        return replace(self, unjudged=False) == ALL


ALL: Final = View()


@dataclass(frozen=True, slots=True)
class Shown:
    """One line on the screen.

    Attributes:
        head: its number, its time and its direction.
        said: what was said, in short.
        beside: the answer to a request.
        broke: the rules that it breaks, each with what was done.
        headers: those that came with it.
        method: the method that it is about; empty for none.
    """

    head: str
    said: str
    beside: str = ""
    broke: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    method: str = ""

    def text(self, width: int) -> Iterator[str]:
        """Yield it as lines of the width of a screen."""
        room = max(20, width - len(self.head) - (len(self.beside) + 2 if self.beside else 0))
        yield f"{self.head}{cut(self.said, room)}{'  ' * bool(self.beside)}{self.beside}"
        for header in self.headers:
            yield cut(f"{'':>18}{header}", max(width, 40))
        for note in self.broke:
            yield cut(f"{'✗':>17} {note}", max(width, 40))


def text(recording: Recording, width: int, view: View = ALL) -> Iterator[str]:
    """Yield the lines of a conversation, of the width of a screen.

    A request has the line and the time of its answer beside it; a broken rule is below its line.
    """
    one = replay(recording)
    yield from _head(one)
    for line in last(shown(one, view), view.tail):
        yield from line.text(width)
    if view.is_whole:
        for who, asked in _unanswered(one):
            yield f"never answered: {who} line {asked.line}, {safe(_asked(asked.value))}"


def last(lines: Iterable[Shown], tail: int) -> Iterable[Shown]:
    """Return the last lines; for 0 all, as they come."""
    return deque(lines, tail) if tail else lines


def broken(recordings: Iterable[Recording]) -> bool:
    """Whether a conversation breaks a rule."""
    return any(True for one in recordings for side in SIDES for _ in breaches(replay(one), side))


def shown(one: Replay, view: View) -> Iterator[Shown]:
    """Yield the lines of a conversation that a view has."""
    for line in _lines(one, view):
        if _is_in(line, view):
            yield line
        if line.broke and view.until_broken:
            return


def _is_in(line: Shown, view: View) -> bool:
    """Whether a view has a line, wherever it is."""
    is_about = not view.method or fnmatchcase(line.method, view.method)
    return is_about and (bool(line.broke) or not view.broken)


def _lines(one: Replay, view: View) -> Iterator[Shown]:
    """Yield all lines of a conversation, and then what the whole of it breaks."""
    notes: dict[int | None, list[str]] = {}
    for side in () if view.unjudged else SIDES:
        for n, clause, actual in breaches(one, side):
            notes.setdefault(n, []).append(safe(f"{clause}: {actual}"))
    answers = dict(_answers(one.server)) | dict(_answers(one.client))
    methods = dict(_methods(one))
    heads = _headers(one.source) if view.headers else {}
    for n, row in one.lines:
        value = _value(one, n, row.side)
        yield Shown(
            f"{n or '':>5} {row.at:9.3f} {ARROWS[row.side]} ",
            safe(_said(row, value)),
            answers.get(n, "") if n else "",
            tuple(notes.pop(n, ())) if n else (),
            heads.pop((row.exchange, row.side), ()),
            methods.get(n, "") or str(value_in(value, "method") or ""),
        )
    rest = tuple(note for found in notes.values() for note in found)
    if rest:
        yield Shown("", "broken by the whole conversation", broke=rest)


class Follower:
    """The lines of recordings that still grow, each once.

    Args:
        folder: the recordings, or one of them.
        width: characters of a line of the screen.

    Attributes:
        broken: whether a line broke a rule.
    """

    def __init__(self, folder: Path, width: int, view: View) -> None:
        self._folder, self._width, self._view = folder, width, view
        self._told: dict[tuple[Path, int], list[set[str]]] = {}
        self._size = -1
        self.broken = False

    def news(self) -> Iterator[str]:
        """Yield what was recorded since the last call, and the rules that earlier lines broke.

        What a conversation breaks as a whole is left out, because it goes on.

        Raises:
            InputError: there are no recordings, or one cannot be read.
        """
        files = self._folder.glob(f"*{SUFFIX}") if self._folder.is_dir() else [self._folder]
        size = sum(path.stat().st_size for path in files if path.exists())
        if size == self._size:
            return
        self._size = size
        for number, recording in enumerate(read_all(self._folder)):
            yield from self._news_of(replay(recording), number)

    def _news_of(self, one: Replay, number: int) -> Iterator[str]:
        key = one.source.path, number
        if key not in self._told:
            yield from _head(one)
        told = self._told.setdefault(key, [])
        for n, line in enumerate(line for line in _lines(one, self._view) if line.head):
            if is_new := n == len(told):
                told.append(set())
            broke = tuple(note for note in line.broke if note not in told[n])
            told[n].update(broke)
            beside = line.beside if is_new and line.beside != UNANSWERED else ""
            headers = line.headers if is_new else ()
            news = replace(line, broke=broke, beside=beside, headers=headers)
            if (is_new or broke) and _is_in(news, self._view):
                yield from news.text(self._width)
            self.broken |= bool(broke)
            if self.broken and self._view.until_broken:
                return


def _methods(one: Replay) -> Iterator[tuple[int, str]]:
    """Yield the method of each request, and that of the request of each answer."""
    for transcript in (one.server, one.client):
        for asked in transcript.session.asked:
            yield asked.line, str(asked.method or "")
            if (answer := transcript.answer_to(asked.line)) is not None:
                yield answer[0].n, str(asked.method or "")


def _headers(source: Recording) -> dict[tuple[int, Side], tuple[str, ...]]:
    """Return the lines of the head of each request and response."""
    return {
        (row.exchange, row.side): tuple(
            map(safe, (row.text, *(f"{name}: {value}" for name, value in row.headers)))
        )
        for row in source.rows
        if row.headers is not None
    }


def _head(one: Replay) -> Iterator[str]:
    about = one.source.about
    yield f"{one.source.path.name}  {safe(str(about.get('started', '')))}"
    what = one.source.scenario or one.source.url or " ".join(one.source.command)
    yield f"  server    {safe(what)}"
    info = one.client_info
    yield f"  client    {safe(brief(info.get('name', '')))} {safe(brief(info.get('version', '')))}"
    yield f"  revision  {one.revision or 'none'}"
    trouble = trouble_of([one.source], [one])
    if trouble:
        yield f"  trouble   {safe(trouble)}"
    lost = 0 if one.source.url else len(one.source.rows) - len(one.lines)
    if lost > 0:
        yield f"  left out  {plural(lost, 'line')}"


def _answers(transcript: Transcript) -> Iterator[tuple[int, str]]:
    for asked in transcript.session.asked:
        answer = transcript.answer_to(asked.line)
        if answer is not None:
            entry, message = answer
            seconds = entry.at - transcript[asked.line].at
            word = "" if message.kind is Kind.RESULT else "error "
            yield asked.line, f"{word}in line {entry.n}, {seconds * 1000:.1f} ms"
        else:
            yield asked.line, "cancelled" if asked.cancelled else UNANSWERED


def _unanswered(one: Replay) -> Iterator[tuple[str, Asked]]:
    for who, transcript in (("client", one.server), ("server", one.client)):
        for asked in transcript.session.asked:
            if transcript.answer_to(asked.line) is None and not asked.cancelled:
                yield who, asked


def _value(one: Replay, n: int, side: Side) -> Any:
    """Return the JSON of a line, as its transcript has it; None for a line without JSON."""
    transcript = {Side.CLIENT: one.client, Side.SERVER: one.server}.get(side)
    if transcript is None:
        return None
    entry = transcript[n]
    return entry.reading.value if entry.reading is not None and not entry.spread else None


def _said(row: Row, value: Any) -> str:
    """Return a line in short: a request by method and parameters, an answer by its id."""
    if row.side in {Side.EVENT, Side.STDERR}:
        return row.text
    kind = kind_of(value)
    if kind in {Kind.REQUEST, Kind.NOTIFICATION}:
        return _asked(value)
    if kind in {Kind.RESULT, Kind.ERROR} and id_key(value.get("id")) is not None:
        member = "result" if kind is Kind.RESULT else "error"
        return f"{brief(value['id'], 20)} {member} {brief(value[member], 400)}"
    return row.text


def _asked(value: object) -> str:
    own = value if isinstance(value, dict) else {}
    params = {k: v for k, v in object_in(own, "params").items() if k != "_meta"}
    number = f"{brief(own['id'], 20)} " if "id" in own else ""
    return f"{number}{own.get('method')}{' ' * bool(params)}{brief(params, 400) if params else ''}"
