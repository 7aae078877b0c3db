"""Draw the pictures of the screen on the first page, in colours, from real runs.

    python scripts/screen.py        # writes docs/images/screen.svg and answer.svg

The servers are that of docs/example with a few changes: one prints, and is checked; one runs code,
and is attacked. Of the second run the picture has what decides on an installation. The lines of
progress and the times are left out.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "docs" / "images"
WIDTH: Final = 100


@dataclass(frozen=True)
class Picture:
    """A run, and what is shown of it.

    Attributes:
        name: of its file, without the suffix.
        title: what a reader who does not see it hears.
        options: of ``check``.
        edits: parts of the source of the server, and what replaces them.
        begin: the beginnings of the first lines of the parts that are shown; empty for all lines.
            A part ends at an empty line.
    """

    name: str
    title: str
    options: tuple[str, ...]
    edits: tuple[tuple[str, str], ...]
    begin: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The file of the picture."""
        return FOLDER / f"{self.name}.svg"

    @property
    def line(self) -> str:
        """The command line."""
        words = ("mcp-touchstone", "check", *self.options, "--", "python", "server.py", "{root}")
        return " ".join(words)


CALL: Final = "    def _call(self, name: Any, arguments: Any) -> dict[str, Any]:\n"
MAIN: Final = "def main() -> None:"
RUN: Final = """\
def run(text: str) -> str:
    try:
        return str(eval(text))
    except Exception as wrong:
        return str(wrong)


"""

PICTURES: Final = (
    Picture(
        "screen",
        "mcp-touchstone check on a terminal",
        (),
        ((CALL, f'{CALL}        print("a tool is called", flush=True)\n'),),
    ),
    Picture(
        "answer",
        "May I install this? The answer of mcp-touchstone check --suite security",
        ("--suite", "security", "--attack-commands"),
        (
            ('"search"', '"execute_code"'),
            ("Find the notes that contain a text.", "Run a line of Python."),
            ("found = [note for note in self._notes() if text in note]", "found = [run(text)]"),
            (MAIN, f"{RUN}{MAIN}"),
        ),
        ("mcp-touchstone", "not without review", "What it can do by design", "  in short"),
    ),
)

THEME: Final = TerminalTheme(
    (24, 26, 31),
    (220, 223, 228),
    [
        (24, 26, 31),
        (255, 107, 107),
        (127, 209, 127),
        (240, 198, 116),
        (122, 162, 247),
        (199, 146, 234),
        (125, 207, 255),
        (220, 223, 228),
    ],
)
FORMAT: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>{title}</title>
<style>
.{unique_id}-matrix {{
  font: {char_height}px/{line_height}px ui-monospace, Menlo, Consolas, monospace
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
<rect width="100%" height="100%" rx="8" fill="#181a1f"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""No font is loaded from elsewhere."""


def printed(picture: Picture) -> str:
    """Return what the run prints, with the codes of its colours."""
    source = (ROOT / "docs" / "example" / "src" / "notes_server.py").read_text("utf-8")
    for old, new in picture.edits:
        if old not in source:
            raise ValueError(f"the server of docs/example has no {old!r} any more")
        source = source.replace(old, new)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "server.py").write_text(source, "utf-8")
        Path(folder, "python").symlink_to(sys.executable)
        words = [sys.executable, "-m", "mcp_touchstone", "check", *picture.options]
        env = {**os.environ, "COLUMNS": str(WIDTH), "PATH": f"{folder}:{os.environ['PATH']}"}
        done = subprocess.run(
            [*words, "--color", "always", "--", "python", "server.py", "{root}"],
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            check=False,
        )
    lines = [line.rpartition("\x1b[2K")[2] for line in done.stdout.splitlines()]
    still = [
        line for line in lines if not re.search(r"[\u2800-\u28ff]|\x1b\[\?25|^failed so far", line)
    ]
    shown = still if not picture.begin else list(parts(still, picture.begin))
    return re.sub(r" +\(\d+ processes, [\d.]+ s\)", "", "\n".join(shown))


def parts(lines: list[str], begin: tuple[str, ...]) -> Iterator[str]:
    """Yield the parts that begin with some words, each up to its empty line."""
    inside = False
    for line in lines:
        plain = re.sub(r"\x1b\[[\d;]*m", "", line)
        if inside or plain.startswith(begin):
            inside = bool(plain)
            yield line


def svg(picture: Picture, text: str) -> str:
    """Return the picture of a text with codes of colours."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"$ {picture.line}\n{text}"))
    form = FORMAT.replace("{title}", picture.title)
    return console.export_svg(theme=THEME, code_format=form, unique_id=picture.name)


if __name__ == "__main__":
    for one in PICTURES:
        one.path.write_text(svg(one, printed(one)), "utf-8")
        print(f"wrote {one.path.relative_to(ROOT)}")
