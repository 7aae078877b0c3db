"""The reading tools of the patch-only family: ``file_read`` and ``file_read_range``.

Both return the text, the hashes that ``file_apply_patch_only`` requires, and the facts that a text
editor would lose: encoding, byte order mark, newlines.
"""

from __future__ import annotations

from ..failure import ToolError
from ..protocol.toolbox import Tool
from .schemas import CWD, PATH, READS, inputs, outputs
from .text import ENCODING, FACTS, LONGEST_TEXT, advice, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..protocol.calls import Call
    from ..protocol.toolbox import Arguments, Work
    from ..surface import Surface
    from .text import Text

_FOUND: dict[str, dict[str, Any]] = {
    "path": {"type": "string", "description": "Of the file, relative to its root."},
    "text": {"type": "string", "description": "Without the byte order mark; newlines as stored."},
    **FACTS,
}


def install(surface: Surface) -> None:

    def read(call: Call, arguments: Arguments) -> dict[str, Any]:
        path, found = _open(surface, call, arguments)
        if len(found.text) > LONGEST_TEXT:
            raise _too_long(
                f"The file has {len(found.text)} characters in {found.line_count} lines; "
                f"one answer holds {LONGEST_TEXT}.",
                path,
                found,
                1,
            )
        return {"path": path, "text": found.text, **found.facts()}

    def read_range(call: Call, arguments: Arguments) -> dict[str, Any]:
        first, last = int(arguments["startLine"]), int(arguments["endLine"])
        if last < first:
            raise ToolError("endLine must not be less than startLine.", field="endLine")
        path, found = _open(surface, call, arguments)
        text, last = _part(path, found, first, last)
        return {"path": path, "text": text, **found.facts(), "startLine": first, "endLine": last}

    surface.toolbox.add(_read_tool(read))
    surface.toolbox.add(_read_range_tool(read_range))


def _read_tool(work: Work) -> Tool:
    return Tool(
        "file_read",
        alias="file.read",
        title="Read a file",
        description=(
            "Read a whole text file with its hashes, encoding and newline facts. "
            f"For files of more than {LONGEST_TEXT} characters use file_read_range."
        ),
        input_schema=inputs(("path",), path=PATH, cwd=CWD, encoding=ENCODING),
        output_schema=outputs(pending=False, **_FOUND),
        annotations=READS,
        work=work,
    )


def _read_range_tool(work: Work) -> Tool:
    return Tool(
        "file_read_range",
        alias="file.read_range",
        title="Read lines of a file",
        description=(
            "Read the lines startLine to endLine of a text file, both included. "
            "Hashes and facts are those of the whole file."
        ),
        input_schema=inputs(
            ("path", "startLine", "endLine"),
            path=PATH,
            startLine=_line("First line to read, counted from 1."),
            endLine=_line("Last line to read; one beyond the end means the last line."),
            cwd=CWD,
            encoding=ENCODING,
        ),
        output_schema=outputs(
            pending=False,
            **_FOUND,
            startLine=_line("First line in text."),
            endLine=_line("Last line in text."),
        ),
        annotations=READS,
        work=work,
    )


def _open(surface: Surface, call: Call, arguments: Arguments) -> tuple[str, Text]:
    found = surface.workspace.read(
        arguments["path"], cwd=arguments.get("cwd", ""), check=call.check
    )
    return found.path, read_text(found, arguments.get("encoding"))


def _part(path: str, found: Text, first: int, last: int) -> tuple[str, int]:
    """Return the lines ``first`` to ``last``, and the number of the last line that exists."""
    if first > found.line_count:
        raise ToolError(
            f"The file has {found.line_count} lines; startLine is beyond its end.",
            code="LINE_OUT_OF_RANGE",
            field="startLine",
            context={"file": path, "line": first},
        )
    last = min(last, found.line_count)
    text = found.part(first, last)
    if len(text) > LONGEST_TEXT:
        what = f"The lines {first} to {last} have" if last > first else f"Line {first} alone has"
        raise _too_long(
            f"{what} {len(text)} characters; one answer holds {LONGEST_TEXT}.", path, found, first
        )
    return text, last


def _too_long(message: str, path: str, text: Text, first: int) -> ToolError:
    way = "Call file_read_range with startLine {first} and endLine {last}, then go on from there."
    return ToolError(
        message,
        code="TEXT_TOO_LONG",
        context={"file": path},
        suggestions=[advice(text, first, way)],
        related_tools=["file_read_range"] if text.fitting(first) >= first else (),
    )


def _line(description: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "description": description}
