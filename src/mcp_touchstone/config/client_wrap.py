"""Put the tap before the servers in a client's file, and take it out again. Pure.

Only the command and the arguments of a server change. Its own command is moved as it is written, so
that ``unwrapped`` restores the same text.
"""

import hashlib
import json
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.config.settings import ConfigError
from mcp_touchstone.config.spans import Node, parse

TAP: Final = ("-m", "mcp_touchstone", "tap", "--report")
"""The first arguments of a server behind the tap; the folder, ``--`` and its command follow."""

_OURS: Final = len(TAP) + 2
"""Number of arguments that are the tap's."""


@dataclass(frozen=True, slots=True)
class Form:
    """Where the files of a client have the commands of servers.

    Attributes:
        client: its name.
        source: its documentation.
        syntax: of the file, as ``spans.parse`` takes it.
        servers: the names that lead to the servers; ``*`` stands for each name.
        inner: the names that lead from a server to its command.
        command: the key of the program, or of the whole command if that is a list.
        args: the key of the arguments.
    """

    client: str
    source: str
    servers: tuple[str, ...]
    syntax: str = "json"
    inner: tuple[str, ...] = ()
    command: str = "command"
    args: str = "args"


FORMS: Final = (
    Form(
        "Claude Desktop, Cursor, Windsurf",
        "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
        ("mcpServers",),
    ),
    Form("Claude Code", "https://code.claude.com/docs/en/mcp", ("projects", "*", "mcpServers")),
    Form(
        "VS Code",
        "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
        ("servers",),
    ),
    Form("opencode", "https://opencode.ai/docs/mcp-servers", ("mcp",)),
    Form("opencode", "https://opencode.ai/v2/docs/mcp-servers", ("mcp", "servers")),
    Form("Zed", "https://zed.dev/docs/ai/mcp", ("context_servers",)),
    Form(
        "Zed",
        "https://zed.dev/docs/ai/mcp",
        ("context_servers",),
        inner=("command",),
        command="path",
    ),
    Form(
        "Codex",
        "https://github.com/openai/codex/blob/main/docs/config.md",
        ("mcp_servers",),
        syntax="toml",
    ),
    Form(
        "Goose",
        "https://block.github.io/goose/docs/guides/config-files",
        ("extensions",),
        syntax="yaml",
        command="cmd",
    ),
)

_SYNTAX: Final = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}

Edit = tuple[int, int, str]
"""Start and end of what is replaced, and the new text."""


@dataclass(frozen=True, slots=True)
class _Server:
    """A server in a file: the names that lead to it, and the place of its command."""

    path: tuple[str, ...]
    form: Form
    table: Node

    @property
    def name(self) -> str:
        """Its name."""
        return self.path[-1]

    @property
    def shown(self) -> str:
        """Its name, with that of its project."""
        pairs = zip(self.form.servers, self.path, strict=False)
        return " ".join([self.name, *(f"({one})" for part, one in pairs if part == "*")])

    @property
    def command(self) -> Node | None:
        """The place of its program, or of the whole command."""
        return self.table.members.get(self.form.command)

    @property
    def args(self) -> Node | None:
        """The place of its arguments; None if it has none, or they follow its program in a list."""
        return self.table.members.get(self.form.args)

    @property
    def words(self) -> list[str]:
        """The program and its arguments, as they are in the file.

        Raises:
            ValueError: they are of other types than strings and a list of strings.
        """
        command, args = self.command, self.args
        program = None if command is None else command.value
        words = program if isinstance(program, list) else [command]
        if args is not None and program is not words:
            if not isinstance(args.value, list):
                raise ValueError(f"{self.form.args} is not a list of strings")
            words = [*words, *args.value]
        found = [one.value for one in words if one is not None]
        if not found or not all(isinstance(word, str) for word in found):
            raise ValueError("its command and arguments are not all strings")
        return found

    @property
    def is_behind(self) -> bool:
        """Whether the tap is before it."""
        try:
            return tuple(self.words[1 : len(TAP) + 1]) == TAP and len(self.words) > _OURS + 1
        except ValueError:
            return False


