"""The entries of ``fixtures.toml``: files, links and pipes, and which of them one tree has."""

import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.bindings.file_naming import TEXT
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.security.payload import CANARY, named
from mcp_touchstone.target.deny_list import Denied

CLIMBS: Final = 40
"""Folders that ``{climbs}`` goes up."""


@lru_cache
def read(fixtures: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the entries of a fixture file by id; each file is read once."""
    table = tomllib.loads(fixtures.read_text(encoding="utf-8"))
    return {row["id"]: row.get("entry", []) for row in table["fixture"]}


def names(top: SafePath, beside: SafePath, sibling: SafePath) -> dict[str, str]:
    """Return the values of the names in braces, for a root, a folder beside it and one like it."""
    root, outside = str(top), str(beside)
    return {
        "root": root,
        "root_name": top.name,
        "root_noslash": root[1:],
        "root_real": root,
        "root_upper": str(top.with_name(top.name.upper())),
        "root_nfd": unicodedata.normalize("NFD", root),
        "root_bs": root.replace("/", "\\"),
        "base": str(top.parent),
        "outside": outside,
        "outside_name": beside.name,
        "outside_noslash": outside[1:],
        "outside_bs": outside.replace("/", "\\"),
        "sibling": str(sibling),
        "sibling_name": sibling.name,
        "canary": CANARY,
        "climbs": "/.." * CLIMBS,
        "canary_nfd": CANARY,
    }


@dataclass(frozen=True, slots=True)
class Entries:
    """How the entries of a file become those of one tree.

    Attributes:
        names: values of the names in braces.
        denied: the deny list that entries refer to.
        suffixes: suffixes of files; each text file gets a twin with each.
        folders: folders of the root that hold the plain files and links of the root too.
    """

    names: Mapping[str, str]
    denied: Denied
    suffixes: tuple[str, ...]
    folders: tuple[str, ...]

    def filled(self, template: str) -> str:
        """Return a template with the values of its names."""
        return named(template, self.names)

    def expanded(self, entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield an entry for each example of the deny list that it refers to, with its twins."""
        if entry.get("names") == "default" and not self.denied.is_default:
            return
        both = f"{entry['path']}\0{entry.get('target', '')}"
        for text in self.denied.texts(both):
            path, _, target = text.partition("\0")
            yield from self.twins({**entry, "path": path, "target": target})

    def twins(self, entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield an entry, the same with other suffixes, and all of these in the other folders."""
        kind, target = entry["type"], entry.get("target", "")
        if kind not in {"canary", "file", "symlink"} or "bytes" in entry:
            yield entry
            return
        path, is_text = self.filled(entry["path"]), self.filled(target).endswith(TEXT)
        leads = kind == "symlink" and (is_text or entry["path"] == "lnk_dangling")
        found = [entry]
        for suffix in self.suffixes:
            if path.endswith(TEXT):
                twin = {**entry, "path": path.removesuffix(TEXT) + suffix}
            elif leads:
                twin = {**entry, "path": path + suffix}
            else:
                continue
            if leads:
                twin["target"] = self.filled(target).removesuffix(TEXT) + suffix
            found.append(twin)
        yield from found
        for folder in self.folders if "at" not in entry and kind != "canary" else ():
            for one in found:
                below = {**one, "path": f"{folder}/{one['path']}"}
                if kind == "symlink" and not self.filled(one["target"]).startswith("/"):
                    below["target"] = "../" * len(folder.split("/")) + one["target"]
                yield below
