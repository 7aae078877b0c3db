"""Transcripts and reproduction scripts as files, for ``--save`` and ``--scripts``."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.report.text import masked
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import ARROWS, Outcome, carrier, carriers
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.wire.exchange import Exchange

PART: Final = 64 * 1024
"""Characters of a line that ends a part of a file."""

LINES: Final = 200
"""Greatest number of lines of a part."""


def transcripts(
    connections: Iterable[Connection], directory: Path, environment: Mapping[str, str]
) -> int:
    """Write one file for each process, with time, direction and scenario; return their number.

    Raises:
        OSError: the directory cannot be made or written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    count = 0
    for count, connection in enumerate(connections, 1):
        transcript = connection.transcript
        label = transcript.label.replace(" ", "-")
        path = directory / f"{count:02d}-{transcript.revision}-{label}.txt"
        with path.open("w", encoding="utf-8") as file:
            part: list[str] = []  # a transcript may be longer than the memory
            for line in _lines(connection, environment):
                part.append(line)
                if len(line) > PART or len(part) >= LINES:
                    file.write(masked("\n".join([*part, ""]), environment))
                    part.clear()
            file.write(masked("\n".join([*part, ""]), environment))
    return count


def _lines(connection: Connection, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of the file of a process, stderr without secrets of several lines."""
    transcript = connection.transcript
    yield f"# revision {transcript.revision}, process {transcript.label}"
    scenario = None
    carried = carriers(transcript.exchanges)
    for entry in transcript:
        if entry.scenario != scenario:
            scenario = entry.scenario
            yield f"# {scenario or 'recon'}"
        yield f"{entry.n:>4} {entry.at:8.3f} {ARROWS[entry.source]} {safe(entry.text)}"
        if http := carrier(entry, carried):
            yield f"{'':>16}{safe(http)}"
    if transcript.exchanges:
        yield "# HTTP exchanges"
        yield from map(_exchange, list(transcript.exchanges))
    words = connection.channel.stderr()
    if words.strip():
        yield "# stderr"
        yield from map(safe, masked(words, environment).splitlines())


def _exchange(exchange: Exchange) -> str:
    """Return one line about an HTTP exchange: times, request, response, line, number of events."""
    end = "open" if exchange.ended is None else f"{exchange.ended:.3f}"
    line = f" for line {exchange.line}" if exchange.line else ""
    events = f"; {len(exchange.events)} events" if exchange.streams else ""
    left = "; we closed it" if exchange.left else ""
    shown = f"{exchange.request}{line} → {exchange.response}{events}{left}"
    return f"{exchange.number:>4} {exchange.began:8.3f} {end:>8} {safe(shown)}"


def scripts(run: Run, directory: Path, environment: Mapping[str, str]) -> int:
    """Write the shell script of each finding that has one, as ``RULE-REVISION.sh``.

    Returns:
        the number of scripts.

    Raises:
        OSError: the directory cannot be made or written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    count = 0
    for verdict in run.of(Outcome.FAIL, Outcome.WARN, Outcome.NOTE):
        script = verdict.gravest.reproduction
        if script:
            path = directory / f"{verdict.clause.id}-{verdict.revision}.sh"
            path.write_text(masked(script, environment), encoding="utf-8")
            path.chmod(0o755)
            count += 1
    return count
