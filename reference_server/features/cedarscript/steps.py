"""The text of each file after each command of a script.

The texts are used to find the command after which a Python file is invalid. No input or output.
"""

from __future__ import annotations

import sys

from .policy import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    Step = tuple[int, int, str | None]

_KEPT = 16 * 1024 * 1024
"""Limit for the length of all texts together, in characters.

Beyond the limit, texts are dropped. An error may then name a later command on the file.
"""


class Steps:
    def __init__(self) -> None:
        self._steps: dict[str, list[Step]] = {}
        self._size = 0

    def add(self, key: str, index: int, line: int, text: str | None) -> None:
        """Record the text of a file after a command."""
        steps = self._steps.setdefault(key, [])
        self._size += len(text or "")
        if self._size > _KEPT:
            steps.clear()
        steps.append((index, line, text))

    def check(self, key: str, before: str | None, after: str, path: str) -> None:
        """Refuse an edit after which a file is no longer valid Python.

        This check detects most wrong edits. A file that was invalid before is not checked.
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
        """Return the number and the line of the command that made the file invalid.

        This is the first command after the last valid text.
        """
        steps = self._steps[key]
        found = steps[-1]
        for step in reversed(steps):
            if step[2] is None or syntax_error(step[2]) is None:
                break
            found = step
        return found[:2]


def syntax_error(text: str) -> SyntaxError | None:
    """Return the syntax error of a Python source, or None if it is valid."""
    try:
        compile(text, "file", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error
    except ValueError as error:  # a NUL character, or a number with too many digits
        return SyntaxError(type(error).__name__)
    return None
