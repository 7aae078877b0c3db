"""What each side of a conversation broke, by the rules on all traffic, without a verdict."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from mcp_touchstone.catalog.loader import CLIENTS, CONFORMANCE, load
from mcp_touchstone.tap.recording import Recording
from mcp_touchstone.tap.replay import Replay
from mcp_touchstone.wire.events import Happened, Side

if TYPE_CHECKING:
    from mcp_touchstone.catalog.clause import Clause

CLIENT: Final = "client"
SERVER: Final = "server"
SIDES: Final = (SERVER, CLIENT)
SUITES: Final = {SERVER: CONFORMANCE, CLIENT: CLIENTS}


def trouble_of(recordings: Iterable[Recording], replays: Iterable[Replay]) -> str:
    """Return the reason that a conversation could not be judged; empty if all could."""
    for source, one in zip(recordings, replays, strict=True):
        where = source.path.name
        for row in source.events(Happened.NOT_STARTED):
            return f"{where}: {row.text}"
        for row in source.events(Happened.FULL):
            return f"{where}: {row.text}; what came later was not judged"
        lines = [row for row in source.rows if row.side in {Side.CLIENT, Side.SERVER}]
        if not one.revision:
            if source.probes and any(row.side is Side.SERVER for row in lines):
                continue
            texts = (row.text for row in source.rows[::-1] if row.side is Side.EVENT)
            end = next(filter(None, texts), "")
            if not any(row.side is Side.CLIENT for row in lines):
                why = "the client sent nothing"
            elif not any(row.side is Side.SERVER for row in lines):
                why = "the server answered nothing"
            else:
                why = "no revision was agreed"
            return f"{where}: {why}{'; ' * bool(end)}{end}"
        limit = one.server.overflow or one.client.overflow
        if limit:
            return f"{where}: {limit}; we read no further"
    return ""


def breaches(one: Replay, side: str) -> Iterator[tuple[int | None, str, str]]:
    """Yield what one side broke in a conversation: the line, the clause, and what it did."""
    registry = load(SUITES[side])
    record = one.server_record() if side == SERVER else one.client_record()
    for case in registry.ambients:
        clauses: list[Clause] = [
            clause
            for clause in case.clauses
            if one.revision in clause.revisions
            and one.transport in clause.transports
            and not clause.draft
        ]
        for seen in case.watch(record) if clauses else ():
            if not seen.passed and any(clause.id == seen.clause for clause in clauses):
                yield seen.n, seen.clause, seen.actual or f"expected {seen.expected}"
