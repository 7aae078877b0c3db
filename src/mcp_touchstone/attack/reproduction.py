"""A finding as a shell script that runs without us: the tree, the lines, what to look for. Pure.

The script makes a folder of its own, puts into it what the call meets on its way, and shows
what the server answers and what of the outside is not as it was.
"""

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from mcp_touchstone import __version__
from mcp_touchstone import revision as rev
from mcp_touchstone.attack.bindings import Binding, Call
from mcp_touchstone.attack.canary import MARK, NAME_MARK, Area
from mcp_touchstone.attack.field import VARIABLE, Field
from mcp_touchstone.attack.reach import PAIR

PLACE: Final = "@D@"
"""Stands for the folder of the script in the lines it sends."""

CLIENT: Final = {"name": "mcp-touchstone", "version": __version__}
PATIENCE: Final = 5
"""Seconds the server has to answer."""


FOUND: Final = "$D.found"
"""Where a line of a shell between calls says what it found."""

_COMMITTED: Final = (
    'for R in "$D"/*/; do [ "$R" = "$D/home/" ] || (cd "$R" && git init -q -b main && git add -A',
    'git -c user.name=x -c user.email=x@localhost commit -qm "$(ls)"',
    'for F in mcpname-*; do [ ! -e "$F" ] || echo changed > "$F"; done); done',
)
"""Makes the folders repositories that name their files in log, status and diff, with git itself."""

_STAGED: Final = (
    'git -C "$D/root" cat-file --batch-all-objects --batch > "$D.held"',
    f'grep -aq {MARK} "$D.held" && echo "FOUND: a canary stands in the repository"; rm "$D.held"',
)


def script(
    field: Field, command: Iterable[str], revision: str, text: str, *steps: Call | str
) -> str:
    """Write the script.

    Args:
        field: the trees the call was fired at.
        command: of the server; ``{root}`` in it stands for the root.
        revision: which is spoken.
        text: the path that was sent: what it meets is made.
        steps: calls, and between them lines of a shell in which ``$D`` is the folder.
    """
    server = " ".join(
        '"' + word.replace("{root}", "$D/root") + '"' if "{root}" in word else shlex.quote(word)
        for word in command
    )
    secret = f"{VARIABLE}={field.variable.token}"
    return "\n".join([
        "#!/bin/sh",
        'D=$(mktemp -d) && D=$(cd "$D" && pwd -P)',
        *_tree(field, text),
        *(_COMMITTED if field.is_repository else ()),
        "look() {",
        'find "$D" -path "$D/root" -prune -o -type d -print -o -type f -exec cksum {} + | sort; }',
        'look > "$D.before"',
        "{",
        *_said(revision, steps, str(field.path)),
        f'sleep {PATIENCE}; }} | (cd "$D/root" && HOME="$D/home" {secret} {server}) |',
        'tee "$D.said"',
        'look | diff "$D.before" - || echo "FOUND: the outside changed"',
        f'grep -Eq "{MARK}|{NAME_MARK}" "$D.said" && echo "FOUND: a canary came back"',
        f'grep -rq {MARK} "$D/root" && echo "FOUND: a canary stands inside the root"',
        *(_STAGED if field.is_repository else ()),
        f'[ ! -e "{FOUND}" ] || cat "{FOUND}"',
        f'rm -rf "$D" "$D.before" "$D.said" "{FOUND}"',
        "",
    ])  # fmt: skip


def starved(
    field: Field, command: Iterable[str], revision: str, reader: Binding, pipes: Iterable[str]
) -> str:
    """Write the script that reads pipes nobody writes to, and then a plain file.

    Args:
        field: the trees the calls were made in.
        command: of the server.
        revision: which is spoken.
        reader: by what was read.
        pipes: their names in the root.
    """
    root = str(field.root)
    names = [*pipes, "ok.txt"]
    calls = [reader.call(reader.spelled(name, root), root) for name in names]
    every = " ".join(f'"{root}/{name}"' for name in names[:-1])
    pattern = f'"id": ?{len(names) + 1}[,}}]'
    answered = f'grep -Eq {shlex.quote(pattern)} "$D.said"'
    looked = f'{answered} || echo "FOUND: the plain file was not read" > "{FOUND}"'
    # who waits is let go once we have it open for both, and nobody waits anew for what is gone
    freed = f'for F in {every}; do exec 4<> "$F"; rm "$F"; exec 4>&-; done'
    wait = f"sleep {PATIENCE}"
    return script(
        field, command, revision, "ok.txt", f"mkfifo {every}", *calls, wait, looked, freed
    )


def _tree(field: Field, text: str) -> Iterable[str]:
    """Give the commands that make the root, what the path meets, and every canary outside."""
    yield 'mkdir -p "$D/root/dir/sub/deep" "$D/home"'
    yield 'printf "plain\\n" > "$D/root/ok.txt"'
    for canary in field.canaries.planted:
        folder = Path(canary.where).parent
        if (
            canary.is_name
            and canary.area is Area.OUTSIDE
            and folder.name in ("outside", *_words(text))
        ):
            yield f'mkdir -p "$D"/{shlex.quote(folder.as_posix())}'
            yield f'touch "$D"/{shlex.quote(canary.where)}'
        near = Path(canary.where).parts[0] in ("outside", field.home.name)
        near = near or Path(canary.where).parts[0] in text
        if canary.area is Area.OUTSIDE and not canary.is_name and near:
            path = shlex.quote(canary.where)
            yield f'mkdir -p "$D"/{shlex.quote(folder.as_posix())}'
            lines = " ".join(map(shlex.quote, canary.content.splitlines()))
            yield f'printf "%s\\n" {lines} > "$D"/{path}'
    for link, target in sorted(_links(field, text).items()):
        there = target.replace(str(field.path), "$D")
        yield f'mkdir -p "$D/root"/{shlex.quote(Path(link).parent.as_posix())}'
        yield f'ln -s "{there}" "$D/root"/{shlex.quote(link)}'


def _words(text: str) -> set[str]:
    return {word for word in text.replace("\\", "/").replace(PAIR, "/").split("/") if word}


def _links(field: Field, text: str) -> dict[str, str]:
    """Give the links of the root that a path may meet, and those these lead to."""
    words = _words(text)
    found: dict[str, str] = {}
    for path in field.root.rglob("*"):
        if path.is_symlink() and {path.name, path.parent.name} & words:
            here = path
            while here.is_symlink() and here.is_relative_to(field.root):
                name = here.relative_to(field.root).as_posix()
                if name in found:
                    break
                found[name] = str(here.readlink())
                here = Path(str(here.parent / here.readlink()))
    return found


def _said(revision: str, steps: Iterable[Call | str], parent: str) -> Iterable[str]:
    """Give the commands that say it: calls as lines, with time to answer between the steps."""
    said: list[dict[str, Any]] = list(_opening(revision))
    number = 1
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


def _sent(lines: list[dict[str, Any]], parent: str) -> Iterable[str]:
    if lines:
        yield f"sed \"s|{PLACE}|$D|g\" <<'LINES'"
        for line in lines:
            yield json.dumps(line, ensure_ascii=True).replace(parent, PLACE)
        yield "LINES"


def _opening(revision: str) -> Iterable[dict[str, Any]]:
    if not rev.is_modern(revision):
        opening = {"protocolVersion": revision, "capabilities": {}, "clientInfo": CLIENT}
        yield {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
        yield {"jsonrpc": "2.0", "method": "notifications/initialized"}


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
