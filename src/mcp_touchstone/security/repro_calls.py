"""Scripts that reproduce a finding: the messages they send to the server."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mcp_touchstone.bindings.binding import Binding, Call
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.security import line_payloads
from mcp_touchstone.security.line_payloads import LinePayload, quoted
from mcp_touchstone.security.repro_script import CLIENT, FOUND, PATIENCE, PID, PLACE, Scene, opening
from mcp_touchstone.security.targeting import FILE

FIRST: Final = 2
"""Id of the first call; the opening uses 1."""

LAST: Final = "$LAST"
"""Variable of a shell line with the id of the last call."""

KILLS: Final = 20
"""Maximum number of times a script kills the server; it stops at the first half-written file."""

WRITTEN: Final = "written-to-the-pipe"
"""What a script writes to a named pipe."""

LOOKS: Final = 200_000
"""Maximum number of checks for a change of a file; they take about a second."""


def script(
    scene: Scene, text: str, *steps: Call | str, still: bool = False, died: bool = False
) -> str:
    """Return the script that makes some calls.

    Args:
        text: the path that was sent; the script creates the files on it.
        steps: calls, and between them shell lines in which ``$D`` is the folder of the script.
        still: whether nothing in the root may change.
        died: whether a missing answer to the last call is the finding.
    """
    calls = sum(not isinstance(step, str) for step in steps)
    said = _said(scene.revision, steps, str(scene.tree.path))
    return scene.script(text, said, waits=FIRST + calls - 1, judged=died, still=still)


def found_if(condition: str, what: str) -> str:
    """Return a shell line that waits for the last answer and then checks a condition."""
    return f'answered {LAST}; {{ {condition}; }} && echo "FOUND: {what}" > "{FOUND}"'


def talk(scene: Scene, line: LinePayload, probe: Mapping[str, Any], *, forged: bool = False) -> str:
    """Return the script of a protocol attack: it sends the opening, a line and a request.

    Args:
        probe: the request sent at the end.
        forged: whether the line has messages that must not be answered or echoed as messages.
    """
    place = (str(scene.tree.path), PLACE)
    said = [
        "{",
        *(f"printf '%s\\n' {quoted(json.dumps(one))}" for one in opening(scene.revision)),
        *line_payloads.printed([line], place),
        "printf '\\n'",
        f"printf '%s\\n' {quoted(json.dumps(probe))}",
        f'}} | sed "s|{PLACE}|$D|g"',
    ]
    return scene.script(line.opened, said, waits=probe["id"], judged=True, forged=forged)


def starved(scene: Scene, reader: Binding, pipes: Iterable[str]) -> str:
    """Return the script that reads named pipes without a writer, and then a plain file."""
    root = str(scene.tree.root)
    names = [*pipes, FILE]
    calls = [reader.call(reader.spelled(name, root), root) for name in names]
    every = " ".join(f'"{root}/{name}"' for name in names[:-1])
    pattern = f'"id": ?{len(names) + 1}[,}}]'
    answered = f'grep -Eq {quoted(pattern)} "$D.said"'
    looked = f'{answered} || echo "FOUND: the plain file was not read" > "{FOUND}"'
    # opening a pipe for both directions releases its readers; once removed, it gets no new ones
    freed = f'for F in {every}; do exec 4<> "$F"; rm "$F"; exec 4>&-; done'
    wait = f"sleep {PATIENCE}"
    return script(scene, FILE, f"mkfifo {every}", *calls, wait, looked, freed)


def waited(scene: Scene, reader: Binding, pipe: str) -> str:
    """Return the script that reads a named pipe, and writes to it if no answer comes."""
    root = str(scene.tree.root)
    pattern = f'"id": ?{FIRST}[,}}]'
    answered = f'grep -Eq {quoted(pattern)} "$D.said"'
    written = f'exec 4<> "{root}/{pipe}"; rm "{root}/{pipe}"; echo {WRITTEN} >&4; exec 4>&-'
    back = found_if(f'grep -q {WRITTEN} "$D.said"', "the read waited until we wrote to the pipe")
    return script(
        scene,
        FILE,
        f'mkfifo "{root}/{pipe}"',
        reader.call(reader.spelled(pipe, root), root),
        f"sleep {PATIENCE}",
        f"{answered} || {{ {written}; {back}; }}",
    )


def early(scene: Scene, call: Call) -> str:
    """Return the script that makes one call before the handshake and checks the root."""
    said = _sent([_line(scene.revision, FIRST, call)], str(scene.tree.path))
    return scene.script(FILE, said, waits=FIRST, still=True)


def killed(scene: Scene, call: Call, path: str, old: bytes | None, units: tuple[str, str]) -> str:
    """Return the script that kills the server as soon as the file it writes changes.

    Args:
        path: the file, relative to the root.
        old: the old content of the file; None if the call creates it.
        units: the repeated lines of the new and of the old content.
    """
    place = (str(scene.tree.path), PLACE)
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
    report = 'echo "FOUND: neither the old file nor the new one: $(ls -l "$F" 2>&1)"'
    return scene.script(
        FILE,
        [
            f'F="$D/root/"{quoted(path)}; rm -rf "${{F%/*}}"; mkdir -p "${{F%/*}}"',
            *held,
            laid,
            *sent(*opened, _spread(line, repeated)),
            f"answered {FIRST}",
            f'cp "$F" "$D.new"; rm -f "$F"; {laid}; read -r P < "{PID}"',
            *sent(_spread(again, repeated)),
            f"N=0; until {seen} || [ $N -ge {LOOKS} ]; do N=$((N+1)); done; kill -KILL $P",
            "sleep 0.3",
            f'{same} || cmp -s "$F" "$D.new" || {report} > "{FOUND}"',
        ],
        waits=FIRST + 1,
        tries=KILLS,
    )


def _spread(line: str, unit: str) -> LinePayload:
    """Return a line as parts, so that a text repeated in it is printed only once."""
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
    """Yield the commands that send the opening and the steps.

    Before each shell line the server has a second to answer the calls.
    """
    said: list[dict[str, Any]] = list(opening(revision))
    number = FIRST - 1
    for step in steps:
        if isinstance(step, str):
            yield from _sent(said, parent)
            yield "sleep 1"
            own = step.replace(f"'{parent}", '"$D"\'').replace(parent, "$D")
            yield f"LAST={number}; {own}" if LAST in own else own
            said = []
            continue
        number += 1
        said.append(_line(revision, number, step))
    yield from _sent(said, parent)


def _sent(lines: list[dict[str, Any]], parent: str) -> Iterator[str]:
    if lines:
        yield f"sed \"s|{PLACE}|$D|g\" <<'LINES'"
        for line in lines:
            text = json.dumps(line, ensure_ascii=True).replace("@", "\\u0040")
            yield text.replace(json.dumps(parent)[1:-1].replace("@", "\\u0040"), PLACE)
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
