"""Reads the settings from the command line and the environment; arguments take precedence.

argparse is not used, because its import takes a fifth of the start-up time. An invalid value is
never ignored, and never means "no limit": the program reports it and does not start.
"""

from __future__ import annotations

import os

from ..protocol.errors import quote
from ..settings import DENIED, DENIED_FOR_WRITES, Settings
from .log import FORMATS, LEVELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeAlias

    Reader: TypeAlias = Callable[[str], Any]

MOST_BYTES = 1024**3
LARGEST_PAGE = 1000
STATE_KEY = "CEDARSCRIPT_STATE_KEY"
SHORTEST_KEY = 32

HELP = """\
usage: {program} [OPTION]...

An MCP server on standard input and output. It reads and edits the text files
below its roots, and no other files.

files:
  --root DIR             directory to serve; may be repeated; new files are made
                         in the first (default: the current directory)
  --read-only            write nothing
  --max-file-size BYTES  largest file to read or write (default: 10485760)
  --deny PATTERN         refuse matching paths and all paths below them, with
                         the patterns of .gitignore (.ssh, *.pem, private/**,
                         /build) without exceptions (!name); may be repeated;
                         added to .git, node_modules, __pycache__, .env and .vs
  --deny-write PATTERN   the same for writes only; added to bin and obj
  --no-default-deny      do not deny the default patterns
  --allow PATTERN        serve only files whose path or name matches (*.py,
                         docs/*); may be repeated

behaviour:
  --confirm-writes       ask the user before a file is overwritten or removed
  --text-editor=BOOL     whether to offer the tool text_editor (default: true)
  --page-size N          most entries in one page of a list (default: 100)
  --feature NAME         offer the extension skills or apps, or load the entry
                         point of this name in the group
                         mcp_touchstone.features of an installed package;
                         may be repeated; its code runs in this server
  --deprecated           offer logging in 2026-07-28, where it is deprecated, to
                         requests that opt in
  --max-line BYTES       longest message to accept (default: 16777216)

logs, on standard error:
  --log-level LEVEL      debug, info, warning, error or off (default: warning);
                         each write is logged at any level
  --log-format FORMAT    json or text (default: json)
  --verbose-log FILE     append every request and answer, with the contents of
                         files, to this file; it must be outside the roots

  -h, --help             show this help
  --version              show the version

A value may also follow a "=". Switches take true or false in this form too.

environment, used if the argument is not given:
  CEDARSCRIPT_ROOT           --root; separate several with "{separator}"
  CEDARSCRIPT_READ_ONLY      --read-only: true or false
  CEDARSCRIPT_MAX_FILE_SIZE  --max-file-size
  CEDARSCRIPT_LOG_LEVEL      --log-level
  CEDARSCRIPT_LOG_FORMAT     --log-format
  TEXT_EDITOR_MCP_ENABLED    --text-editor: true or false

environment only, because other users can see the arguments:
  CEDARSCRIPT_STATE_KEY      a secret of 32 characters or more; a process
                             continues requests of other processes that have it
  XDG_STATE_HOME             where the plans of unfinished edits are kept,
                             outside the roots (default: ~/.local/state)

exit status: 0 all requests were answered, 1 some were not, 2 the command line
or the environment is wrong, 130 interrupted
"""

_YES = ("true", "yes", "on", "1")
_NO = ("false", "no", "off", "0")


class UsageError(Exception):
    """An option or variable is invalid; the message names it and how to correct it."""


class _WrongError(Exception):
    """A reader rejects a value; the message describes the valid values."""


