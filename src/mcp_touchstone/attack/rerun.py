"""An attack on the protocol as a shell script without us: lines, and a question. Pure."""

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp_touchstone import __version__
from mcp_touchstone import revision as rev

PLACE: Final = "@D@"
"""Stands for the folder of the script in the lines it sends."""

CLIENT: Final = {"name": "mcp-touchstone", "version": __version__}
PATIENCE: Final = 5
"""Seconds the server has to answer."""


def talk(
    command: Iterable[str], revision: str, fired: Iterable[str], probe: Mapping[str, Any]
) -> str:
    """Write the script of an attack on the protocol: the opening, some lines, and a question.

    Args:
        command: of the server; ``{root}`` in it stands for the root.
        revision: which is spoken.
        fired: shell commands that write the lines; ``PLACE`` in them stands for the folder.
        probe: the request that is asked at the end.
    """
    words = tuple(command)
    within = 'cd "$D/root" && ' if any("{root}" in word for word in words) else ""
    started = f'({within}HOME="$D/home" {_server(words)}; echo "it ended with status $?")'
    answered = f'grep -Eq \'"id": ?{probe["id"]}[,}}]\' "$D.said"'
    opening = [json.dumps(line) for line in _opening(revision)]
    return "\n".join([
        "#!/bin/sh",
        'D=$(mktemp -d) && D=$(cd "$D" && pwd -P)',
        'mkdir -p "$D/root" "$D/home" && printf "plain\\n" > "$D/root/ok.txt"',
        "{ {",
        *(f"printf '%s\\n' {shlex.quote(line)}" for line in opening),
        *fired,
        "printf '\\n'",
        f"printf '%s\\n' {shlex.quote(json.dumps(probe))}",
        f'}} | sed "s|{PLACE}|$D|g"; sleep {PATIENCE}; }} | {started} > "$D.said"',
        'tail -c 4000 "$D.said"',
        f"{answered} || echo 'FOUND: the question at the end got no answer'",
        'rm -r "$D" "$D.said"',
        "",
    ])  # fmt: skip


def _server(command: Iterable[str]) -> str:
    return " ".join(
        '"' + word.replace("{root}", "$D/root") + '"' if "{root}" in word else shlex.quote(word)
        for word in command
    )


def _opening(revision: str) -> Iterable[dict[str, Any]]:
    if not rev.is_modern(revision):
        opening = {"protocolVersion": revision, "capabilities": {}, "clientInfo": CLIENT}
        yield {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
        yield {"jsonrpc": "2.0", "method": "notifications/initialized"}
