"""Build the shell script that reproduces a finding.

The script creates a temporary folder with the trees that the messages refer to. It starts the
server there with the same command line, variables and working folder. It then shows the answers of
the server and the changes to the trees.
"""

import contextlib
import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final

from mcp_touchstone import __version__
from mcp_touchstone.bindings.canary import MARK, NAME_MARK, Area
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.runtime.secrets import secrets
from mcp_touchstone.security import line_payloads
from mcp_touchstone.security.fixture_tree import GIT, VARIABLE, FixtureTree
from mcp_touchstone.security.payload import CANARY
from mcp_touchstone.security.targeting import FILE
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.transport.http_channel import WITH_VERSION
from mcp_touchstone.transport.sandbox import Method, Sandbox, bubblewrap
from mcp_touchstone.wire.exchange import EVENTS, JSON

PLACE: Final = "@D@"
"""Placeholder for the folder of the script in the lines it sends."""

CLIENT: Final = {"name": "mcp-touchstone", "version": __version__}
PATIENCE: Final = 5
"""Seconds the script waits for an answer of the server."""

_ANSWERED_BY: Final = (
    'answered() { N=0; until grep -Eqs "\\"id\\": ?$1[,}]|^it ended" "$D.said"'
    f" || [ $N -ge {PATIENCE}0 ]; do sleep 0.1; N=$((N+1)); done; }}"
)
"""Shell function that waits for the answer to an id, the end of the server, or the timeout."""

_EACH: Final = 'for T in {}; do rm -f "$D.said" "$D.pid"'

PID: Final = "$D.pid"
"""File with the process id of the server, if it is tracked."""

FOUND: Final = "$D.found"
"""File to which a shell line between calls writes its finding."""

SHOWN: Final = 4000
"""Number of bytes at the end of the answers that are shown."""

LARGEST: Final = 4096
"""Maximum size of a file that is written into a script, in bytes."""

_COMMITTED: Final = (
    'for R in "$D"/*/; do case "$R" in "$D/home/" | "$D/tmp/") continue ;; esac',
    '(cd "$R" && git init -q -b main && git add -A',
    'git -c user.name=x -c user.email=x@localhost commit -qm "$(ls)"',
    'for F in mcpname-*; do [ ! -e "$F" ] || echo changed > "$F"; done); done',
)
"""Makes the folders repositories that name their files in log, status and diff."""

_STAGED: Final = (
    'git -C "$D/root" cat-file --batch-all-objects --batch > "$D.held"',
    f'grep -aq {MARK} "$D.held" && echo "FOUND: the repository contains a canary"; rm "$D.held"',
)

_IF_WANTED: Final = '[ "$SANDBOX" = off ]'
_MISSING: Final = "bubblewrap (bwrap) is missing: install it, or set SANDBOX=off"
_SHELTERED: Final = (
    "# The server is started in a sandbox, unless SANDBOX=off is set.",
    f"command -v bwrap > /dev/null || {_IF_WANTED} || {{ echo '{_MISSING}'; exit 2; }}",
)
_INHERITED: Final = " ".join([
    'PATH="$PATH"',
    *(f'${{{name}:+"{name}=${name}"}}' for name in ("LANG", "PYTHONPATH", "NODE_PATH")),
])  # fmt: skip
"""The variables that a sandboxed server inherits from the script."""

_SERVED: Final = f"""\
U=$0; "$@" >&2 & S=$!; H=$TMPDIR/.mcp-head
N=0; until curl -s -o /dev/null "$U" || [ $N -ge 300 ]; do sleep 0.1; N=$((N+1)); done
while IFS= read -r L; do [ -n "$L" ] || continue
curl -sS -N -m {PATIENCE} -D "$H" @HEADERS@ ${{I:+-H "Mcp-Session-Id: $I"}} --data-binary "$L" "$U"
echo; [ -n "$I" ] || I=$(tr -d '\\r' < "$H" | sed -n 's/^[Mm]cp-[Ss]ession-[Ii]d: *//p')
done; kill $S; wait $S; rm -f "$H"
"""
"""Shell commands that start a server and POST each line to it, in one session."""

PORT_USED: Final = 18_431
"""Port of the server that a script starts."""

