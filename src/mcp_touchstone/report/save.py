"""Transcripts and reproduction scripts as files, for ``--save`` and ``--scripts``."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from mcp_touchstone.client.connection import Connection
from mcp_touchstone.report.text import masked
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import ARROWS, Outcome, carrier, carriers
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.wire.exchange import Exchange


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
        lines = [f"# revision {transcript.revision}, process {transcript.label}"]
        scenario = None
        carried = carriers(transcript.exchanges)
        for entry in transcript:
            if entry.scenario != scenario:
                scenario = entry.scenario
                lines.append(f"# {scenario or 'recon'}")
            lines.append(f"{entry.n:>4} {entry.at:8.3f} {ARROWS[entry.source]} {safe(entry.text)}")
            if http := carrier(entry, carried):
                lines.append(f"{'':>16}{safe(http)}")
        if transcript.exchanges:
            lines += ["# HTTP exchanges", *map(_exchange, list(transcript.exchanges))]
        words = connection.channel.stderr()
        if words.strip():
            lines += ["# stderr", *(safe(line) for line in words.splitlines())]
        text = masked("\n".join(lines) + "\n", environment)
        path.write_text(text, encoding="utf-8")
    return count


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
