"""Write the locks: versions with hashes of what the action, the images and the release install.

    pip install uv; python scripts/locks.py [--upgrade]

Without ``--upgrade``, versions that still fit pyproject.toml stay. Each lock is for every
interpreter and platform that the project supports.
"""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
OLDEST: Final = "3.11"


def wanted(project: dict[str, Any]) -> dict[str, list[str]]:
    """Return the direct requirements of each lock, from the content of pyproject.toml."""
    backend = project["build-system"]["requires"]
    needed = [*project["project"]["dependencies"], *backend]
    extras = project["project"]["optional-dependencies"]
    return {
        "action": needed,
        "build": ["build", *backend],
        "cedarscript": extras["cedarscript"],
        "checker": [*needed, *extras["http-auth"], *extras["sign"], "uv"],
    }


def main(words: list[str]) -> int:
    """Write all locks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    for name, lines in wanted(project).items():
        command = ["uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes"]
        command += ["--python-version", OLDEST, "--no-annotate", *words, "-"]
        command += ["--custom-compile-command", "python scripts/locks.py"]
        command += ["--output-file", str(ROOT / "locks" / f"{name}.txt")]
        subprocess.run(command, input="\n".join(lines), text=True, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