_FACTS: Final = "-type f -exec cksum {} + -o -print | sort"
_OUTSIDE: Final = (
    r'outside() { cd "$D" && find . \( -path ./root -o -path ./tmp -o '
    rf"-path './home/*' ! -name {CANARY} \) -prune -o {_FACTS}; }}"
)
"""Shell function that lists the paths around the root, with checksums of files.

The temporary folder and the home are left out, except for the canary file in the home.
"""

_INSIDE: Final = f'inside() {{ cd "$D/root" && find . {_FACTS}; }}'
_LADEN: Final = f'laden() {{ grep -rls {MARK} "$D/root" | sort; }}'
_LEAKED: Final = f'grep -Eq "{MARK}|{NAME_MARK}" "$D.said" && echo "FOUND: a canary came back"'
_LAUNDERED: Final = (
    'laden | comm -13 "$D.laden" - | grep . && echo "FOUND: the root contains a canary"'
)
_STILL: Final = """[ ! -s "$D.news" ] || { cat "$D.news"; echo 'FOUND: the root changed'; }"""
_UNDENIED: Final = (
    "grep -E '^[<>].*/({names})(/|$)' \"$D.news\" && echo 'FOUND: a denied file changed'"
)
_ANSWERED: Final = (
    'grep -Eq \'"id": ?{id}[,}}]\' "$D.said" ||'
    " echo 'FOUND: the question at the end got no answer'"
)
_FORGED: Final = (
    """grep -E '[{,] ?"id": ?"inner-[0-9a-f]+"' "$D.said" | grep -q '"result"' &&"""
    " echo 'FOUND: text inside a message was read as a message'"
)


