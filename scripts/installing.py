"""Install the packages of a server into a folder of its own, for scripts that judge releases."""

import shutil
import subprocess
import sys
from pathlib import Path

from mcp_touchstone.catalog.sdk import PYPI


def installed(place: Path, registry: str, *packages: str) -> str:
    """Install packages with pip or npm, unless it was done; return the program for a script there.

    Args:
        place: the folder; one whose installation was broken off is made again.
        registry: ``pypi`` or ``npm``.
        packages: names with versions, as pip or npm reads them.
    """
    done = place / "installed"
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not done.exists():
        shutil.rmtree(place, ignore_errors=True)
        if registry == PYPI:
            _run(sys.executable, "-m", "venv", "--without-pip", place)
            pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet")
            _run(*pip, *packages)
        else:
            place.mkdir(parents=True)
            (place / "package.json").write_text('{"name": "server", "private": true}\n', "utf-8")
            quiet = ("--no-audit", "--no-fund", "--silent", "--prefix", place)
            _run(shutil.which("npm") or "npm", "install", *quiet, *packages)
        done.touch()
    return str(python) if registry == PYPI else shutil.which("node") or "node"


def _run(*words: object) -> None:
    subprocess.run(list(map(str, words)), check=True)
