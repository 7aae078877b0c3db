"""Servers that serve files as resources, with one fault each; and good ones."""

import contextlib
import os
import re
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

from tests.fakes.promises import LISTED, Denies
from tests.fakes.server import STRING, Guard, Refused


class Workspace(Denies, tools=("read_file",), families=("resources",)):
    """Serves files as resources by their path below the root, decoded once and then checked."""

    prefix = "workspace:///"
    capabilities = MappingProxyType({"resources": {}})

    def other(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method == "resources/read":
            return self.resource(params["uri"])
        template = {"uriTemplate": f"{self.prefix}{{+path}}", "name": "files"}
        results: dict[str, Any] = {
            "resources/list": {"resources": []},
            "resources/templates/list": {"resourceTemplates": [template]},
        }
        return {"result": results[method]} if method in results else None

    def resource(self, uri: str) -> dict[str, Any]:
        if not uri.startswith(self.prefix):
            return {"error": {"code": -32002, "message": f"no such resource: {uri}"}}
        try:
            text = Path(self.opened_by(uri)).read_text(encoding="utf-8", errors="replace")
        except (Refused, OSError, ValueError) as error:
            return {"error": {"code": -32002, "message": f"{error}: {uri}"}}
        return {"result": {"contents": [{"uri": uri, "text": text}]}}

    def opened_by(self, uri: str) -> str:
        return self.place(unquote(uri.removeprefix(self.prefix)), writing=False)


def fetch(url: str) -> None:
    with contextlib.suppress(OSError):
        urlopen(url, timeout=5).close()  # noqa: S310  (that is the fault)


class FetchesPaths(Guard, trips={"resources-fetched"}):
    """Opens paths with a function that also opens URLs."""

    def read_file(self, path: str) -> str:
        if path.startswith("http://"):
            fetch(path)
        return super().read_file(path)


class FetchesUris(Workspace, trips={"resources-fetched"}):
    """Serves files as resources, and any other URI."""

    def resource(self, uri: str) -> dict[str, Any]:
        if uri.startswith("http://"):
            fetch(uri)
        return super().resource(uri)


class FollowsReferences(Guard, trips={"resources-fetched"}):
    """Fetches the references in its arguments before it checks them."""

    def run(self, tool: str, given: dict[str, Any]) -> str:
        reference = given.pop("$ref", given.pop("$schema", ""))
        if reference:
            fetch(reference)
        return super().run(tool, given)


class FetchesAsItSays(FetchesPaths, trips=set(), families=(*Guard.families, "resources")):
    """Reads files and URLs, and declares that."""

    def listed(self, tool: str) -> dict[str, Any]:
        return {**super().listed(tool), "description": "A path in the workspace, or an http: URL"}


class Files(Workspace, prefix="file://"):
    """Serves files by file: URIs, whose path is decoded once and then checked."""

    def opened_by(self, uri: str) -> str:
        parts = urlsplit(uri)
        if parts.netloc not in {"", "localhost"}:
            raise Refused("that is another host")
        return self.place(unquote(parts.path), writing=False)


class TrustsHosts(Files, trips={"resources-file-uri"}):
    """Does not check files on another host, and opens them on this one."""

    def opened_by(self, uri: str) -> str:
        parts = urlsplit(uri)
        if "." in parts.netloc.strip(".") or "@" in parts.netloc or ":" in parts.netloc:
            return unquote(parts.path)
        return super().opened_by(uri)


class DecodesTwice(Workspace, trips={"resources-template"}):
    """Checks the path decoded once and opens it decoded twice."""

    def opened_by(self, uri: str) -> str:
        once = unquote(uri.removeprefix(self.prefix))
        place = self.place(once, writing=False)
        twice = os.path.join(self.root, unquote(once))
        inside = os.path.realpath(twice).startswith(self.root + os.sep)
        return place if unquote(once) == once or inside else twice


class AsksTheListAboutText(Workspace, trips={"resources-denied"}):
    """Checks for denied names in the raw URI."""

    def opened_by(self, uri: str) -> str:
        place = super().strictly(unquote(uri.removeprefix(self.prefix)))
        if LISTED & {*uri.split("/")}:
            raise Refused("that is denied")
        return place


class MatchesWithoutLimit(Workspace, trips={"matchers-backtrack"}, families=("matchers",)):
    """Matches URIs with an expression that backtracks."""

    def resource(self, uri: str) -> dict[str, Any]:
        if not re.fullmatch(self.prefix + "[^/]+(?:,[^/]+)*", uri):
            return {"error": {"code": -32002, "message": f"no such resource: {uri}"}}
        return super().resource(uri)


class ChecksPatternsWithoutLimit(Guard, trips={"matchers-backtrack"}, families=("matchers",)):
    """Checks an argument with an expression that backtracks."""

    callable: tuple[str, ...] = ("read_file",)
    pattern = "^(\\w+\\.?)+$"

    def schema(self, tool: str) -> dict[str, Any]:
        found = super().schema(tool)
        found["properties"] = {**found["properties"], "tag": {**STRING, "pattern": self.pattern}}
        return found

    def read_file(self, path: str, tag: str = "") -> str:
        if tag and not re.search(self.pattern, tag):
            raise Refused("that is no tag")
        return super().read_file(path)


class ChecksPatternsInOnePass(ChecksPatternsWithoutLimit, trips=set(), pattern="^[\\w.]+$"):
    """Checks an argument with an expression that cannot backtrack."""


class MatchesInOnePass(Workspace, families=("matchers",)):
    """Matches URIs by their prefix."""