def read(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    given = _from_arguments(arguments)
    for variable, name in _VARIABLES.items():
        if variable in environment and name not in given:
            value = environment[variable]
            parts = value.split(os.pathsep) if name == "--root" else [value]
            given[name] = [(variable, part) for part in parts]
    _refuse_near_misses(environment)
    settings = Settings()
    if STATE_KEY in environment:
        settings.state_key = _secret(environment[STATE_KEY])
    bare = _last(given.pop("--no-default-deny", [])) or False
    settings.deny = () if bare else DENIED
    settings.deny_writes = () if bare else DENIED_FOR_WRITES
    for name, values in given.items():
        attribute = _ATTRIBUTES[name]
        if name not in _LISTS:
            setattr(settings, attribute, _last(values))
        else:
            before = getattr(settings, attribute) if name in ("--deny", "--deny-write") else ()
            setattr(settings, attribute, (*before, *_all(values)))
    return settings


_Given = dict[str, list[tuple[str, str]]]
"""Option -> its values, each with its source: an option or a variable."""


def _from_arguments(arguments: Sequence[str]) -> _Given:
    given: _Given = {}
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if name not in _READERS:
            raise UsageError(_unknown(word, name))
        if not equals:
            if name in _SWITCHES:
                value = "true"
            elif not words or words[0].startswith("--"):
                raise UsageError(f"{name} needs a value")
            else:
                value = words.pop(0)
        given.setdefault(name, []).append((name, value))
    return given


def _unknown(word: str, name: str) -> str:
    close = {_squashed(one): one for one in _READERS}.get(_squashed(name))
    if close:
        return f"unknown argument {quote(name)}; did you mean {close}?"
    if not word.startswith("-"):
        return f"unexpected argument {quote(word)}; a directory is given with --root"
    return f"unknown argument {quote(name)}; see --help"


def _refuse_near_misses(environment: Mapping[str, str]) -> None:
    """Reject misspelled variables, because CEDARSCRIPT_READONLY would have no effect."""
    ours = {_squashed(one): one for one in (*_VARIABLES, STATE_KEY)}
    for name in environment:
        meant = ours.get(_squashed(name))
        if meant and meant != name:
            raise UsageError(f"the variable {quote(name)} has no effect; did you mean {meant}?")


def _squashed(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def _all(values: list[tuple[str, str]]) -> list[Any]:
    read_values = []
    for source, value in values:
        name = _VARIABLES.get(source, source)
        try:
            read_values.append(_READERS[name](value))
        except _WrongError as wrong:
            raise UsageError(f"{source} {quote(value)}: {wrong}") from None
    return read_values


def _last(values: list[tuple[str, str]]) -> Any:
    return _all(values)[-1] if values else None


def _directory(value: str) -> str:
    if os.path.isdir(value):  # noqa: PTH112 - pathlib costs a third of the start-up
        if not os.access(value, os.R_OK | os.X_OK):
            raise _WrongError("this user may not list that directory; change its mode or the user")
        return value
    if "${" in value:
        raise _WrongError("the client has not filled in this variable; write the path itself")
    if value.startswith("~"):
        raise _WrongError("no shell has expanded the ~; write the whole path")
    if not value:
        raise _WrongError("write a directory, or leave the setting out")
    raise _WrongError("there is no such directory; write one that exists")


def _one_of(words: Sequence[str]) -> Reader:
    def read_word(value: str) -> str:
        if value.lower() not in words:
            raise _WrongError(f"write {', '.join(words[:-1])} or {words[-1]}")
        return value.lower()

    return read_word


def _number(most: int, unit: str) -> Reader:
    def read_number(value: str) -> int:
        digits = value.isascii() and value.isdigit() and len(value) <= len(str(most))
        if not digits or not 1 <= int(value) <= most:
            raise _WrongError(f"write a whole number of {unit} from 1 to {most}")
        return int(value)

    return read_number


def _truth(value: str) -> bool:
    if value.lower() not in _YES + _NO:
        raise _WrongError("write true or false")
    return value.lower() in _YES


def _entry(value: str) -> str:
    if value.startswith("!"):
        raise _WrongError("there are no exceptions here; write only patterns of what to refuse")
    first, *rest = parts = value.removesuffix("/").split("/")
    if not first and len(rest) == 1:
        parts = rest
    elif not first and any(rest):  # it may be meant as a path of the whole disk
        raise _WrongError("a pattern with a slash inside starts at the root; write no slash first")
    if (
        {"", ".", ".."} & set(parts)
        or value.startswith("~")
        or set(value) & set("\\\0{}")
        or not set(value) - set("*/")
    ):
        raise _WrongError("write a name or a pattern such as .git, *.pem or private/**")
    return value


def _pattern(value: str) -> str:
    if not value or value.startswith(("/", "./", "../")) or set(value) & set("\\\0"):
        raise _WrongError("write a pattern for a path relative to the root, such as docs/*.md")
    return value


def _feature(value: str) -> str:
    if not value or set(value) & set("[]=\0"):
        raise _WrongError("write the name of an entry point")
    return value


def _file(value: str) -> str:
    if not value or "\0" in value:
        raise _WrongError("write the path of a file")
    return value


def _secret(value: str) -> str:
    if len(value) < SHORTEST_KEY:  # the message must not contain the secret
        raise UsageError(f"{STATE_KEY}: write {SHORTEST_KEY} characters or more, made at random")
    return value


_READERS: dict[str, Reader] = {
    "--root": _directory,
    "--read-only": _truth,
    "--max-file-size": _number(MOST_BYTES, "bytes"),
    "--deny": _entry,
    "--deny-write": _entry,
    "--no-default-deny": _truth,
    "--deprecated": _truth,
    "--allow": _pattern,
    "--feature": _feature,
    "--confirm-writes": _truth,
    "--text-editor": _truth,
    "--page-size": _number(LARGEST_PAGE, "entries"),
    "--max-line": _number(MOST_BYTES, "bytes"),
    "--log-level": _one_of(LEVELS),
    "--log-format": _one_of(FORMATS),
    "--verbose-log": _file,
}
_ATTRIBUTES = {name: name[2:].replace("-", "_") for name in _READERS} | {
    "--root": "roots",
    "--deny-write": "deny_writes",
    "--feature": "features",
}
_LISTS = ("--root", "--deny", "--deny-write", "--allow", "--feature")
_SWITCHES = (
    "--read-only",
    "--no-default-deny",
    "--confirm-writes",
    "--text-editor",
    "--deprecated",
)
_VARIABLES = {
    "CEDARSCRIPT_ROOT": "--root",
    "CEDARSCRIPT_READ_ONLY": "--read-only",
    "CEDARSCRIPT_MAX_FILE_SIZE": "--max-file-size",
    "CEDARSCRIPT_LOG_LEVEL": "--log-level",
    "CEDARSCRIPT_LOG_FORMAT": "--log-format",
    "TEXT_EDITOR_MCP_ENABLED": "--text-editor",
}
