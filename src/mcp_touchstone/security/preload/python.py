"""Runs in a Python server under test, as its ``sitecustomize``: notes which variables it asks for.

It is copied into the server's home, so it imports nothing of ours, and the server may run an older
Python. What the standard library asks for is left out. A copy of the whole environment reads each
name, so after one a name that is set counts only if ``get``, ``getenv`` or ``in`` asked for it.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
COPIED = "*"
MAPPING = {os.getenv.__code__.co_filename, os.environ.pop.__func__.__code__.co_filename}  # type: ignore[attr-defined]
"""Files through which a program asks for a variable."""

known: set[str] = set()


def note(text: str) -> None:
    """Append a line to the notes, once."""
    if text in known:
        return
    known.add(text)
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        place = os.open(os.path.join(HERE, "reads"), flags, 0o600)
        try:
            os.write(place, (text + "\n").encode("utf-8", "replace"))
        finally:
            os.close(place)
    except OSError:
        pass


def of_library() -> bool:
    """Return whether the caller is of the standard library."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in {__file__, *MAPPING}:
        frame = frame.f_back
    name = frame.f_code.co_filename
    return name.startswith("<frozen") or (name.startswith(LIBRARY) and "-packages" not in name)


def ask(name: Any) -> None:
    """Note a name."""
    if not of_library():
        note("=" + os.fsdecode(name))


def watch(kind: Any) -> None:
    """Watch the mapping of the environment."""
    read, walk, get, holds = kind.__getitem__, kind.__iter__, kind.get, kind.__contains__

    def reads(self: Any, name: Any) -> Any:
        try:
            value = read(self, name)
        except KeyError:
            ask(name)
            raise
        if COPIED not in known:
            ask(name)
        return value

    def walks(self: Any) -> Iterator[Any]:
        if not of_library():
            note(COPIED)
        return walk(self)  # type: ignore[no-any-return]

    def contains(self: Any, name: Any) -> Any:
        ask(name)
        return holds(self, name)

    def gets(self: Any, name: Any, default: Any = None) -> Any:
        ask(name)
        return get(self, name, default)

    kind.__getitem__, kind.__iter__, kind.__contains__, kind.get = reads, walks, contains, gets


def run_hidden() -> None:
    """Run the ``sitecustomize`` of the installation, which this one hides."""
    path, ours = list(sys.path), sys.modules.pop("sitecustomize", None)
    sys.path[:] = [place for place in path if os.path.abspath(place) != HERE]
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        if ours is not None:
            sys.modules["sitecustomize"] = ours
    finally:
        sys.path[:] = path


if os.path.basename(__file__) == "sitecustomize.py":
    try:
        note("Python")
        watch(type(os.environ))
    except Exception:  # the server must start all the same
        pass
    run_hidden()
