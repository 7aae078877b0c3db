"""Install the packages of a list for `mcp-touchstone fleet`, one after another.

``python scripts/census_install.py LIST.jsonl FOLDER > installed.jsonl``;
docs/how-it-judges/census.md uses it.
A package manager has one cache for all packages here, so a registry is asked once for what
several packages need. No script of a package runs: npm gets ``--ignore-scripts``, and uv installs
wheels only. An entry may name further requirements in the key ``with``. `fleet` then finds each
package by the key ``prefix``.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

SECONDS: Final = 300
"""Limit of time for the installation of one package."""

NPM: Final = ("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
PYPI: Final = ("uv", "pip", "install", "--quiet", "--compile-bytecode", "--only-binary", ":all:")


def install(registry: str, packages: list[str], prefix: Path) -> str:
    """Install packages; return the last line of the package manager if it fails."""
    steps: list[tuple[str, ...]]
    if registry == "npm":
        steps = [(*NPM, "--prefix", str(prefix), *packages)]
    else:
        python = os.path.realpath(sys.executable)
        steps = [
            ("uv", "venv", "--quiet", "--python", python, str(prefix)),
            (*PYPI, "--python", str(prefix / "bin" / "python"), *packages),
        ]
    for step in steps:
        try:
            done = subprocess.run(
                step, check=False, capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"not installed within {SECONDS} s"
        if done.returncode:
            return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return ""


def main(list_file: str, folder: str) -> None:
    """Print the entries of a list with the folders of their packages."""
    for line in Path(list_file).read_text("utf-8").splitlines():
        entry = json.loads(line)
        more = entry.pop("with", [])
        registry = "npm" if "npm" in entry else "pypi"
        name = re.sub(r"(?<=.)@.*|==.*", "", entry[registry])
        prefix = Path(folder).resolve() / registry / name.replace("/", "+")
        if not prefix.is_dir():
            prefix.mkdir(parents=True)
            trouble = install(registry, [entry[registry], *more], prefix)
            if trouble:
                shutil.rmtree(prefix)  # so that the next run tries again
            print(f"{registry}:{name}  {trouble or 'installed'}", file=sys.stderr, flush=True)
        print(json.dumps({**entry, "prefix": str(prefix)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
