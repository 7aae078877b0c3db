"""Draw the picture of the screen on the first page: a check of a server that prints, in colours.

    python scripts/screen.py        # writes docs/images/screen.svg

The server is that of docs/example with one line more. The lines of progress
and the times are left out.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT: Final = Path(__file__).resolve().parent.parent
PICTURE: Final = ROOT / "docs" / "images" / "screen.svg"
WIDTH: Final = 100
FAULT: Final = ("def _call(self,", '        print("a tool is called", flush=True)\n')
"""The head of a method of the server, and the line that is put below it."""

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
<title>mcp-touchstone check on a terminal</title>
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


def printed() -> str:
    """Return what a check of the server prints, with the codes of its colours."""
    source = (ROOT / "docs" / "example" / "src" / "notes_server.py").read_text("utf-8")
    head, line = FAULT
    before, _, after = source.partition(head)
    rest, _, body = after.partition("\n")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "server.py").write_text(f"{before}{head}{rest}\n{line}{body}", "utf-8")
        Path(folder, "python").symlink_to(sys.executable)
        words = [sys.executable, "-m", "mcp_touchstone", "check", "--color", "always"]
        env = {**os.environ, "COLUMNS": str(WIDTH), "PATH": f"{folder}:{os.environ['PATH']}"}
        done = subprocess.run(
            [*words, "--", "python", "server.py", "notes.txt"],
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
    return re.sub(r" +\(\d+ processes, [\d.]+ s\)", "", "\n".join(still))


def svg(text: str) -> str:
    """Return the picture of a text with codes of colours."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"$ mcp-touchstone check -- python server.py notes.txt\n{text}"))
    return console.export_svg(theme=THEME, code_format=FORMAT, unique_id="screen")


if __name__ == "__main__":
    PICTURE.write_text(svg(printed()), "utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}")
