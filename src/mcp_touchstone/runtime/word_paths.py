"""Whether a word of a command names a file or a folder. Knows no MCP.

A word may be no path at all: a program, a token, text of any length. ``Path.is_file`` and
``Path.is_dir`` raise ``OSError`` for a name that is too long.
"""

import os
from pathlib import Path


def names_file(word: str | Path) -> bool:
    """Return whether a word is the path of a file."""
    return os.path.isfile(word)  # noqa: PTH113  (see above)


def names_folder(word: str | Path) -> bool:
    """Return whether a word is the path of a folder."""
    return os.path.isdir(word)  # noqa: PTH112  (see above)
