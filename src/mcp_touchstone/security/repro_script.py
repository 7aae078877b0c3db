"""Build the shell script that reproduces a finding.

The script creates a temporary folder with the trees that the messages refer to. It starts the
server there with the same command line, variables and working folder. It then shows the answers of
the server and the changes to the trees.

The user runs it outside any sandbox, and names, contents and answers in it are the server's. So
each word is quoted, only planted links are made, and they are made last: nothing is written through
a link. The git that looks at the repository afterwards may start no program, and the terminal gets
no control character.
"""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final

from mcp_touchstone.bindings.canary import MARK, NAME_MARK, Area
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.runtime import copy_root
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.runtime.secrets import secrets
from mcp_touchstone.sandbox.sandbox import Method, Sandbox, bubblewrap
from mcp_touchstone.security import line_payloads
from mcp_touchstone.security.fixture_tree import GIT, VARIABLE, FixtureTree
from mcp_touchstone.security.line_payloads import placed, quoted
from mcp_touchstone.security.payload import CANARY
from mcp_touchstone.security.targeting import FILE
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.transport.http_session import WITH_VERSION
from mcp_touchstone.version import __version__
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
    'GIT_ALLOW_PROTOCOL= git -C "$D/root" cat-file --batch-all-objects --batch > "$D.held"',
    f'grep -aq {MARK} "$D.held" && echo "FOUND: the repository contains a canary"; rm "$D.held"',
)

_ORDINARY: Final = (
    "case $D in *[!A-Za-z0-9/._+,=@~-]*)",
    "echo 'set TMPDIR to a folder with a path of letters, digits and /._+,=@~-'; exit 2 ;; esac",
)
"""Refuses a folder whose path means something in JSON, in ``sed`` or without quotes."""

