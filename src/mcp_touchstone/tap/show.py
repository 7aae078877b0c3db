"""A recorded conversation as a sequence on a screen."""

from collections.abc import Iterator
from typing import Final

from mcp_touchstone.report.text import cut, plural
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.tap.judge import SIDES, breaches, trouble_of
from mcp_touchstone.tap.recording import Recording, Row
from mcp_touchstone.tap.replay import Replay, replay
from mcp_touchstone.wire.events import Side
from mcp_touchstone.wire.framing import Kind, brief, id_key, kind_of, object_in, read
from mcp_touchstone.wire.lifecycle import Asked
from mcp_touchstone.wire.transcript import Transcript

ARROWS: Final = {Side.CLIENT: "→", Side.SERVER: "←", Side.STDERR: "!", Side.EVENT: "·"}
SHOWN: Final = 60
"""Characters of a value on a line."""


def text(recording: Recording, width: int) -> Iterator[str]:
    """Yield the lines of a conversation, of the width of a screen.

    A request has the line and the time of its answer beside it; a broken rule is below its line.
    """
    one = replay(recording)
    yield from _head(one)
    notes: dict[int | None, list[str]] = {}
    for side in SIDES:
        for n, clause, actual in breaches(one, side):
            notes.setdefault(n, []).append(f"{clause}: {actual}")
    answers = dict(_answers(one.server)) | dict(_answers(one.client))
    for n, row in one.lines:
        number = str(n) if n else ""
        beside = answers.get(n, "") if n else ""
        head = f"{number:>5} {row.at:9.3f} {ARROWS[row.side]} "
        said = safe(_said(row))
        room = max(20, width - len(head) - (len(beside) + 2 if beside else 0))
        yield f"{head}{cut(said, room)}{'  ' * bool(beside)}{beside}"
        for note in notes.pop(n, ()) if n else ():
            yield cut(f"{'✗':>17} {safe(note)}", max(width, 40))
    for note in (note for rest in notes.values() for note in rest):
        yield cut(f"{'✗':>17} {safe(note)}", max(width, 40))
    for who, asked in _unanswered(one):
        yield f"never answered: {who} line {asked.line}, {safe(_asked(asked.value))}"


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
            yield asked.line, "cancelled" if asked.cancelled else "no answer"


def _unanswered(one: Replay) -> Iterator[tuple[str, Asked]]:
    for who, transcript in (("client", one.server), ("server", one.client)):
        for asked in transcript.session.asked:
            if transcript.answer_to(asked.line) is None and not asked.cancelled:
                yield who, asked


def _said(row: Row) -> str:
    """Return a line in short: a request by method and parameters, an answer by its id."""
    if row.side in {Side.EVENT, Side.STDERR}:
        return row.text
    value = read(row.line).value
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
