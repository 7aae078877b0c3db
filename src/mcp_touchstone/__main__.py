"""The start of the program: ``mcp-touchstone``, or ``python -m mcp_touchstone``.

From here on a signal ends it in one line. So nothing else is imported before; ``signal`` itself
would import more than the interpreter has imported at its start.
"""

import _signal  # type: ignore[import-not-found]
import os
import sys


def program() -> None:
    """Run the command line and exit; see ``cli.program``."""
    if sys.argv[1:2] != ["serve"]:  # the reference server has signals of its own
        for number in (_signal.SIGINT, _signal.SIGTERM):
            if _signal.getsignal(number) is not _signal.SIG_IGN:
                _signal.signal(number, _leave)
    from mcp_touchstone import cli  # noqa: PLC0415  (see above)

    cli.program()


def _leave(_number: int, _frame: object) -> None:
    """Exit at once: nothing was begun yet, see ``runtime.interrupts`` for what comes later."""
    os.write(2, b"mcp-touchstone: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    program()
