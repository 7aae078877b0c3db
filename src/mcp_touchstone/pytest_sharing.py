"""One run for all workers of pytest-xdist: the first that asks judges, the others read."""

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psutil

POLL: Final = 0.05
"""Seconds between two looks at whether the run is over."""

Document = dict[str, Any]


class Gone(Exception):  # noqa: N818  (an outcome of the worker's, not a fault of ours)
    """The worker that judged stopped before it was done."""


def folder(uid: str, number: int) -> Path:
    """Give the folder in which the workers of one session share what a job found."""
    return Path(tempfile.gettempdir()) / f"mcp-touchstone-xdist-{uid}-{number}"


def once(place: Path, judge: Callable[[], Document]) -> Document:
    """Judge, unless another worker does: then wait for it.

    Raises:
        Gone: the worker that judged stopped.
    """
    try:
        place.mkdir()
    except FileExistsError:
        return _await(place)
    (place / "owner").write_text(str(os.getpid()), encoding="ascii")
    found: Document = {"gone": "the worker that judged stopped"}
    try:
        found = judge()
    except BaseException as error:
        found = {"gone": f"the worker that judged stopped: {type(error).__name__}"}
        raise
    finally:
        part = place / "results.part"
        part.write_text(json.dumps(found), encoding="utf-8")
        part.replace(_results(place))
    return found


def read(place: Path) -> Document | None:
    """Give what was found; None where nobody judged, or not to the end."""
    try:
        found: Document = json.loads(_results(place).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return None if "gone" in found else found


def _await(place: Path) -> Document:
    while not _results(place).exists():
        time.sleep(POLL)
        pid = _owner(place)
        if pid is not None and not psutil.pid_exists(pid) and not _results(place).exists():
            raise Gone("the worker that judged the server is gone")
    found: Document = json.loads(_results(place).read_text("utf-8"))
    if "gone" in found:
        raise Gone(str(found["gone"]))
    return found


def _results(place: Path) -> Path:
    return place / "results.json"


def _owner(place: Path) -> int | None:
    """Give the process that judges; None while it has not said so, 0 where there is none."""
    try:
        return int((place / "owner").read_text("ascii"))
    except (OSError, ValueError):
        return None if place.is_dir() else 0
