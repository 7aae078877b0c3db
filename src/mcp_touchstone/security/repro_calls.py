"""What the script of a finding says to the server: calls, or lines and a question. Pure."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mcp_touchstone.bindings.binding import Binding, Call
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.security import line_payloads
from mcp_touchstone.security.line_payloads import LinePayload
from mcp_touchstone.security.repro_script import CLIENT, FOUND, PATIENCE, PID, PLACE, Scene, opening
from mcp_touchstone.security.targeting import FILE

FIRST: Final = 2
"""Id of the first call; the opening has the one before."""

KILLS: Final = 20
"""How often a script kills the server; where half a file is seen, it ends."""

LOOKS: Final = 200_000
"""How often it looks at a file that should change: about a second."""


def script(
    scene: Scene, text: str, *steps: Call | str, still: bool = False, died: bool = False
) -> str:
    """Write the script that makes some calls.

    Args:
        scene: where they were made.
        text: the path that was sent: what it meets is made.
        steps: calls, and between them lines of a shell in which ``$D`` is the folder.
        still: whether nothing in the root may change.
        died: whether the last call got no answer.
    """
    calls = sum(not isinstance(step, str) for step in steps)
    said = _said(scene.revision, steps, str(scene.field.path))
    return scene.script(text, said, waits=FIRST + calls - 1, judged=died, still=still)


def talk(
    scene: Scene, fired: Iterable[LinePayload], probe: Mapping[str, Any], *, forged: bool = False
) -> str:
    """Write the script of an attack on the protocol: the opening, some lines, and a question.

    Args:
        scene: where they were sent.
        fired: the lines.
        probe: the request that is asked at the end.
        forged: whether they hold messages that must not come back as such.
    """
    fired = list(fired)
    place = (str(scene.field.path), PLACE)
    said = [
        "{",
        *(f"printf '%s\\n' {shlex.quote(json.dumps(line))}" for line in opening(scene.revision)),
        *line_payloads.printed(fired, place),
        "printf '\\n'",
        f"printf '%s\\n' {shlex.quote(json.dumps(probe))}",
        f'}} | sed "s|{PLACE}|$D|g"',
    ]
    text = " ".join(shell.opened for shell in fired)
    return scene.script(text, said, waits=probe["id"], judged=True, forged=forged)


def starved(scene: Scene, reader: Binding, pipes: Iterable[str]) -> str:
    """Write the script that reads pipes nobody writes to, and then a plain file.

    Args:
        scene: where the calls were made.
        reader: by what was read.
        pipes: their names in the root.
    """
    root = str(scene.field.root)
    names = [*pipes, FILE]
    calls = [reader.call(reader.spelled(name, root), root) for name in names]
    every = " ".join(f'"{root}/{name}"' for name in names[:-1])
    pattern = f'"id": ?{len(names) + 1}[,}}]'
    answered = f'grep -Eq {shlex.quote(pattern)} "$D.said"'
    looked = f'{answered} || echo "FOUND: the plain file was not read" > "{FOUND}"'
    # who waits is let go once we have it open for both, and nobody waits anew for what is gone
    freed = f'for F in {every}; do exec 4<> "$F"; rm "$F"; exec 4>&-; done'
    wait = f"sleep {PATIENCE}"
    return script(scene, FILE, f"mkfifo {every}", *calls, wait, looked, freed)


def early(scene: Scene, call: Call) -> str:
    """Write the script that makes one call before the handshake, and looks at the root."""
    said = _sent([_line(scene.revision, FIRST, call)], str(scene.field.path))
    return scene.script(FILE, said, waits=FIRST, still=True)


def killed(scene: Scene, call: Call, path: str, old: bytes | None, units: tuple[str, str]) -> str:
    """Write the script that kills the server as soon as a file it writes is seen to change.

    Args:
        scene: where it was killed.
        call: what writes.
        path: the file, below the root.
        old: what the file holds before; None where it is made.
        units: lines that what is written, and what was there, hold many times in a row.
    """
    place = (str(scene.field.path), PLACE)
    opened = [line_payloads.plain("", "", message) for message in opening(scene.revision)]
    line = json.dumps(_line(scene.revision, FIRST, call), ensure_ascii=True)
    again = json.dumps(_line(scene.revision, FIRST + 1, call), ensure_ascii=True)
    repeated = json.dumps(units[0])[1:-1]

    def sent(*said: LinePayload) -> list[str]:
        return ["{", *line_payloads.printed(said, place), f'}} | sed "s|{PLACE}|$D|g"']

    laid = '[ ! -e "$D.old" ] || { cp "$D.old" "$F"; touch -t 200001010000 "$F" "$D.old"; }'
    held = (
        []
        if old is None
        else [
            "{",
            *line_payloads.printed([_spread(old.decode().removesuffix("\n"), units[1])], place),
            '} > "$D.old"',
        ]
    )
    seen = '[ -e "$F" ]' if old is None else '{ [ "$F" -nt "$D.old" ] || [ ! -e "$F" ]; }'
    same = '[ ! -e "$F" ]' if old is None else 'cmp -s "$F" "$D.old"'
    told = 'echo "FOUND: neither the old file nor the new one: $(ls -l "$F" 2>&1)"'
    return scene.script(
        FILE,
        [
            f'F="$D/root/"{shlex.quote(path)}; rm -rf "${{F%/*}}"; mkdir -p "${{F%/*}}"',
            *held,
            laid,
            *sent(*opened, _spread(line, repeated)),
            f"answered {FIRST}",
            f'cp "$F" "$D.new"; rm -f "$F"; {laid}; read -r P < "{PID}"',
            *sent(_spread(again, repeated)),
            f"N=0; until {seen} || [ $N -ge {LOOKS} ]; do N=$((N+1)); done; kill -KILL $P",
            "sleep 0.3",
            f'{same} || cmp -s "$F" "$D.new" || {told} > "{FOUND}"',
        ],
        waits=FIRST + 1,
        tries=KILLS,
    )


def _spread(line: str, unit: str) -> LinePayload:
    """Give a line as the parts it is printed from, a text it repeats only once."""
    begin = line.find(unit)
    if begin < 0:
        return line_payloads.plain("", "", line)
    end = begin
    while line.startswith(unit, end):
        end += len(unit)
    count = (end - begin) // len(unit)
    parts = ((line[:begin].encode(), 1), (unit.encode(), count), (line[end:].encode(), 1))
    return LinePayload("", "", parts)


def _said(revision: str, steps: Iterable[Call | str], parent: str) -> Iterator[str]:
    """Give the commands that say it: calls as lines, with time to answer between the steps."""
    said: list[dict[str, Any]] = list(opening(revision))
    number = FIRST - 1
    for step in steps:
        if isinstance(step, str):
            yield from _sent(said, parent)
            yield "sleep 1"
            yield step.replace(parent, "$D")
            said = []
            continue
        number += 1
        said.append(_line(revision, number, step))
    yield from _sent(said, parent)


def _sent(lines: list[dict[str, Any]], parent: str) -> Iterator[str]:
    if lines:
        yield f"sed \"s|{PLACE}|$D|g\" <<'LINES'"
        for line in lines:
            yield json.dumps(line, ensure_ascii=True).replace(parent, PLACE)
        yield "LINES"


def _line(revision: str, number: int, call: Call) -> dict[str, Any]:
    method, params = call
    if rev.is_modern(revision):
        meta = {
            rev.META + "protocolVersion": revision,
            rev.META + "clientInfo": CLIENT,
            rev.META + "clientCapabilities": {},
        }
        params = {**params, "_meta": meta}
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