_IF_WANTED: Final = '[ "$SANDBOX" = off ]'
_MISSING: Final = "bubblewrap (bwrap) is missing: install it, or set SANDBOX=off"
_SHELTERED: Final = (
    "# The server is started in a sandbox, unless SANDBOX=off is set.",
    f"command -v bwrap > /dev/null || {_IF_WANTED} || {{ echo '{_MISSING}'; exit 2; }}",
)
_INHERITED: Final = " ".join(
    [
        'PATH="$PATH"',
        *(f'${{{name}:+"{name}=${name}"}}' for name in ("LANG", "PYTHONPATH", "NODE_PATH")),
    ]
)
"""The variables that a sandboxed server inherits from the script."""

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Name of a variable that a shell can read."""

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
_UNDENIED: Final = "grep -E {pattern} \"$D.news\" && echo 'FOUND: a denied file changed'"
_ANSWERED: Final = (
    'grep -Eq \'"id": ?{id}[,}}]\' "$D.said" ||'
    " echo 'FOUND: the question at the end got no answer'"
)
_FORGED: Final = (
    """grep -E '[{,] ?"id": ?"inner-[0-9a-f]+"' "$D.said" | grep -q '"result"' &&"""
    " echo 'FOUND: text inside a message was read as a message'"
)


_CONCLUSION: Final = (
    '} > "$D.look"',
    'cat -v "$D.look"; grep -q "^FOUND" "$D.look"; S=$?',
    """grep -Eq '"(result|error)"' "$D.said"; A=$?""",
    'rm -rf "$D" "$D".*',
    "[ $S -ne 0 ] || exit 1",
    "[ $A -eq 0 ] || { echo 'the server gave no answer'; exit 2; }",
    "",
)


@dataclass(frozen=True, slots=True)
class Scene:
    """The surroundings of a finding.

    Attributes:
        target: the command and settings of the server.
        denies: whether it is about denied files.
        sandbox: the sandbox of the server; None for none.
    """

    tree: FixtureTree
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

        It is empty for a server whose tokens come from us or from a command.

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
        if self.target.tokens is not None:
            return ""
        looks = self._looks(still=still)
        looks += [_ANSWERED.format(id=waits)] if judged else []
        looks += [_FORGED] if forged else []
        started = self._started(tracked=tries > 1)
        return "\n".join(
            [
                "#!/bin/sh",
                *(() if self.sandbox is None else _SHELTERED),
                # Lower case only, as in our own trees: some servers fold the case of paths.
                'D=$(cd -- "${TMPDIR:-/tmp}" && pwd -P)/mcp-touchstone-$$ || exit',
                *_ORDINARY,
                'mkdir -m 700 "$D" || exit',
                *self._tree(text),
                *(line.replace(str(self.tree.path), "$D") for line in self.tree.made),
                *(_COMMITTED if self.tree.is_repository else ()),
                _OUTSIDE,
                _INSIDE,
                _LADEN,
                '(outside) > "$D.before"; (inside) > "$D.inside"; laden > "$D.laden"',
                _ANSWERED_BY,
                *([_EACH.format(" ".join(map(str, range(1, tries + 1))))] if tries > 1 else ()),
                "{",
                *said,
                f'answered {waits}; }} | {started} > "$D.said" 2> "$D.errs"',
                *([f'[ ! -s "{FOUND}" ] || break; done'] if tries > 1 else ()),
                f'tail -c {SHOWN} "$D.said" | cat -v; tail -c {SHOWN} "$D.errs" | cat -v >&2',
                "{",
                '(outside) | diff "$D.before" - || echo "FOUND: the outside changed"',
                '(inside) | diff "$D.inside" - > "$D.news"',
                *looks,
                f'[ ! -e "{FOUND}" ] || cat "{FOUND}"',
                *_CONCLUSION,
            ]
        )

    def _looks(self, *, still: bool) -> list[str]:
        looks = [_LEAKED, _LAUNDERED]
        if still:
            looks.append(_STILL)
        if self.denies:
            pattern = quoted(f"^[<>].*/({self._listed()})(/|$)")
            looks.append(_UNDENIED.format(pattern=pattern))
        if self.tree.is_repository:
            looks += _STAGED
        return looks

    def _listed(self) -> str:
        """Return a pattern of the denied names, without the repository if the server uses it."""
        denied = self.tree.denied
        names = {one.example for one in (*denied.entries, *denied.written)}
        names -= {GIT} if self.tree.is_repository else set()
        return "|".join(sorted(map(re.escape, names)))

    def _started(self, *, tracked: bool) -> str:
        """Return the command that starts the server; it saves the process id if ``tracked``."""
        hidden = {name for name, _ in secrets(self.target.env)}
        env = [
            _word(f"{name}={value}")
            if name not in hidden
            else f'"{name}=${{{name}?as it was when this was found}}"'
            if _VARIABLE.fullmatch(name)
            else quoted(f"{name}=")  # the shell cannot read it
            for name, value in self.target.env.items()
        ]
        variable = f"{VARIABLE}={self.tree.variable.token}"
        words = [*self.target.without_network, *self._command()]
        within = "" if self.target.cwd is None else f"cd -- {_word(self.target.cwd)} && "
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
        words += [
            f'-H {quoted(f"{name}: ")}"${variable}"'
            for name, variable in self.target.header.items()
            if _VARIABLE.fullmatch(variable)
        ]
        served = _SERVED.replace("@HEADERS@", " ".join(words))
        return ["sh", "-c", served, placed.url, *placed.command]

    def _shelter(self) -> str:
        """Return the bubblewrap command for the folder of the script."""
        assert self.sandbox is not None  # noqa: S101  (only called with one)
        _, *words = bubblewrap(replace(self.sandbox, method=Method.BWRAP))
        ours = str(self.tree.path)
        shown = ('"$D"' if word == ours else quoted(word) for word in words)
        return " ".join(["bwrap", "--die-with-parent", *shown])

    # --- trees

    def _tree(self, text: str) -> Iterator[str]:
        """Yield the commands that create the root, the paths in the text, and the outside."""
        yield 'mkdir -p "$D/root/dir/sub/deep" "$D/home" "$D/tmp"'
        if self.target.root_from is not None:
            seed = self.target.root_from.absolute()
            yield f'cp -R {quoted(str(seed))}/. "$D/root"'
            for one in copy_root.left_out(seed):
                yield f'rm -f "$D/root"/{quoted(one)}'
        plain = self.tree.root / FILE
        yield f"printf '{line_payloads.word(self.tree.content(plain))}' > \"$D/root/{FILE}\""
        for canary in self.tree.canaries.planted:
            where = PurePosixPath(canary.where)
            if canary.area is not Area.OUTSIDE:
                continue
            if canary.is_name:
                if where.parent.name in {"outside", *_words(text)}:
                    yield from _made(where, "touch ")
            elif {where.parts[0]} & {"outside", self.tree.home.name} or where.parts[0] in text:
                planted = self.tree.content(self.tree.path / where)
                if planted not in {b"", canary.content.encode()}:  # a document
                    yield from _made(where, f"printf '{line_payloads.word(planted)}' > ")
                    continue
                lines = " ".join(map(quoted, canary.content.splitlines()))
                yield from _made(where, f'printf "%s\\n" {lines} > ')
        for path in sorted(self._files(text)):
            with contextlib.suppress(OSError):  # something else is in its place now
                made = line_payloads.word(path.read_bytes(LARGEST))
                yield from _made(path.relative_to(self.tree.path), f"printf '{made}' > ")
        for link, target in sorted(self._links(text).items()):
            there = placed(target, str(self.tree.path), '"$D"')
            yield f'mkdir -p "$D/root"/{quoted(PurePosixPath(link).parent.as_posix())}'
            yield f'ln -s -- {there} "$D/root"/{quoted(link)}'

    def _files(self, text: str) -> Iterator[SafePath]:
        """Yield the files of the root that a text may refer to; all of them if it names none."""
        refers = _referring(text)
        for path in self.tree.root.below():
            parts = path.relative_to(self.tree.root).parts
            is_own = self.tree.is_repository and GIT in parts
            if refers(parts) and path.is_file() and path != self.tree.root / FILE and not is_own:
                yield path

    def _links(self, text: str) -> dict[str, str]:
        """Return the planted links that a text may refer to, and the planted ones they lead to."""
        planted, root = self.tree.links, str(self.tree.root)
        refers = _referring(text)
        found: dict[str, str] = {}
        for here in filter(lambda link: refers(link.split("/")), planted):
            while here in planted and here not in found:
                found[here] = planted[here]
                there = os.path.normpath(f"{root}/{here}/../{planted[here]}")
                here = os.path.relpath(there, root)  # noqa: PLW2901
        return found


def _made(where: PurePosixPath, command: str) -> Iterator[str]:
    """Yield the commands that create a file and its folder, relative to the parent."""
    yield f'mkdir -p "$D"/{quoted(where.parent.as_posix())}'
    yield f'{command}"$D"/{quoted(where.as_posix())}'


def recreated(folder: SafePath, parent: SafePath) -> str:
    """Return a shell line that creates a folder again.

    Args:
        folder: the folder, with small files; of its links only ``.git`` can be a planted one.
        parent: the parent of the trees; its path in files becomes that of the script.
    """
    lines, last = [], []
    for path in (folder, *sorted(folder.below())):
        where = placed(str(path), str(parent), '"$D"')
        with contextlib.suppress(OSError):  # something else is in its place now
            if path.is_symlink():
                target = placed(path.readlink(), str(parent), '"$D"')
                last += [f"ln -s -- {target} {where}"] if path == folder / GIT else []
            elif path.is_dir():
                lines.append(f"mkdir -p {where}")
            else:
                parts = path.read_bytes(LARGEST).split(str(parent).encode())
                texts = [f"printf '{line_payloads.word(part)}'" for part in parts]
                lines.append(f"""{{ {'; printf %s "$D"; '.join(texts)}; }} > {where}""")
                lines += [f"chmod +x {where}"] if path.stat().st_mode & stat.S_IXUSR else []
    return "; ".join([*lines, *last])


def _referring(text: str) -> Callable[[Iterable[str]], bool]:
    """Return whether a text refers to the parts of a path; one without names refers to all."""
    words = _words(text)
    every = not words - {".", ".."} or "*" in text
    return lambda parts: every or not words.isdisjoint(parts)


def _words(text: str) -> set[str]:
    """Return the names in a path, or in the words of a command line."""
    return {w for sign in (r'[/\\"]| -> ', r"[\s/=<>|;&'\"]+") for w in re.split(sign, text) if w}


def _word(text: str) -> str:
    """Return a quoted word of a command line, with the root of the script filled in."""
    return placed(text, ROOT, '"$D/root"')


def opening(revision: str) -> Iterator[dict[str, Any]]:
    """Yield the messages that open a session; none in a revision without a handshake."""
    if not rev.is_modern(revision):
        opened = {"protocolVersion": revision, "capabilities": {}, "clientInfo": CLIENT}
        yield {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opened}
        yield {"jsonrpc": "2.0", "method": "notifications/initialized"}
