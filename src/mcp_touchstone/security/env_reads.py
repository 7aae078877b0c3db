"""Which variables a server asks for, as seen from inside programs of Python and Node.js.

A module of ours runs in them before their own code and appends names to a file in the throw-away
home. The server may write there too, so the names are words of the server, and that a name is not
among them proves nothing.
"""

import contextlib
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from mcp_touchstone.bindings.observed import MOST, Observed
from mcp_touchstone.runtime.scratch import World
from mcp_touchstone.sandbox.sandbox import VARIABLES
from mcp_touchstone.target.target import Target

FOLDER: Final = ".mcp-touchstone"
"""Folder of the throw-away home with our modules and the notes."""

NOTES: Final = "reads"
COPIED: Final = "*"

LARGEST: Final = 1 << 16
"""Bytes of the notes that are read."""

PRELOAD: Final = Path(__file__).parent / "preload"
FILES: Final = {"sitecustomize.py": "python.py", "node.cjs": "node.cjs"}
LANGUAGES: Final = ("Python", "Node.js")

_NAME: Final = re.compile(r"=([A-Za-z_]\w{0,59})", re.ASCII)


def watched(target: Target, world: World, inherited: Mapping[str, str]) -> Target:
    """Return a target whose Python and Node.js programs note the variables that they ask for.

    Args:
        inherited: the variables that it gets beside its own.
    """
    folder = world.home / FOLDER
    folder.mkdir(exist_ok=True)
    for name, source in FILES.items():
        (folder / name).write_text((PRELOAD / source).read_text("utf-8"))
    known = {**inherited, **target.env}
    paths = filter(None, (str(folder), known.get("PYTHONPATH")))
    module = str(folder / "node.cjs").replace(os.sep, "/")
    options = filter(None, (known.get("NODE_OPTIONS"), f'--require "{module}"'))
    ours = {"PYTHONPATH": os.pathsep.join(paths), "NODE_OPTIONS": " ".join(options)}
    return replace(target, env={**target.env, **ours})


def noted(known: Observed, world: World) -> Observed:
    """Return what is known of a server, with the variables that it asked for in a world."""
    lines: list[str] = []
    with contextlib.suppress(OSError):
        data = (world.home / FOLDER).opened().read(NOTES, LARGEST, whole=False)
        lines = data.decode("utf-8", "replace").splitlines()
    found = filter(None, map(_NAME.fullmatch, lines))
    ours = {*world.env({}), "NODE_OPTIONS"}
    names = (one[1] for one in found if not (one[1] in ours or VARIABLES.fullmatch(one[1])))
    return replace(
        known,
        reads=tuple(dict.fromkeys(names))[: 2 * MOST],
        readers=tuple(one for one in LANGUAGES if one in lines),
        copied=COPIED in lines,
    )
