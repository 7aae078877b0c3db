"""What the official client says of a server: on the terminal, in the JSON report."""

from collections.abc import Iterator
from typing import Any, Final

from mcp_touchstone.interop import Interop, Step, Way, Word
from mcp_touchstone.report.text import cut, safe

WIDTH: Final = 160
COMPLAINTS: Final = 3
"""Complaints shown of one way; the report has them all."""


def text(interop: Interop) -> Iterator[str]:
    """Write it for a terminal."""
    yield ""
    yield f"the official client (mcp {safe(interop.sdk)}, Python {safe(interop.python)}) beside it:"
    if interop.trouble:
        yield f"  was not asked: {safe(interop.trouble)}"
    for way in interop.ways:
        yield f"  {way.revision}  {way.word}{_because(way)}"
        for complaint in way.complaints[:COMPLAINTS]:
            yield f"              {cut(safe(complaint), WIDTH)}"
        if len(way.complaints) > COMPLAINTS:
            yield f"              and {len(way.complaints) - COMPLAINTS} more"


def _because(way: Way) -> str:
    if way.why:
        return f": {safe(way.why)}"
    if way.word is Word.FAILS:
        broken = [step for step in way.steps if not step.held]
        return f" at {'; '.join(_told(step) for step in broken)}"
    told = [_told(step) for step in way.steps]
    if not any(step.name.startswith("call ") for step in way.steps):
        told.append("no tool was found that may be called")
    return f": {', '.join(told)}"


def _told(step: Step) -> str:
    return cut(safe(f"{step.name} ({step.told})"), WIDTH)


def document(interop: Interop) -> dict[str, Any]:
    """Write it for the report."""
    return {
        "sdk": interop.sdk,
        "python": interop.python,
        "trouble": interop.trouble,
        "ways": [
            {
                "revision": way.revision,
                "word": str(way.word),
                "why": way.why,
                "steps": [
                    {"step": step.name, "held": step.held, "told": step.told} for step in way.steps
                ],
                "complaints": list(way.complaints),
            }
            for way in interop.ways
        ],
    }