@dataclass(frozen=True, slots=True)
class Scene:
    """The surroundings of a finding.

    Attributes:
        field: the trees.
        target: the command and settings of the server.
        revision: the protocol revision in use.
        denies: whether it is about denied files.
        sandbox: the sandbox of the server; None for none.
    """

    field: FixtureTree
    target: Target
    revision: str
    denies: bool = False
    sandbox: Sandbox | None = None

    def script(
        self,
        text: str,
        said: Iterable[str],
        *,
        waits: int,
        judged: bool = False,
        still: bool = False,
        forged: bool = False,
        tries: int = 1,
    ) -> str:
        """Return the script. It exits with 1 if it finds the effect, 0 if not, 2 without an answer.

        Args:
            text: the sent text; the script creates the files it refers to.
            said: shell commands that print the lines.
            waits: id of the last request; the script waits for its answer.
            judged: whether a missing answer to that request is a finding.
            still: whether a change in the root is a finding.
            forged: whether a result with an ``inner-`` id is a finding.
            tries: maximum number of times the lines are sent, each time to a new process, until a
                shell line among them writes a finding.
        """
        looks = [_LEAKED, _LAUNDERED]
        if still:
            looks.append(_STILL)
        if self.denies:
            looks.append(_UNDENIED.format(names=self._listed()))
        if self.field.is_repository:
            looks += _STAGED
        if judged:
            looks.append(_ANSWERED.format(id=waits))
        if forged:
            looks.append(_FORGED)
        return "\n".join([
            "#!/bin/sh",
            *(() if self.sandbox is None else _SHELTERED),
            # Lower case only, as in our own trees: some servers fold the case of paths.
            'D=${TMPDIR:-/tmp}/mcp-touchstone-$$; mkdir -m 700 "$D" || exit',
            'D=$(cd "$D" && pwd -P)',
            *self._tree(text),
            *(line.replace(str(self.field.path), "$D") for line in self.field.made),
            *(_COMMITTED if self.field.is_repository else ()),
            _OUTSIDE,
            _INSIDE,
            _LADEN,
            '(outside) > "$D.before"; (inside) > "$D.inside"; laden > "$D.laden"',
            _ANSWERED_BY,
            *([_EACH.format(" ".join(map(str, range(1, tries + 1))))] if tries > 1 else ()),
            "{",
            *said,
            f'answered {waits}; }} | {self._started(tracked=tries > 1)} > "$D.said"',
            *([f'[ ! -s "{FOUND}" ] || break; done'] if tries > 1 else ()),
            f'tail -c {SHOWN} "$D.said"',
            "{",
            '(outside) | diff "$D.before" - || echo "FOUND: the outside changed"',
            '(inside) | diff "$D.inside" - > "$D.news"',
            *looks,
            f'[ ! -e "{FOUND}" ] || cat "{FOUND}"',
            '} > "$D.look"',
            'cat "$D.look"; grep -q "^FOUND" "$D.look"; S=$?',
            """grep -Eq '"(result|error)"' "$D.said"; A=$?""",
            'rm -rf "$D" "$D".*',
            "[ $S -ne 0 ] || exit 1",
            "[ $A -eq 0 ] || { echo 'the server gave no answer'; exit 2; }",
            "",
        ])  # fmt: skip

    def _listed(self) -> str:
        """Return a pattern of the denied names, without the repository if the server uses it."""
        denied = self.field.denied
        names = {one.example for one in (*denied.entries, *denied.written)}
        names -= {GIT} if self.field.is_repository else set()
        return "|".join(sorted(map(re.escape, names)))

    def _started(self, *, tracked: bool) -> str:
        """Return the command that starts the server; it saves the process id if ``tracked``."""
        hidden = {name for name, _ in secrets(self.target.env)}
        env = [
            f'"{name}=${{{name}?as it was when this was found}}"'
            if name in hidden
            else _word(f"{name}={value}")
            for name, value in self.target.env.items()
        ]
        variable = f"{VARIABLE}={self.field.variable.token}"
        words = [*self.target.apart, *self._command()]
        within = "" if self.target.cwd is None else f"cd {_word(self.target.cwd)} && "
        inherits = "env" if self.sandbox is None else f"env -i {_INHERITED}"
        ours = f'{inherits} HOME="$D/home" TMPDIR="$D/tmp" {variable}'
        first = [f'sh -c \'echo $$ > "$0"; exec "$@"\' "{PID}"'] if tracked else []
        started = " ".join([ours, *env, *map(_word, words)])
        if self.sandbox is not None:
            within += f'set -- {started}; {_IF_WANTED} || set -- {self._shelter()} -- "$@"; '
            started = '"$@"'
        return f'({within}{" ".join([*first, started])}; echo "it ended with status $?")'

    def _command(self) -> list[str]:
        """Return the command of the server; over HTTP, one that sends it lines by curl."""
        if not self.target.url:
            return list(self.target.command)
        placed = self.target.on_port(PORT_USED)
        headers = {"Content-Type": JSON, "Accept": f"{JSON}, {EVENTS}"}
        if self.revision >= WITH_VERSION:
            headers["MCP-Protocol-Version"] = self.revision
        words = [f"-H '{name}: {value}'" for name, value in headers.items()]
        words += [f'-H "{name}: ${variable}"' for name, variable in self.target.headers.items()]
        return [
            "sh",
            "-c",
            _SERVED.replace("@HEADERS@", " ".join(words)),
            placed.url,
            *placed.command,
        ]

    def _shelter(self) -> str:
        """Return the bubblewrap command for the folder of the script."""
        assert self.sandbox is not None  # noqa: S101  (only called with one)
        _, *words = bubblewrap(replace(self.sandbox, method=Method.BWRAP))
        ours = str(self.field.path)
        shown = ('"$D"' if word == ours else shlex.quote(word) for word in words)
        return " ".join(["bwrap", "--die-with-parent", *shown])

    # --- trees

    def _tree(self, text: str) -> Iterator[str]:
        """Yield the commands that create the root, the paths in the text, and the outside."""
        yield 'mkdir -p "$D/root/dir/sub/deep" "$D/home" "$D/tmp"'
        if self.target.seed is not None:
            yield f'cp -R {shlex.quote(str(self.target.seed.absolute()))}/. "$D/root"'
        plain = self.field.root / FILE
        yield f"printf '{line_payloads.word(self.field.content(plain))}' > \"$D/root/{FILE}\""
        for canary in self.field.canaries.planted:
            where = PurePosixPath(canary.where)
            if canary.area is not Area.OUTSIDE:
                continue
            if canary.is_name:
                if where.parent.name in {"outside", *_words(text)}:
                    yield from _made(where, "touch ")
            elif {where.parts[0]} & {"outside", self.field.home.name} or where.parts[0] in text:
                planted = self.field.content(self.field.path / where)
                if planted not in {b"", canary.content.encode()}:  # a document
                    yield from _made(where, f"printf '{line_payloads.word(planted)}' > ")
                    continue
                lines = " ".join(map(shlex.quote, canary.content.splitlines()))
                yield from _made(where, f'printf "%s\\n" {lines} > ')
        for path in sorted(self._files(text)):
            with contextlib.suppress(OSError):  # something else is in its place now
                made = line_payloads.word(path.read_bytes(LARGEST))
                yield from _made(path.relative_to(self.field.path), f"printf '{made}' > ")
        for link, target in sorted(self._links(text).items()):
            there = target.replace(str(self.field.path), "$D")
            yield f'mkdir -p "$D/root"/{shlex.quote(PurePosixPath(link).parent.as_posix())}'
            yield f'ln -s "{there}" "$D/root"/{shlex.quote(link)}'

    def _met(self, text: str) -> Iterator[SafePath]:
        """Yield the paths of the root that a text may refer to; all paths if it names none."""
        words = _words(text)
        every = not words - {".", ".."} or "*" in text
        for path in self.field.root.below():
            if every or words & {*path.relative_to(self.field.root).parts}:
                yield path

    def _files(self, text: str) -> Iterator[SafePath]:
        own = self.field.root / GIT
        for path in self._met(text):
            is_own = self.field.is_repository and path.is_relative_to(own)
            if path.is_file() and path != self.field.root / FILE and not is_own:
                yield path

    def _links(self, text: str) -> dict[str, str]:
        """Return our links in the root that a text may refer to, and the links they lead to."""
        tree, found = self.field.path.tree, dict[str, str]()
        for path in self._met(text):
            here: SafePath | None = path
            while here is not None and here.is_relative_to(self.field.root):
                name = str(here.relative_to(self.field.root))
                target = self.field.planted_link(here)
                if target is None or name in found:
                    break
                found[name] = target
                here = tree.at(
                    os.path.normpath(
                        target if target.startswith("/") else f"{here.parent}/{target}"
                    )
                )
        return found


