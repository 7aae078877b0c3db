"""The script of a finding around what it says: trees, the server as it was started, a look. Pure.

It makes a folder of its own, puts into it what the lines speak of, starts the server in it with
the words, variables and folder it had, and shows what it answered and what is not as it was.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from mcp_touchstone import __version__
from mcp_touchstone.bindings.canary import MARK, NAME_MARK, Area
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.runtime.secrets import secrets
from mcp_touchstone.security import line_payloads
from mcp_touchstone.security.fixture_tree import GIT, VARIABLE, FixtureTree
from mcp_touchstone.security.payload import CANARY
from mcp_touchstone.security.targeting import FILE
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.transport.sandbox import Method, Sandbox, bubblewrap

PLACE: Final = "@D@"
"""Stands for the folder of the script in the lines it sends."""

CLIENT: Final = {"name": "mcp-touchstone", "version": __version__}
PATIENCE: Final = 5
"""Seconds the server has to answer: after that nobody waits for it any more."""

_ANSWERED_BY: Final = (
    'answered() { N=0; until grep -Eqs "\\"id\\": ?$1[,}]|^it ended" "$D.said"'
    f" || [ $N -ge {PATIENCE}0 ]; do sleep 0.1; N=$((N+1)); done; }}"
)
"""Waits for the answer to an id, for the end of the server, or till nobody waits any more."""

_EACH: Final = 'for T in {}; do rm -f "$D.said" "$D.pid"'

PID: Final = "$D.pid"
"""Where the number of the process is, if it is asked for."""

FOUND: Final = "$D.found"
"""Where a line of a shell between calls says what it found."""

SHOWN: Final = 4000
"""Bytes of its answers that are shown, the last ones."""

LARGEST: Final = 4096
"""Bytes of a file that is written into a script."""

_COMMITTED: Final = (
    'for R in "$D"/*/; do case "$R" in "$D/home/" | "$D/tmp/") continue ;; esac',
    '(cd "$R" && git init -q -b main && git add -A',
    'git -c user.name=x -c user.email=x@localhost commit -qm "$(ls)"',
    'for F in mcpname-*; do [ ! -e "$F" ] || echo changed > "$F"; done); done',
)
"""Makes the folders repositories that name their files in log, status and diff, with git itself."""

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
"""What a sandboxed server gets of the variables of who runs the script."""

_FACTS: Final = "-type f -exec cksum {} + -o -print | sort"
_OUTSIDE: Final = (
    r'outside() { cd "$D" && find . \( -path ./root -o -path ./tmp -o '
    rf"-path './home/*' ! -name {CANARY} \) -prune -o {_FACTS}; }}"
)
"""What lies around the root; its home and its temporary folder are its own, but for our file."""

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
    """Where something was found.

    Attributes:
        field: the trees.
        target: the server, as it was started.
        revision: which is spoken.
        denies: whether it is about what a deny list names.
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
        """Write the script. It exits with 1 if it finds the effect, 0 if not, 2 without an answer.

        Args:
            text: what was sent: what it speaks of is made.
            said: shell commands that write the lines.
            waits: id of the last question: its answer is waited for.
            judged: whether that answer must not fail to come.
            still: whether nothing in the root may change.
            forged: whether answers to ``inner-`` ids must not come.
            tries: how often all is said, to a new process each, until a line of it finds something.
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
            # Small letters alone, as in our own fields: some servers fold what they are told.
            'D=${TMPDIR:-/tmp}/mcp-touchstone-$$; mkdir -m 700 "$D" || exit',
            'D=$(cd "$D" && pwd -P)',
            *self._tree(text),
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
        """Give a pattern of what the deny list has; a repository of the server's own is its own."""
        denied = self.field.denied
        names = {one.example for one in (*denied.entries, *denied.written)}
        names -= {GIT} if self.field.is_repository else set()
        return "|".join(sorted(map(re.escape, names)))

    def _started(self, *, tracked: bool) -> str:
        """Give the server as it was started: folder, variables, words; its number, if tracked."""
        hidden = {name for name, _ in secrets(self.target.env)}
        env = [
            f'"{name}=${{{name}?as it was when this was found}}"'
            if name in hidden
            else _word(f"{name}={value}")
            for name, value in self.target.env.items()
        ]
        variable = f"{VARIABLE}={self.field.variable.token}"
        words = [*self.target.apart, *self.target.command]
        within = "" if self.target.cwd is None else f"cd {_word(self.target.cwd)} && "
        inherits = "env" if self.sandbox is None else f"env -i {_INHERITED}"
        ours = f'{inherits} HOME="$D/home" TMPDIR="$D/tmp" {variable}'
        first = [f'sh -c \'echo $$ > "$0"; exec "$@"\' "{PID}"'] if tracked else []
        started = " ".join([ours, *env, *map(_word, words)])
        if self.sandbox is not None:
            within += f'set -- {started}; {_IF_WANTED} || set -- {self._shelter()} -- "$@"; '
            started = '"$@"'
        return f'({within}{" ".join([*first, started])}; echo "it ended with status $?")'

    def _shelter(self) -> str:
        """Give the words of bubblewrap for the folder of the script."""
        assert self.sandbox is not None  # noqa: S101  (else nobody asks)
        _, *words = bubblewrap(replace(self.sandbox, method=Method.BWRAP))
        ours = str(self.field.path)
        shown = ('"$D"' if word == ours else shlex.quote(word) for word in words)
        return " ".join(["bwrap", "--die-with-parent", *shown])

    # --- trees

    def _tree(self, text: str) -> Iterator[str]:
        """Give the commands that make the root, what the text speaks of, and what lies outside."""
        yield 'mkdir -p "$D/root/dir/sub/deep" "$D/home" "$D/tmp"'
        if self.target.seed is not None:
            yield f'cp -R {shlex.quote(str(self.target.seed.absolute()))}/. "$D/root"'
        plain = self.field.root / FILE
        yield f"printf '{line_payloads.word(self.field.content(plain))}' > \"$D/root/{FILE}\""
        for canary in self.field.canaries.planted:
            where = Path(canary.where)
            if canary.area is not Area.OUTSIDE:
                continue
            if canary.is_name:
                if where.parent.name in {"outside", *_words(text)}:
                    yield from _made(where, "touch ")
            elif {where.parts[0]} & {"outside", self.field.home.name} or where.parts[0] in text:
                lines = " ".join(map(shlex.quote, canary.content.splitlines()))
                yield from _made(where, f'printf "%s\\n" {lines} > ')
        for path in sorted(self._files(text)):
            made = line_payloads.word(path.read_bytes())
            yield from _made(path.relative_to(self.field.path), f"printf '{made}' > ")
        for link, target in sorted(self._links(text).items()):
            there = target.replace(str(self.field.path), "$D")
            yield f'mkdir -p "$D/root"/{shlex.quote(Path(link).parent.as_posix())}'
            yield f'ln -s "{there}" "$D/root"/{shlex.quote(link)}'

    def _met(self, text: str) -> Iterator[Path]:
        """Walk what of the root a text may meet: all of it, where it names nothing."""
        words = _words(text)
        every = not words - {".", ".."} or "*" in text
        for path in self.field.root.rglob("*"):
            if every or words & {*path.relative_to(self.field.root).parts}:
                yield path

    def _files(self, text: str) -> Iterator[Path]:
        own = self.field.root / GIT
        for path in self._met(text):
            if path.is_symlink() or not path.is_file() or path == self.field.root / FILE:
                continue
            if self.field.is_repository and path.is_relative_to(own):
                continue
            if path.stat().st_size <= LARGEST:
                yield path

    def _links(self, text: str) -> dict[str, str]:
        """Give the links of the root that a text may meet, and those these lead to."""
        found: dict[str, str] = {}
        for here in self._met(text):
            while here.is_symlink() and here.is_relative_to(self.field.root):
                name = here.relative_to(self.field.root).as_posix()
                if name in found:
                    break
                found[name] = str(here.readlink())
                here = Path(str(here.parent / here.readlink()))  # noqa: PLW2901
        return found


def _made(where: Path, command: str) -> Iterator[str]:
    """Give the commands that make a file below the parent, and its folder."""
    yield f'mkdir -p "$D"/{shlex.quote(where.parent.as_posix())}'
    yield f'{command}"$D"/{shlex.quote(where.as_posix())}'


def _words(text: str) -> set[str]:
    return {word for word in re.split(r'[/\\"]| -> ', text) if word}


def _word(text: str) -> str:
    """Write a word of a command line, with the root of the script in it."""
    return '"$D/root"'.join(shlex.quote(part) if part else "" for part in text.split(ROOT)) or "''"


def opening(revision: str) -> Iterator[dict[str, Any]]:
    """Give the messages that open a session; none in a revision without."""
    if not rev.is_modern(revision):
        opened = {"protocolVersion": revision, "capabilities": {}, "clientInfo": CLIENT}
        yield {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opened}
        yield {"jsonrpc": "2.0", "method": "notifications/initialized"}
