"""Find the naming of files by a server: suffixes and folders that it adds to names in calls."""

import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from mcp_touchstone.bindings.argument_roles import FOLDERS, ArgumentRole, flat
from mcp_touchstone.bindings.binding import Operation
from mcp_touchstone.bindings.call_variants import CallVariant
from mcp_touchstone.bindings.canary import strings
from mcp_touchstone.bindings.declared import Declaration
from mcp_touchstone.bindings.file_naming import TEXT, FileNaming
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.samples.from_schema import required, words
from mcp_touchstone.security.bind_calls import OWN, OWN_FOLDER, ToolCalls, read

DESCRIBED: Final = 16_000
"""Maximum number of characters read from a definition; a hostile one may have megabytes."""

MOST_SUFFIXES: Final = 3
"""Maximum number of suffixes tried with a tool; a long description may name many."""

MOST_LISTED: Final = 4
"""Maximum number of names of vaults or similar places that are tried."""

LISTING: Final = frozenset({"list", "get", "show"})
"""Words in the name of a tool that may list vaults or similar places."""


class NameSearch:
    """Finds the naming of files by the tools of one server.

    Attributes:
        about: the instructions of the server; they may name suffixes.
        landed: namings of files that tools made, in the order of the calls.
    """

    def __init__(self, calls: ToolCalls) -> None:
        self.about = ""
        self.landed: list[FileNaming] = []
        self._calls = calls

    def declared(self, declared: Declaration, way: CallVariant) -> Iterator[tuple[str, FileNaming]]:
        """Yield the namings that a declaration allows, each with the folder of our files."""
        splits = ArgumentRole.NAME in way.roles
        naming = FileNaming(
            declared.suffix, folder=OWN_FOLDER if splits else "", form=declared.form
        )
        yield from _in_folders(naming, splits=splits)
        if declared.operation is Operation.CREATE:
            for text in dict.fromkeys([declared.suffix, ""]):
                landed = self._land(way, text)
                if landed is not None:
                    yield landed

    def of(self, operation: Operation, plan: CallVariant) -> Iterator[tuple[str, FileNaming]]:
        """Yield namings, the likeliest first, each with the folder of our files."""
        splits = ArgumentRole.NAME in plan.roles
        folder = OWN_FOLDER if splits else ""
        if operation is Operation.CREATE:
            for text in ("", *self.suggested(plan.tool), TEXT):
                landed = self._land(plan, text)
                if landed is not None:
                    self.landed.append(landed[1])
                    yield landed
                    return
            return
        if operation is Operation.LIST:
            yield OWN_FOLDER, FileNaming(form=plan.form)
            for place in dict.fromkeys(n.folder for n in self.landed if n.adds_folder):
                yield place, FileNaming(folder=place, adds_folder=True, form=plan.form)
            return
        for known in dict.fromkeys(self.landed):
            if not splits:
                yield known.folder, replace(known, form=plan.form)
            elif not known.adds_folder:
                yield folder, replace(known, folder=folder, form=plan.form)
            elif known.folder:
                yield f"{known.folder}/{folder}", replace(known, form=plan.form)
        for suffix in ("", *self.suggested(plan.tool)):
            naming = FileNaming(suffix, folder=folder, form=plan.form)
            yield from _in_folders(naming, splits=splits)

    def suggested(self, tool: Mapping[str, Any]) -> list[str]:
        """Return the suffixes that the definition and the refusals of a tool suggest."""
        schema = tool.get("inputSchema")
        described = f"{tool['name']} {tool.get('description', '')} {json.dumps(schema)}"
        texts = (self._calls.said.get(tool["name"], ""), described, self.about)
        found = [
            s for text in texts for s in self._calls.tree.documents.suggested(text[:DESCRIBED])
        ]
        found += [naming.suffix for naming in self.landed if naming.suffix]
        return list(dict.fromkeys(found))[:MOST_SUFFIXES]

    def _land(self, plan: CallVariant, suffix: str) -> tuple[str, FileNaming] | None:
        """Create a file by a bare name, and return where the server put it.

        Returns:
            The folder of the file, relative to the root, and its naming; None if there is no file.
        """
        splits = ArgumentRole.NAME in plan.roles
        stem, content = self._calls.fresh("").name, f"made {secrets.token_hex(8)}\n"
        folder = OWN_FOLDER if splits else ""
        sent = "/".join(part for part in (folder, stem + suffix) if part)
        with self._calls.naming_as(FileNaming(form=plan.form), folder):
            self._calls.send(plan, sent, content=content)
        made = self._made(stem, content if plan.roles & {ArgumentRole.CONTENT} else "")
        if made is None:
            return None
        before, _, after = made.name.partition(stem)
        end = after if not before and after else made.suffix
        adds = end != suffix
        at = made.parent.relative_to(self._calls.tree.root).as_posix()
        at = "" if at == "." else at
        own = at == folder
        above = at.removesuffix(f"/{folder}") if splits else at
        if not own and OWN.match(at):
            # an earlier call selected this folder; attacks make no such call
            self._calls.restart()
            return None
        naming = FileNaming(
            "" if end == TEXT and not adds else end,
            adds_suffix=adds and bool(end),
            folder=above if at != folder or splits else "",
            adds_folder=not own,
            form=plan.form,
        )
        return at, naming

    def _made(self, stem: str, content: str) -> SafePath | None:
        """Return the file with this content or, if the content is empty, with this name."""
        for path in self._calls.tree.root.below():
            if path.is_symlink() or not path.is_file():
                continue
            if content.strip().encode() in read(path) if content else flat(stem) in flat(path.name):
                return path
        return None

    def containers(self, tools: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return names of vaults or similar places that a tool without arguments lists."""
        wanted = {word for name in FOLDERS for word in (name, f"{name}s")}
        found: list[str] = []
        for tool in tools:
            said = {*words(tool["name"])}
            if said & LISTING and said & wanted and not required(tool.get("inputSchema")):
                reply = self._calls.ask("tools/call", {"name": tool["name"], "arguments": {}})
                shown = " ".join(strings((reply.result or {}).get("content", "")))
                found += re.findall(r"(?<![\w./-])\w[\w-]{1,40}(?![\w/-])", shown)
        own = self._calls.tree.root.name
        ranked = sorted(dict.fromkeys(found), key=lambda name: (name != own, -found.count(name)))
        return ranked[:MOST_LISTED]


def _in_folders(naming: FileNaming, *, splits: bool) -> Iterator[tuple[str, FileNaming]]:
    """Yield a naming with each folder of our files, also with a suffix that the server adds."""
    for below in (OWN_FOLDER,) if splits else (OWN_FOLDER, ""):
        yield below, naming
        if naming.suffix:
            yield below, replace(naming, adds_suffix=True)
