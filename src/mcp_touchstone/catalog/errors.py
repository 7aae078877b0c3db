"""Errors that a user can correct: their base class, printed on one line."""


class UserError(Exception):
    """An error that the user can correct; the message names fault, place and remedy.

    The command line prints it on one line and exits with status 2.
    """


def our_fault(error: Exception) -> str:
    """Return a message that names an error of this program and the place it was raised."""
    frame = error.__traceback__
    while frame and frame.tb_next:
        frame = frame.tb_next
    line = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else "?"
    return f"a fault of mcp-touchstone itself: {type(error).__name__}: {error} ({line})"
