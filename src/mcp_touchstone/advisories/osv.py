"""The JSON of osv-scanner: the packages that it found, and their advisories.

The format is that of ``osv-scanner --format json``
(https://google.github.io/osv-scanner/output/#json).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.advisories.known import Scanned
from mcp_touchstone.advisories.table import by_name
from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.catalog.sdk import NPM, PYPI, Package
from mcp_touchstone.runtime.input_file import InputFile

_REGISTRIES: Final = {"npm": NPM, "PyPI": PYPI, "Go": "go"}
"""Ecosystem of OSV -> the name of the registry here."""

CURE: Final = "write it with `osv-scanner --format json`"


def read(path: Path) -> Scanned:
    """Read a file of osv-scanner.

    Raises:
        InputError: it is no such file.
    """
    document = InputFile(path, CURE).json()
    if not isinstance(document, dict) or not isinstance(document.get("results"), list):
        raise InputError(f"{path}: it has no results; {CURE}")
    entries = [one for result in document["results"] for one in _list(result, "packages")]
    if document["results"] and not any(_name(entry) for entry in entries):
        raise InputError(f"{path}: its results name no package; {CURE}")
    ours = by_name().keys()
    packages, others = [], set()
    for found, named in _found(entries):
        packages.append(found)
        others |= {min(ids) for ids in named if not ids & ours}
    return Scanned(str(path), tuple(dict.fromkeys(packages)), len(others))


def _found(entries: list[Any]) -> Iterator[tuple[Package, list[set[str]]]]:
    """Yield each package of a known registry, with the ids of each of its advisories."""
    for entry in entries:
        if name := _name(entry):
            version = entry["package"].get("version")
            registry = _REGISTRIES.get(str(entry["package"].get("ecosystem")))
            if registry and isinstance(version, str):
                named = [_ids(one) for one in _list(entry, "vulnerabilities")]
                yield Package(name, version, registry), [ids for ids in named if ids]


def _name(entry: Any) -> str:
    """Return the name of the package of an entry; empty for none."""
    about = entry.get("package") if isinstance(entry, dict) else None
    name = about.get("name") if isinstance(about, dict) else None
    return name if isinstance(name, str) else ""


def _ids(vulnerability: Any) -> set[str]:
    if not isinstance(vulnerability, dict):
        return set()
    return {
        one
        for one in (vulnerability.get("id"), *_list(vulnerability, "aliases"))
        if isinstance(one, str)
    }


def _list(value: Any, name: str) -> list[Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []
