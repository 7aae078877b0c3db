"""Compare the table of advisories with a copy of the data of OSV.

``python scripts/advisories.py COPY`` reads a folder or a zip file of OSV, such as ``all.zip`` of an
ecosystem (https://google.github.io/osv.dev/data/#data-dumps), for the packages of the table. It
prints a line for each advisory that the table lacks and for each range that differs; the exit
status is 1 then. ``--add`` prints rows for those that it lacks, to be completed by hand: only a
person knows which rule shows a fault.
"""

import argparse
import datetime as dt
import json
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.advisories.table import Advisory, Affected, advisories
from mcp_touchstone.catalog.sdk import version
from mcp_touchstone.gate import toml_text

REGISTRIES: Final = {"npm": "npm", "PyPI": "pypi", "Go": "go"}
"""Ecosystem of OSV -> registry of the table."""

Json = dict[str, Any]


class CopyError(Exception):
    """A copy of OSV cannot be read; the message names the file and the reason."""


def entries(copy: Path) -> Iterator[Json]:
    """Yield the entries of a folder or a zip file that are not withdrawn.

    Raises:
        CopyError: it is neither, or a file in it is no entry.
    """
    for name, data in _files(copy):
        try:
            entry = json.loads(data)
            known = isinstance(entry["id"], str) and isinstance(entry.get("affected", []), list)
        except (ValueError, RecursionError, LookupError, TypeError):
            known = False
        if not known:
            raise CopyError(f"{name}: it is no entry of OSV: a JSON object with an id")
        if "withdrawn" not in entry:
            yield entry


def _files(copy: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each JSON file of a folder or a zip file."""
    if copy.is_dir():
        yield from ((str(path), path.read_bytes()) for path in sorted(copy.rglob("*.json")))
        return
    try:
        archive = zipfile.ZipFile(copy)
        for name in sorted(name for name in archive.namelist() if name.endswith(".json")):
            yield f"{copy}: {name}", archive.read(name)
    except (OSError, zipfile.BadZipFile) as error:
        raise CopyError(f"{copy}: it is neither a folder nor a zip file of OSV: {error}") from None


def ranges(entry: Json) -> list[Affected]:
    """Return the ranges of an entry, for packages of known registries."""
    found = []
    for affected in entry.get("affected", ()):
        registry = REGISTRIES.get(affected["package"]["ecosystem"])
        for events in (one["events"] for one in affected.get("ranges", ()) if registry):
            since = ""
            for event in events:
                since = event.get("introduced", since)
                if "fixed" in event:
                    found.append(_range(registry, affected, since, event["fixed"]))
                    since = "0"
            if "fixed" not in events[-1]:
                found.append(_range(registry, affected, since, ""))
    return found


def _range(registry: str | None, affected: Json, since: str, fixed: str) -> Affected:
    return Affected(
        registry=registry or "",
        package=affected["package"]["name"],
        since="" if since == "0" else since,
        fixed=fixed,
    )


def differences(copy: Path, table: Sequence[Advisory]) -> Iterator[tuple[str, Json | None]]:
    """Yield a sentence for each difference, and the entry of an advisory that the table lacks."""
    known = {name: one for one in table for name in one.names}
    tracked = {(one.registry, one.package) for row in table for one in row.affected}
    for entry in entries(copy):
        theirs = [one for one in ranges(entry) if (one.registry, one.package) in tracked]
        if not theirs:
            continue
        row = next((known[n] for n in (entry["id"], *entry.get("aliases", ())) if n in known), None)
        if row is None:
            packages = ", ".join(dict.fromkeys(one.package for one in theirs))
            yield f"{entry['id']} is missing: {packages}: {entry.get('summary', '')}", entry
            continue
        for one in theirs:
            if all(_bounds(one) != _bounds(ours) for ours in row.affected):
                yield f"{row.id}: OSV has {one}, which the table has not", None


def _bounds(one: Affected) -> tuple[object, ...]:
    return one.registry, one.package, version(one.since), version(one.fixed)


def row(entry: Json, today: dt.date) -> str:
    """Return the row of an advisory that the table lacks; a person completes it."""
    affected = [
        {"registry": one.registry, "package": one.package}
        | ({"from": one.since} if one.since else {})
        | ({"fixed": one.fixed} if one.fixed else {})
        for one in ranges(entry)
    ]
    facts = {
        "id": entry["id"],
        "aliases": entry.get("aliases", []),
        "title": entry.get("summary", ""),
        "affected": affected,
        "untested": "nobody has looked yet which rule shows it",
        "source": f"https://osv.dev/vulnerability/{entry['id']}",
    }
    dates = [f"date = {entry['published'][:10]}", f"read = {today.isoformat()}"]
    lines = [f"{name} = {toml_text.value(fact)}" for name, fact in facts.items()]
    return "\n".join(["[[advisory]]", *lines, *dates, ""])


def main(words: Sequence[str]) -> int:
    """Print the differences; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("copy", type=Path, help="folder or zip file of OSV")
    parser.add_argument("--add", action="store_true", help="print rows for missing advisories")
    options = parser.parse_args(words)
    try:
        found = list(differences(options.copy, advisories()))
    except CopyError as error:
        parser.error(str(error))
    today = dt.datetime.now(dt.UTC).date()
    for sentence, entry in found:
        sys.stdout.write(f"{row(entry, today) if options.add and entry else sentence}\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
