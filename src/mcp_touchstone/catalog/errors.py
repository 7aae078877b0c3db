"""Errors that a user can correct: their base class, printed on one line."""

import re
from typing import Final


class UserError(Exception):
    """An error that the user can correct; the message names fault, place and remedy.

    The command line prints it on one line and exits with status 2.
    """


class InputError(UserError, ValueError):
    """A file cannot be used; the message names the file, the place in it and the remedy."""


def our_fault(error: Exception) -> str:
    """Return a message that names an error of this program and the place it was raised."""
    frame = error.__traceback__
    while frame and frame.tb_next:
        frame = frame.tb_next
    line = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else "?"
    return f"a fault of mcp-touchstone itself: {type(error).__name__}: {error} ({line})"


_REFUSING: Final = re.compile(
    r"\b(director(y|ies)|folders?|vault|workspace|repository|mcp-touchstone-\w+)\b", re.IGNORECASE
)

OTHER_FOLDER: Final = (
    "if it refuses the throw-away root, --root-from FOLDER fills it with a copy of a folder that "
    "it accepts, and --world FOLDER makes it in another place"
)


def seems_refused(said: str) -> bool:
    """Return whether a server may have refused its folder, to judge by its words; for a hint."""
    return _REFUSING.search(said) is not None
