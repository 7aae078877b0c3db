"""What each command made of each file, to name the one after which a file is no Python. Pure."""

from __future__ import annotations

import sys

from .policy import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    Step = tuple[int, int, str | None]

_KEPT = 16 * 1024 * 1024
"""Characters of all texts that are kept; beyond that the last command on a file is named."""


class Steps:
    """The texts between the commands of one script."""

    def __init__(self) -> None:
        self._steps: dict[str, list[Step]] = {}
        self._size = 0

    def add(self, key: str, index: int, line: int, text: str | None) -> None:
        """Note what a command has made of a file.

        Args:
            key: Of the file.
            index: Of the command, from 1.
            line: Of the script, from 1.
            text: All of the file; None if there is none any more.
        """
        steps = self._steps.setdefault(key, [])
        self._size += len(text or "")
        if self._size > _KEPT:
            steps.clear()
        steps.append((index, line, text))

    def check(self, key: str, before: str | None, after: str, path: str) -> None:
        """Refuse an edit after which a file is no Python any more; most wrong edits show here.

        Raises:
            Refused: ``BREAKS_SYNTAX``, with the line of the file and the command that broke it.
        """
        if before is not None and syntax_error(before) is not None:
            return
        error = syntax_error(after)
        if error is None:
            return
        python = ".".join(map(str, sys.version_info[:2]))
        index, line = self._breaker(key)
        raise Refused(
            "BREAKS_SYNTAX",
            f"The file would not be valid Python ({python}) any more: {error.msg}.",
            "Begin each line of CONTENT with @0: for the level of the place it goes to, @1: for "
            "one level deeper; lines without it go in as they stand.",
            type="ExecutionError",
            file=path,
            line=error.lineno or 1,
            command_index=index,
            script_line=line,
        )

    def _breaker(self, key: str) -> tuple[int, int]:
        """Give index and line of the first command after the file was valid for the last time."""
        steps = self._steps[key]
        found = steps[-1]
        for step in reversed(steps):
            if step[2] is None or syntax_error(step[2]) is None:
                break
            found = step
        return found[:2]


def syntax_error(text: str) -> SyntaxError | None:
    """Give what Python says against a text; None if it is valid."""
    try:
        compile(text, "file", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error
    except ValueError as error:  # a NUL, or a number of too many digits
        return SyntaxError(type(error).__name__)
    return None