def _made(where: PurePosixPath, command: str) -> Iterator[str]:
    """Yield the commands that create a file and its folder, relative to the parent."""
    yield f'mkdir -p "$D"/{shlex.quote(where.parent.as_posix())}'
    yield f'{command}"$D"/{shlex.quote(where.as_posix())}'


def recreated(folder: SafePath, parent: SafePath) -> str:
    """Return a shell line that creates a folder again.

    Args:
        folder: the folder, with small files and links.
        parent: the parent folder of the trees, whose path in files is replaced by that of the
            script.
    """
    lines = [f'mkdir -p "{folder}"']
    for path in sorted(folder.below()):
        if path.is_symlink():
            lines.append(f'ln -s "{path.readlink()}" "{path}"')
        elif path.is_dir():
            lines.append(f'mkdir -p "{path}"')
        else:
            parts = path.read_bytes().split(str(parent).encode())
            texts = [f"printf '{line_payloads.word(part)}'" for part in parts]
            lines.append(f'{{ {f"; printf %s {parent}; ".join(texts)}; }} > "{path}"')
            lines += [f'chmod +x "{path}"'] if path.stat().st_mode & stat.S_IXUSR else []
    return "; ".join(lines)


def _words(text: str) -> set[str]:
    """Return the names in a path, or in the words of a command line."""
    return {w for sign in (r'[/\\"]| -> ', r"[\s/=<>|;&'\"]+") for w in re.split(sign, text) if w}


def _word(text: str) -> str:
    """Return a quoted word of a command line, with the root of the script filled in."""
    return '"$D/root"'.join(shlex.quote(part) if part else "" for part in text.split(ROOT)) or "''"


def opening(revision: str) -> Iterator[dict[str, Any]]:
    """Yield the messages that open a session; none in a revision without a handshake."""
    if not rev.is_modern(revision):
        opened = {"protocolVersion": revision, "capabilities": {}, "clientInfo": CLIENT}
        yield {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opened}
        yield {"jsonrpc": "2.0", "method": "notifications/initialized"}