def wrapped(text: str, where: str, name: str | None, report: Path) -> tuple[str, list[str]]:
    """Put the tap before one server, or before all that have a command.

    Args:
        text: the content of the file, without a byte order mark.
        where: name of the file, for messages; its suffix tells the syntax.
        name: name of the server; None for all.
        report: the folder of recordings; each server gets a folder of its own in it.

    Returns:
        the new content, and the names of the servers.

    Raises:
        ConfigError: there is no such server, or nothing to change, or the file cannot be edited.
    """
    chosen = _chosen(text, where, name)
    left = [one for one in chosen if not one.is_behind]
    names = Counter(one.name for one in _read(text, where))
    if not left:
        shown = ", ".join(one.shown for one in chosen)
        raise ConfigError(f"{where}: {shown}: behind the tap already; --unwrap takes it out")
    edits: list[Edit] = []
    for one in left:
        folder = str(report / _folder(one.path, plain=names[one.name] == 1))
        try:
            after = [sys.executable, *TAP, folder, "--", *one.words]
        except ValueError as error:
            raise ConfigError(f"{where}: {one.shown}: {error}; nothing was changed") from error
        edits += _put(text, one, after[: _OURS + 1])
    new = _edited(text, edits)
    if not _restores(new, text, where, left):
        raise ConfigError(f"{where}: it is written in a way that is not edited; {_paste(report)}")
    return new, [one.shown for one in left]


def unwrapped(text: str, where: str, name: str | None) -> tuple[str, list[str]]:
    """Take the tap out again; see ``wrapped``.

    Raises:
        ConfigError: there is no such server, or none is behind the tap.
    """
    behind = [one for one in _chosen(text, where, name) if one.is_behind]
    if not behind:
        raise ConfigError(f"{where}: {name or 'no server'}: not behind the tap")
    new = _edited(text, [edit for one in behind for edit in _take(text, one)])
    known = {one.path: one.words[_OURS + 1 :] for one in behind}
    for one in _read(new, where):
        if one.path in known and one.words != known[one.path]:
            raise ConfigError(f"{where}: {one.shown}: it was changed since; take the tap out there")
    return new, [one.shown for one in behind]


def _restores(new: str, text: str, where: str, left: list[_Server]) -> bool:
    """Return whether the tap is before the servers in a new text, and leaves the old one."""
    try:
        paths = {one.path: one.words for one in left}
        again = [one for one in _read(new, where) if one.path in paths]
        if any(one.words[_OURS + 1 :] != paths[one.path] for one in again):
            return False
        return _edited(new, [edit for one in again for edit in _take(new, one)]) == text
    except ValueError:
        return False


