"""Servers that search, match patterns and complete paths, with one fault each; and good ones."""

import fnmatch
import glob
import os
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.fakes.promises import LISTED, Denies
from tests.fakes.server import STRING, STRINGS, Guard, fakes, has, takes


class Walks(Guard, tools=("read_file", "find_files", "search_text"), families=("walks", "links")):
    """Finds names by a pattern and lines by a text, and leaves out files outside."""

    follows = False

    schemas = MappingProxyType(
        {"find_files": takes(pattern=STRING), "search_text": takes(query=STRING)}
    )

    def find_files(self, pattern: str) -> str:
        if "**" in pattern:
            below = os.walk(self.root)
            names = [os.path.join(folder, file) for folder, _, files in below for file in files]
            found = [os.path.relpath(name, self.root) for name in names]
            found = fnmatch.filter(found, pattern.replace("**/", "*"))
        else:
            found = glob.glob(pattern, root_dir=self.root, include_hidden=True)
        return "\n".join(name for name in found if self.is_shown(name))

    def is_shown(self, name: str) -> bool:
        real = os.path.realpath(os.path.join(self.root, name))
        return real.startswith(self.root + os.sep)

    def search_text(self, query: str) -> str:
        lines = []
        for folder, folders, files in os.walk(self.root, followlinks=self.follows):
            folders[:] = [name for name in folders if self.goes_into(folder, name)]
            for file in files:
                path = Path(folder, file)
                if path.is_file() and self.is_searched(path):
                    text = path.read_text(encoding="utf-8", errors="replace")
                    lines += [line for line in text.splitlines() if query in line]
        return "\n".join(lines)

    def goes_into(self, folder: str, name: str) -> bool:
        return True

    def is_searched(self, path: Path) -> bool:
        return self.is_shown(str(path))


class MatchesAnywhere(Walks, trips={"walks-pattern"}):
    """Returns every match of a pattern."""

    def is_shown(self, name: str) -> bool:
        return True

    def is_searched(self, path: Path) -> bool:
        return super().is_shown(str(path))


class MatchesThroughLinks(Walks, trips={"walks-pattern"}):
    """Normalises the matches of a pattern, and does not resolve links."""

    def is_shown(self, name: str) -> bool:
        path = os.path.normpath(os.path.join(self.root, name))
        return path.startswith(self.root + os.sep)

    def is_searched(self, path: Path) -> bool:
        return super().is_shown(os.path.realpath(path))


class SearchesThroughLinks(Walks, trips={"links-walk"}, follows=True):
    """Follows links in a search, except those that lead up again."""

    def goes_into(self, folder: str, name: str) -> bool:
        here = os.path.join(folder, name)
        return not os.path.islink(here) or not folder.startswith(os.path.realpath(here))

    def is_searched(self, path: Path) -> bool:
        return True


class WalksAroundDenied(Walks, Denies, families=("walks", "deny")):
    """Searches no denied folder and no denied file, whatever a call excludes."""

    def is_shown(self, name: str) -> bool:
        real = os.path.realpath(os.path.join(self.root, name))
        return super().is_shown(name) and not LISTED & {*self.parts(real)}


class LetsItsListBeCleared(WalksAroundDenied, trips={"deny-walk"}):
    """Excludes denied files, unless a call gives its own exclusions."""

    cleared = False

    schemas = MappingProxyType(
        {
            **Walks.schemas,
            "search_text": takes(query=STRING, excludePatterns=STRINGS) | {"required": ["query"]},
        }
    )

    def search_text(self, query: str, excludePatterns: Any = None) -> str:  # noqa: N803
        self.cleared = excludePatterns == []
        return super().search_text(query)

    def is_searched(self, path: Path) -> bool:
        inside = os.path.realpath(path).startswith(self.root + os.sep)
        return inside if self.cleared else super().is_searched(path)


class Completes(Guard, families=("walks",), tools=("read_file",)):
    """Completes paths from the content of a folder inside the root."""

    capabilities = MappingProxyType({"completions": {}, "prompts": {}})

    def other(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method == "prompts/list":
            prompt = {"name": "show", "arguments": [{"name": "path", "required": True}]}
            return {"result": {"prompts": [prompt]}}
        if method == "completion/complete":
            values = self.offered(params["argument"]["value"])
            return {"result": {"completion": {"values": values[:100]}}}
        return None

    def offered(self, typed: str) -> list[str]:
        folder, _, start = typed.rpartition("/")
        try:
            names = sorted(os.listdir(self.looked_into(f"{folder}/" if folder else ".")))
        except (OSError, ValueError, RuntimeError):
            return []
        return [f"{folder}/{name}" for name in names if name.startswith(start)]

    def looked_into(self, folder: str) -> str:
        real = os.path.realpath(os.path.join(self.root, folder))
        if not (real + os.sep).startswith(self.root + os.sep):
            raise ValueError(folder)
        return real


class CompletesNothingDenied(Completes, Denies, families=("walks", "deny")):
    """Completes paths from the content of a folder that is not denied."""

    def looked_into(self, folder: str) -> str:
        real = super().looked_into(folder)
        if LISTED & {*self.parts(real)}:
            raise ValueError(folder)
        return real


fakes(__name__)(
    SearchesDenied=has(
        WalksAroundDenied,
        "Applies the deny list to names, and searches all files.",
        "deny-walk",
        is_searched=lambda self, path: os.path.realpath(path).startswith(self.root + os.sep),
    ),
    CompletesAnywhere=has(
        Completes,
        "Completes a path from any folder.",
        "walks-completion",
        looked_into=lambda self, folder: os.path.join(self.root, folder),
    ),
)
