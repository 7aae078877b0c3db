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
    ours = by_name().keys()
    packages, others = [], set()
    for found, named in _found(document["results"]):
        packages.append(found)
        others |= {min(ids) for ids in named if not ids & ours}
    return Scanned(str(path), tuple(dict.fromkeys(packages)), len(others))


def _found(results: list[Any]) -> Iterator[tuple[Package, list[set[str]]]]:
    """Yield each package of a known registry, with the ids of each of its advisories."""
    for result in results:
        for entry in _list(result, "packages"):
            about = entry.get("package") if isinstance(entry, dict) else None
            about = about if isinstance(about, dict) else {}
            name, version = about.get("name"), about.get("version")
            registry = _REGISTRIES.get(str(about.get("ecosystem")))
            if registry and isinstance(name, str) and isinstance(version, str):
                named = [_ids(one) for one in _list(entry, "vulnerabilities")]
                yield Package(name, version, registry), [ids for ids in named if ids]


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
