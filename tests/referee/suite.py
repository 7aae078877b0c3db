"""The official suite: fetched from npm where that is allowed, run on a URL, its verdicts read."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SUITE: Final = "@modelcontextprotocol/conformance"
VERSION: Final = "0.2.0-alpha.12"
"""The suite is pinned: another one is another referee, and is looked at before it is let in."""

NODE: Final = 22
"""Major version of Node the suite needs; npm has it as a package where the machine's is older."""

SWITCH: Final = "MCP_TOUCHSTONE_REFEREE"
"""Environment variable: unset, nothing is fetched; ``1`` for a throw-away folder, else a folder
that is kept."""

FETCHING: Final = 600.0
RUNNING: Final = 300.0
"""Seconds for npm, and for one run."""


class NotInstallableError(Exception):
    """The suite cannot be had here; the message says why."""


@dataclass(frozen=True)
class Suite:
    """The suite as it lies in a folder.

    Attributes:
        node: the program that runs it.
        folder: of the package.
    """

    node: str
    folder: Path

    def scored(self, revision: str) -> set[str]:
        """Give the scenarios a server of a revision has to pass."""
        text = (self.folder / "requirements" / f"{revision}.yaml").read_text("utf-8")
        (block,) = re.findall(r"^server:\n((?:  - .*\n)+)", text, re.MULTILINE)
        return set(re.findall(r"- (\S+)", block))

    def judge(self, url: str, revision: str, folder: Path) -> "Verdict":
        """Run what a revision requires, and what is reported beside it."""
        return self._run(url, folder, "--requirements", revision)

    def run(self, url: str, scenario: str, folder: Path) -> "Verdict":
        """Run one scenario, of an extension too, in 2026-07-28."""
        words = ("--scenario", scenario, "--spec-version", "2026-07-28", "--force")
        return self._run(url, folder, *words)

    def _run(self, url: str, folder: Path, *words: str) -> "Verdict":
        program = (self.node, str(self.folder / "dist" / "index.js"), "server")
        command = [*program, "--url", url, *words, "--output-dir", str(folder)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=RUNNING, check=False, cwd=folder
        )
        checks: dict[str, list[Any]] = {}
        for path in folder.glob("server-*/checks.json"):
            name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", path.parent.name)
            checks[name.removeprefix("server-")] = json.loads(path.read_text("utf-8"))
        return Verdict(done.returncode, done.stdout + done.stderr, checks)


@dataclass(frozen=True)
class Verdict:
    """What the suite said.

    Attributes:
        status: its exit status.
        output: all it printed.
        checks: its checks by scenario.
    """

    status: int
    output: str
    checks: dict[str, list[Any]]

    def with_status(self, *wanted: str) -> list[str]:
        """Give the checks that came to something, as ``scenario: check: why``."""
        return [
            f"{scenario}: {check['id']}: {check.get('errorMessage', '')}"
            for scenario, checks in sorted(self.checks.items())
            for check in checks
            if check["status"] in wanted
        ]

    def count(self, scenario: str) -> int:
        """Count the checks a scenario passed."""
        return sum(check["status"] == "SUCCESS" for check in self.checks.get(scenario, ()))


def install(folder: Path) -> Suite:
    """Give the suite in a folder, fetched if it is not there.

    Raises:
        NotInstallableError: there is no npm, or it could not fetch it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    modules = folder / "node_modules"
    own = _own_node()
    wanted = [f"{SUITE}@{VERSION}"] if own else [f"{SUITE}@{VERSION}", f"node@{NODE}"]
    node = own or str(modules / ".bin" / "node")
    package = modules / SUITE
    if _version_in(package) != VERSION or shutil.which(node) is None:
        _npm(folder, *wanted)
    if _version_in(package) != VERSION or _major(node) < NODE:
        raise NotInstallableError(f"npm left no {SUITE} {VERSION} with Node {NODE} in {folder}")
    return Suite(node, package)


def _npm(folder: Path, *packages: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstallableError("there is no npm")
    (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    command = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", *packages]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=FETCHING, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotInstallableError(f"npm did not end within {FETCHING:g} s") from None
    if done.returncode:
        last = (done.stderr.strip() or "npm failed").splitlines()[0]
        raise NotInstallableError(f"npm could not fetch it: {last}")


def _version_in(package: Path) -> str:
    try:
        return str(json.loads((package / "package.json").read_text("utf-8"))["version"])
    except (OSError, ValueError, KeyError):
        return ""


def _own_node() -> str | None:
    found = shutil.which("node")
    return found if found and _major(found) >= NODE else None


def _major(node: str) -> int:
    try:
        done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return 0
    found = re.match(r"v(\d+)", done.stdout)
    return int(found[1]) if found else 0


def where(temporary: Path) -> Path | None:
    """Give the folder to install in; None where nothing may be fetched."""
    said = os.environ.get(SWITCH, "")
    if said in {"", "0"}:
        return None
    return temporary if said == "1" else Path(said)
