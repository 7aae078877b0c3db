"""Check that a build can be published: ``python scripts/release.py TAG DIST``.

The release workflow runs this before it tests and publishes the build. Exit status 1 if something
is missing, with one line for each problem.
"""

import datetime as dt
import email
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
    for path in (checkout / "README.md", *sorted((checkout / "docs").rglob("*.md"))):
        if PLACEHOLDER.search(path.read_text("utf-8")):
            yield f"{path.relative_to(checkout).as_posix()} names OWNER, not the real account"
    yield from outdated(checkout)
    yield from old_advisories(checkout)


def outdated(checkout: Path, today: dt.date | None = None) -> Iterator[str]:
    """Find the rules of profiles whose source was last read more than a year ago."""
    oldest = (today or dt.datetime.now(dt.UTC).date()) - YEAR
    for path in sorted((checkout / PROFILES).glob("*.toml")):
        for rule in tomllib.loads(path.read_text("utf-8"))["rule"]:
            if rule["read"] < oldest:
                yield f"{path.stem}/{rule['id']}: read {rule['source']} again, and set its date"


def old_advisories(checkout: Path, today: dt.date | None = None) -> Iterator[str]:
    """Find out whether the newest advisory of the table was read more than a month ago."""
    tables = [
        tomllib.loads(path.read_text("utf-8"))
        for path in sorted((checkout / ADVISORIES).glob("*.toml"))
    ]
    newest = max((row["read"] for table in tables for row in table["advisory"]), default=None)
    if newest and newest < (today or dt.datetime.now(dt.UTC).date()) - MONTH:
        yield f"{ADVISORIES}: read on {newest}; run scripts/advisories.py on a new copy of OSV"


def main(tag: str, dist: str) -> int:
    """Print the problems; return the exit status."""
    found = list(problems(tag, Path(dist)))
    for problem in found:
        sys.stderr.write(f"{problem}\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
