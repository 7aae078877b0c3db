"""Check that a build can be published: ``python scripts/release.py TAG DIST``.

The release workflow runs this before it tests and publishes the build. Exit status 1 if something
is missing, with one line for each problem. ``python scripts/release.py --prepare OWNER`` writes the
account of the repository on GitHub into each file that names it.
"""

import datetime as dt
import email
import json
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parent.parent
PROFILES: Final = "src/mcp_touchstone/profiles"
ADVISORIES: Final = "src/mcp_touchstone/advisories"
MONTH: Final = dt.timedelta(days=31)
YEAR: Final = dt.timedelta(days=365)
PLACEHOLDER: Final = re.compile(r"\bOWNER/")
IMAGES: Final = "ghcr.io/OWNER/"
"""Names of images have no capitals."""

ACCOUNT: Final = re.compile(r"[A-Za-z0-9](-?[A-Za-z0-9]){0,38}")
NPM: Final = "npm/mcp-touchstone/package.json"


def problems(tag: str, dist: Path, checkout: Path = CHECKOUT) -> Iterator[str]:
    """Find the reasons not to publish.

    Args:
        tag: the tag of the release, such as ``v0.1.0``.
        dist: the folder with the built files.
        checkout: the folder of the sources.

    Yields:
        One sentence for each problem.
    """
    version = tag.removeprefix("v")
    wheel = dist / f"mcp_touchstone-{version}-py3-none-any.whl"
    expected = {wheel.name, f"mcp_touchstone-{version}.tar.gz"}
    actual = {path.name for path in dist.iterdir()}
    if actual != expected:
        yield (
            f"the tag {tag} needs {' and '.join(sorted(expected))}; "
            f"{dist.name} has {', '.join(sorted(actual)) or 'nothing'}"
        )
    if wheel.name in actual:
        with zipfile.ZipFile(wheel) as archive:
            text = archive.read(f"mcp_touchstone-{version}.dist-info/METADATA").decode()
        if "Project-URL" not in email.message_from_string(text):
            yield "pyproject.toml has no [project.urls]"
    if f"\n## [{version}]" not in (checkout / "CHANGELOG.md").read_text("utf-8"):
        yield f"CHANGELOG.md has no section for {version}"
    if (checkout / NPM).is_file():
        of_npm = json.loads((checkout / NPM).read_text("utf-8"))["version"]
        if of_npm != version:
            yield f"{NPM} has the version {of_npm}"
    for path in nameless(checkout):
        yield f"{path.relative_to(checkout).as_posix()} names OWNER; run release.py --prepare"
    yield from outdated(checkout)
    yield from old_advisories(checkout)


def nameless(checkout: Path) -> list[Path]:
    """Return the files that have a placeholder for the account of the repository."""
    files = [checkout / name for name in ("README.md", "pyproject.toml", NPM)]
    files += sorted((checkout / "docs").rglob("*.md"))
    return [one for one in files if one.is_file() and PLACEHOLDER.search(one.read_text("utf-8"))]


def prepare(owner: str, checkout: Path = CHECKOUT) -> list[Path]:
    """Write the account of the repository in place of the placeholder; return the files.

    Raises:
        ValueError: GitHub has no account of such a name.
    """
    if not ACCOUNT.fullmatch(owner):
        raise ValueError(f"{owner!r} is no name of an account on GitHub")
    found = nameless(checkout)
    for path in found:
        text = path.read_text("utf-8").replace(IMAGES, IMAGES.replace("OWNER", owner.lower()))
        path.write_text(PLACEHOLDER.sub(f"{owner}/", text), "utf-8")
    return found


def outdated(checkout: Path, today: dt.date | None = None) -> Iterator[str]:
    """Find the rules and boxes of profiles whose source was last read more than a year ago."""
    oldest = (today or dt.datetime.now(dt.UTC).date()) - YEAR
    for path in sorted((checkout / PROFILES).glob("*.toml")):
        table = tomllib.loads(path.read_text("utf-8"))
        for row in [*table.get("rule", ()), *table.get("box", ())]:
            if row["read"] < oldest:
                name = row.get("id", row["says"])
                yield f"{path.stem}/{name}: read {row['source']} again, and set its date"


def old_advisories(checkout: Path, today: dt.date | None = None) -> Iterator[str]:
    """Find out whether the newest advisory of the table was read more than a month ago."""
    tables = [
        tomllib.loads(path.read_text("utf-8"))
        for path in sorted((checkout / ADVISORIES).glob("*.toml"))
    ]
    newest = max((row["read"] for table in tables for row in table["advisory"]), default=None)
    if newest and newest < (today or dt.datetime.now(dt.UTC).date()) - MONTH:
        yield f"{ADVISORIES}: read on {newest}; run scripts/advisories.py on a new copy of OSV"


def main(*words: str) -> int:
    """Do what the command line says; return the exit status."""
    match words:
        case ("--prepare", owner):
            try:
                found = prepare(owner)
            except ValueError as error:
                sys.stderr.write(f"{error}\n")
                return 2
            sys.stdout.writelines(f"{one.relative_to(CHECKOUT).as_posix()}\n" for one in found)
            return 0
        case (tag, dist):
            lines = list(problems(tag, Path(dist)))
            sys.stderr.writelines(f"{line}\n" for line in lines)
            return bool(lines)
    sys.stderr.write("usage: release.py TAG DIST | --prepare OWNER\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
