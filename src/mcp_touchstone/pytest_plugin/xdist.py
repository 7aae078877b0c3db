"""One run for all workers of pytest-xdist: one worker checks the server, the others read."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from filelock import FileLock

Document = dict[str, Any]


class WorkerLost(Exception):  # noqa: N818  (an outcome of the worker's, not a fault of ours)
    """The worker that checked the server stopped before it was done."""


def folder(uid: str, number: int) -> Path:
    """Return the folder in which the workers of one session share the results of a job."""
    return Path(tempfile.gettempdir()) / f"mcp-touchstone-xdist-{uid}-{number}"


def once(place: Path, judge: Callable[[], Document]) -> Document:
    """Return the results; the first worker checks the server while the others wait.

    If that worker is killed, its lock is released and the next worker checks the server.

    Raises:
        WorkerLost: the check ended with an exception in another worker.
    """
    place.mkdir(exist_ok=True)
    with FileLock(place / "lock"):
        found = _read(place)
        if found is None:
            found = {"gone": "the worker that checked the server stopped"}
            try:
                found = judge()
            finally:
                part = place / "results.part"
                part.write_text(json.dumps(found), encoding="utf-8")
                part.replace(place / "results.json")
    if "gone" in found:
        raise WorkerLost(found["gone"])
    return found


def read(place: Path) -> Document | None:
    """Return the results; None if there are none."""
    found = _read(place)
    return None if found is None or "gone" in found else found


def _read(place: Path) -> Document | None:
    try:
        found: Document = json.loads((place / "results.json").read_text("utf-8"))
    except FileNotFoundError:
        return None
    return found
