"""A step of the GitHub action: put mcp-touchstone into an environment of its own.

Its dependencies, and what builds it, are those of locks/action.txt, compared by hash.

Apart from the one on PATH, so that the server's dependencies and ours never meet. Standard library
only; has to be readable for the Python that is too old to run the rest.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

NEEDED = (3, 11)


def main() -> int:
    """Install; give the exit status, 2 where it cannot be done."""
    if sys.version_info < NEEDED:
        found = ".".join(str(part) for part in sys.version_info[:3])
        print(
            f"::error title=mcp-touchstone::it runs on Python 3.11 or newer, and {sys.executable} "
            f"is {found}: name another one with the input `python`, or use actions/setup-python"
        )
        return 2
    home = Path(os.environ["RUNNER_TEMP"]) / "mcp-touchstone-environment"
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        venv.create(home, with_pip=True)
    source = Path(__file__).resolve().parent.parent
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    locked = ["--require-hashes", "--only-binary", ":all:", "-r", str(source / "locks/action.txt")]
    ours = ["--no-deps", "--no-build-isolation", str(source)]
    for words in (locked, ours):
        if subprocess.run([*install, *words], check=False).returncode:
            print("::error title=mcp-touchstone::it could not be installed; pip says why above")
            return 2
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as outputs:
        outputs.write(f"python={python}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
