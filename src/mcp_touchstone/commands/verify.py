"""The command `verify`: a statement of `check --attest`, offline."""

from __future__ import annotations

import hashlib

from mcp_touchstone.commands.output import complain
from mcp_touchstone.runtime.console import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from mcp_touchstone.catalog.sdk import PackageOrigin
    from mcp_touchstone.config.parser import CommandLine


def run(line: CommandLine) -> int:
    """Verify a statement; return 0 if all agrees, 1 if something differs."""
    from mcp_touchstone.report import attest

    options = line.options
    made, signer = attest.opened(options.statement, options.key)
    predicate = made["predicate"]
    for name, value in (("signature", signer), *attest.facts(made)):
        say(f"{name:<12} {value}")
    wrong = []
    if options.report is not None:
        wrong += _of_report(predicate, options.report)
    if line.server:
        wrong += attest.differing(made, _origin(line.server))
    elif options.report is None:
        say("package      not compared: name the server after --")
    say(f"result       {predicate.get('result', 'unknown')}")
    say(attest.PROVES_NOT)
    for text in wrong:
        complain(text)
    return 1 if wrong else 0


def _of_report(predicate: Mapping[str, Any], path: Path) -> list[str]:
    from mcp_touchstone.runtime.input_file import InputFile

    digest = {"sha256": hashlib.sha256(InputFile(path).data()).hexdigest()}
    rows = predicate.get("configuration") or ()
    known = [one for one in rows if one.get("name") == "report.json"]
    return [] if known and known[0].get("digest") == digest else [f"{path}: another report"]


def _origin(command: Sequence[str]) -> PackageOrigin | None:
    import os
    from pathlib import Path

    from mcp_touchstone.discovery.origin import origin, origins
    from mcp_touchstone.discovery.sdk import commands

    processes = commands(command, Path.cwd(), os.environ)
    return origin(command, origins(processes, os.environ), os.environ)