def _edited(text: str, edits: list[Edit]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


# --- one server


def _put(text: str, one: _Server, ours: list[str]) -> Iterator[Edit]:
    """Yield the edits that put words before its own."""
    command, args = one.command, one.args
    assert command is not None  # noqa: S101  (it has words)
    words = [_quoted(word) for word in ours]
    if command.items:
        at = command.items[0].start
        yield at, at, "".join(f"{word}, " for word in words)
        return
    program, *words = (*words, text[command.start : command.end])
    yield command.start, command.end, program
    if args is None:
        yield command.end, command.end, f"{_added(text, one)}{', '.join(words)}]"
    elif args.inline:
        at = args.start + 1
        yield at, at, ", ".join(words) + (", " if args.items else "")
    else:
        between = f"\n{' ' * _column(text, args.start)}"
        yield args.start, args.start, "".join(f"- {word}{between}" for word in words)


def _take(text: str, one: _Server) -> Iterator[Edit]:
    """Yield the edits that take the words of the tap away."""
    command, args = one.command, one.args
    assert command is not None  # noqa: S101  (it has words)
    if command.items:
        yield command.items[0].start, command.items[_OURS + 1].start, ""
        return
    assert args is not None  # noqa: S101  (it has more words)
    own, rest = args.items[_OURS], args.items[_OURS + 1 :]
    yield command.start, command.end, text[own.start : own.end]
    start, end = args.items[0].start, own.end
    if not rest and text.startswith(_added(text, one), command.end):
        start, end = command.end, args.end
    elif not rest:
        more = re.compile(r"\s*,").match(text, end)
        end = end if more is None else more.end()
    elif args.inline:
        end = end + 2 if text.startswith(", ", end) else rest[0].start
    else:
        start, end = args.start, text.rindex("-", end, rest[0].start)
    new = "[]" if not (rest or args.inline) else ""
    yield start, end, new


def _added(text: str, one: _Server) -> str:
    """Return the beginning of arguments that we add; nobody else writes its blanks like that."""
    command, args = one.command, one.form.args
    assert command is not None  # noqa: S101  (it has words)
    key = {"json": f'"{args}" : [', "toml": f"{args}  = [", "yaml": f"{args} : ["}[one.form.syntax]
    if one.table.inline:
        return f", {key}"
    line = text[text.rfind("\n", 0, command.start) + 1 : command.start]
    return f"\n{line[: len(line) - len(line.lstrip())]}{key}"


def _column(text: str, at: int) -> int:
    return at - text.rfind("\n", 0, at) - 1


def _quoted(word: str) -> str:
    """Return a string that JSON, TOML and YAML read alike."""
    text = json.dumps(word, ensure_ascii=False)
    return re.sub(r"[\x7f-\x9f\ufeff\ufffe\uffff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _folder(path: tuple[str, ...], *, plain: bool) -> str:
    """Return the folder of a server's recordings: no other server has it, in no file system.

    Args:
        plain: whether no other server of the file has this name.
    """
    if plain and re.fullmatch(r"[a-z0-9_-]{1,64}", path[-1]):
        return path[-1]
    digest = hashlib.sha256(json.dumps(path).encode()).hexdigest()[:16]
    return f"{re.sub('[^a-z0-9_-]', '_', path[-1].lower())[:40]}.{digest}"  # plain: without a dot


# --- the servers of a file


def _chosen(text: str, where: str, name: str | None) -> list[_Server]:
    """Return the servers with a command that have a name, or all."""
    servers = _read(text, where)
    if not servers:
        raise ConfigError(f"{where}: no server has a command; for a URL use `tap --listen`")
    chosen = [one for one in servers if name in {None, one.name}]
    if not chosen:
        known = list(dict.fromkeys(one.name for one in servers))
        raise ConfigError(
            f"{where}: no server with a command is called {name!r}{nearest(name or '', known)}; "
            f"it names {', '.join(known)}"
        )
    return chosen


def _read(text: str, where: str) -> list[_Server]:
    """Return the servers of a file that have a command."""
    syntax = _SYNTAX.get(PurePath(where).suffix.lower(), "json")
    top = parse(text, syntax, where, "nothing was changed")
    forms = [form for form in FORMS if form.syntax == syntax]
    tables = [(form, *one) for form in forms for one in _reached(top, form.servers)]
    if not tables:
        raise ConfigError(f"{where}: no known client has such a file; {_paste(Path('DIR'))}")
    found = []
    for form, above, table in tables:
        for name, server in table.members.items():
            for _, place in _reached(server, form.inner):
                command = place.members.get(form.command)
                if command is not None and not command.members:
                    found.append(_Server((*above, name), form, place))
    return found


def _reached(top: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Yield the mappings that a path leads to, with the names on the way."""
    if not path:
        if isinstance(top.value, dict):
            yield (), top
        return
    for name in top.members if path[0] == "*" else [path[0]]:
        if name in top.members:
            for names, found in _reached(top.members[name], path[1:]):
                yield (name, *names), found


def _paste(report: Path) -> str:
    known = ", ".join(dict.fromkeys(form.client for form in FORMS))
    words = shlex.join([sys.executable, *TAP, str(report / "NAME"), "--"])
    return f"known are those of {known}; write this before the command of a server: {words}"
