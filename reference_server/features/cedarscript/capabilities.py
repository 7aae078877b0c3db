"""The result of ``list_capabilities``: the supported forms of the language. Pure functions."""

from __future__ import annotations

from .engine import MEMORY, RUN_SECONDS
from .indentation import DEEPEST
from .library import VERSIONS
from .policy import refused_constructs
from .scan import LARGEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_COMMANDS = [
    (
        "CREATE FILE 'path' WITH CONTENT '''...'''",
        "CREATE FILE 'pkg/util.py' WITH CONTENT '''\n@0:def double(x):\n@1:return 2 * x\n'''",
    ),
    ("RM FILE 'path'", "RM FILE 'old.py'"),
    (
        "UPDATE FILE 'path' INSERT BEFORE|AFTER LINE ... WITH CONTENT '''...'''",
        "UPDATE FILE 'm.py' INSERT AFTER LINE 'import sys' WITH CONTENT 'import os'",
    ),
    (
        "UPDATE FILE 'path' INSERT INTO FUNCTION|METHOD|CLASS 'name' TOP|BOTTOM WITH CONTENT ...",
        "UPDATE FILE 'm.py' INSERT INTO FUNCTION 'main' TOP WITH CONTENT '@0:x = 0'",
    ),
    (
        "UPDATE FUNCTION|METHOD|CLASS 'name' FROM FILE 'path' REPLACE BODY|WHOLE WITH CONTENT ...",
        "UPDATE METHOD 'A.get' FROM FILE 'm.py' REPLACE BODY WITH CONTENT '@0:return 42'",
    ),
    (
        "UPDATE ... REPLACE|DELETE LINE ...",
        (
            "UPDATE FUNCTION 'calculate' FROM FILE 'm.py' REPLACE LINE 'y = x + 1' WITH CONTENT "
            "'@0:y = x + 2'"
        ),
    ),
    (
        (
            "UPDATE ... REPLACE|DELETE SEGMENT STARTING AT|BEFORE|AFTER LINE ... ENDING AT|BEFORE|"
            "AFTER LINE ..."
        ),
        "UPDATE FILE 'a.txt' DELETE SEGMENT STARTING AFTER LINE 'one' ENDING BEFORE LINE 'five'",
    ),
    (
        "UPDATE ... REPLACE BODY|WHOLE WITH CASE WHEN ... THEN SUB r'pattern' r'text' | REMOVE END",
        (
            "UPDATE FUNCTION 'main' FROM FILE 'm.py' REPLACE BODY WITH CASE WHEN REGEX r'print\\(' "
            "THEN SUB r'print\\(' r'log(' END"
        ),
    ),
    (
        "UPDATE FUNCTION|METHOD|CLASS 'name' FROM FILE 'path' DELETE WHOLE",
        "UPDATE METHOD 'A.util' FROM FILE 'm.py' DELETE WHOLE",
    ),
    (
        (
            "UPDATE ... MOVE FUNCTION|METHOD|CLASS 'name' INSERT BEFORE|AFTER|INTO "
            "FUNCTION|METHOD|CLASS 'name' ..."
        ),
        "UPDATE CLASS 'A' FROM FILE 'm.py' MOVE METHOD 'get' INSERT INTO CLASS 'B' BOTTOM",
    ),
    (
        "UPDATE FUNCTION|METHOD|CLASS 'name' FROM FILE 'path' MOVE WHOLE INSERT ...",
        "UPDATE FUNCTION 'main' FROM FILE 'm.py' MOVE WHOLE INSERT AFTER FUNCTION 'calculate'",
    ),
    (
        (
            "UPDATE ... MOVE LINE ... | SEGMENT ... INSERT BEFORE|AFTER LINE ... "
            "[RELATIVE INDENTATION n]"
        ),
        "UPDATE FILE 'a.txt' MOVE LINE 'one' INSERT AFTER LINE 'three'",
    ),
]
_NOTES = [
    "Keywords are in capitals; paths, names and lines are quoted; # and -- begin a comment.",
    "The script is alone in the text, or in code fences named CEDARScript.",
    "CONTENT: @n: before a line indents it n levels deeper than the place it goes to.",
    "CONTENT: a line without that is inserted unchanged, with its own white space.",
    "LINE 'text' is a whole line; white space around it does not matter.",
    "LINE number counts from the first line of the target, be it a file or a function.",
    "LINE takes REGEX, PREFIX, SUFFIX and EMPTY too; OFFSET n skips n matches.",
    "WHEN takes EMPTY, REGEX, PREFIX, SUFFIX or LINE 'text'.",
    "Nested names have dots: METHOD 'Class.name'; OFFSET chooses among several.",
    "MOVE stays in its file; the place after INSERT is looked up in all of that file.",
    "MOVE: what moves takes the level of its new place; no blank line is added or removed.",
    "MOVE in Python takes whole statements, and is refused if anything else would change.",
    "Write backslashes in r'...', several lines in triple quotes.",
    "All commands of a script are carried out, or none.",
    "Encoding, newlines and the end of a file stay as they are.",
]


def describe(reason: str | None, *, read_only: bool, largest: int) -> dict[str, Any]:
    """Build the result of ``list_capabilities``.

    Args:
        reason: Why scripts cannot be carried out; None if they can.
        largest: Limit for the size of a file, in bytes.
    """
    described: dict[str, Any] = {
        "available": reason is None,
        "library": {
            "name": "cedarscript-editor",
            "version": VERSIONS["cedarscript-editor"],
            "python": "3.11 or 3.12",
        },
        "read_only": read_only,
        "commands": [{"form": form, "example": example} for form, example in _COMMANDS],
        "notes": _NOTES,
        "not_carried_out": refused_constructs(),
        "symbols": ["python"],
        "lines": ["*"],
        "limits": {
            "script_bytes": LARGEST,
            "file_bytes": largest,
            "seconds": RUN_SECONDS,
            "memory_bytes": MEMORY,
            "indentation_levels": DEEPEST,
        },
    }
    if reason is not None:
        described["reason"] = reason
    return described
