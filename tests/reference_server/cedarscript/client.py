"""A client of the CEDARScript tools, for their tests: one server, many calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reference_server.features.cedarscript.available import reason_against
from reference_server.features.cedarscript.tools import install
from reference_server.settings import Settings
from tests.reference_client import InProcess

if TYPE_CHECKING:
    from reference_server.surface import Surface

WHY_NOT = reason_against()
"""Why these tests cannot run the library here, or None."""

NEEDS_LIBRARY = pytest.mark.skipif(WHY_NOT is not None, reason=f"CEDARScript: {WHY_NOT}")

CASES: dict[str, Any] = json.loads(
    Path(__file__).with_name("cases.json").read_text(encoding="utf-8")
)


def only_cedarscript(surface: Surface) -> None:
    """Register only the CEDARScript tools."""
    surface.toolbox.later(lambda: install(surface))


class Client(InProcess):
    """A server of these tools below one root; the worker stays warm from call to call."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.root = root
        super().__init__(Settings([str(root)], **settings), [only_cedarscript])

    def fail(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the error of a tool that must fail; it names no place outside of the root."""
        found = super().fail(tool, **arguments)
        assert str(self.root) not in json.dumps(found)
        return found

    def preview(self, commands: str, **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.call("apply_cedarscript", commands=commands, **more)["preview"]
        return found

    def carry_out(self, commands: str, **more: Any) -> dict[str, Any]:
        return self.call("apply_cedarscript", commands=commands, dry_run=False, **more)

    def refuse(self, commands: str, **more: Any) -> dict[str, Any]:
        """Return the error of a script that must fail, in a dry run and for real."""
        dry = self.fail("apply_cedarscript", commands=commands, **more)
        assert self.fail("apply_cedarscript", commands=commands, dry_run=False, **more) == dry
        return dry


def lay(root: Path, files: dict[str, str]) -> None:
    """Put the files of a case below a root."""
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())


def tree(root: Path) -> dict[str, bytes]:
    """Return every file below a root."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
