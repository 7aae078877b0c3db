"""The server under test: its command, environment, folder and time limit. Starts no process."""

import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.runtime.disk_limit import DiskLimit
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.runtime.scratch import World
from mcp_touchstone.runtime.word_paths import names_file, names_folder
from mcp_touchstone.sandbox.sandbox import Method
from mcp_touchstone.target import deny_list
from mcp_touchstone.target.command_text import shown
from mcp_touchstone.target.minted import MintedTokens, filled
from mcp_touchstone.target.placeholders import Doubt, doubts
from mcp_touchstone.target.promises import PromiseTerms
from mcp_touchstone.target.server_settings import ServerSettings, words
from mcp_touchstone.target.values import Arguments
from mcp_touchstone.transport.http_endpoint import PORT, Endpoint
from mcp_touchstone.transport.tokens import AUTHORIZATION, CommandTokens, Tokens

ROOT: Final = "{root}"
"""Replaced by the root of the server in a command, an environment value or ``--cwd``."""

PYTHON: Final = "{python}"
"""Replaced in a command by the interpreter that runs this program."""

CODE: Final = ("__main__.py", "package.json", "pyproject.toml")
"""Files at the top of a folder that an interpreter or a launcher runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Calls, resources and prompts that the user allows; see ``ServerSettings``."""

    call: tuple[tuple[str, Arguments], ...] = ()
    resource: tuple[str, ...] = ()
    prompt: tuple[tuple[str, Arguments], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Target(ServerSettings):
    """A server under test: its settings, and what this machine makes of them.

    Attributes:
        without_network: words before the command that disable the network; empty for none.
        method: method that isolates its processes from the user's files and processes; None for
            no sandbox.
        unsafe: the reason why a required sandbox is missing; empty otherwise.
        starts: the program of a server of ours that it starts, for its sandbox.
        places: folders of ours with what changes while it runs, which it may read in its sandbox.
    """

    without_network: tuple[str, ...] = ()
    method: Method | None = None
    unsafe: str = ""
    starts: tuple[str, ...] = ()
    places: tuple[Path, ...] = ()

    @property
    def transport(self) -> Transport:
        """The transport under test."""
        return Transport.HTTP if self.url else Transport.STDIO

    @property
    def endpoint(self) -> Endpoint:
        """Its HTTP endpoint."""
        secrets = dict(self.header)
        if self.issuer or self.token_command:
            secrets[AUTHORIZATION] = f'(echo Bearer "$({self.token_command})")'  # for a shell
        return Endpoint(self.url, secrets, self.ca_file, self.tokens or Tokens())

    @property
    def tokens(self) -> Tokens | None:
        """Where its bearer tokens come from; None for nowhere but a header."""
        if self.issuer:
            return MintedTokens(self.url, " ".join(self.scope))
        if self.token_command or self.other_token_command:
            return CommandTokens(self.token_command, self.other_token_command)
        return None

    @property
    def started(self) -> bool:
        """Whether we start it."""
        return bool(self.command)

    @property
    def gentle(self) -> bool:
        """Whether to send only well-formed messages, few at a time: it belongs to somebody else."""
        return not (self.started or self.intrusive or self.endpoint.local)

    @property
    def revisions(self) -> tuple[str, ...]:
        """The revisions that its transport exists in, oldest first."""
        return rev.ALL if self.transport is Transport.STDIO else rev.since("2025-03-26")

    def on_port(self, port: int) -> "Target":
        """Return the target with the port filled in, and the URLs of its issuer."""
        number = str(port)
        url = self.url.replace(PORT, number)

        def fill(text: str) -> str:
            text = text.replace(PORT, number)
            return filled(text, url) if self.issuer else text

        return replace(
            self,
            url=url,
            command=tuple(map(fill, self.command)),
            env={name: fill(value) for name, value in self.env.items()},
        )

    @property
    def guesses(self) -> bool:
        """Whether tools may be called that are neither named nor annotated read-only.

        A server with neither a sandbox nor a root of ours may change what belongs to the user.
        """
        return not self.unsafe and (self.method is not None or self.rooted)

    def make_world(self) -> World:
        """Make a throw-away folder for its processes."""
        limit = DiskLimit(self.root_size)
        return World(self.world, seed=self.root_from, limit=limit)

    @property
    def shelter(self) -> str:
        """Description of the sandbox for the user; empty if there is nothing to report."""
        if self.method is not None:
            net = "with the network" if self.online else "without the network"
            return f"{self.method}: only its own files and processes, {net}"
        if self.unsafe:
            return (
                f"none: {self.unsafe}; tools are called only if they are named or annotated "
                "read-only (--sandbox off calls the others too)"
            )
        return "off: the server can do all that you can" if self.sandbox == "off" else ""

    @property
    def shown(self) -> str:
        """The command as a person would type it."""
        return shown(self.command, self.url, bundled=self.bundled)

    def words(self) -> list[str]:
        """Return the words of a command line that selects this target again, in any environment."""
        if self.origin:
            return list(self.origin)
        ours = reference() if self.bundled else Target()
        if self.url and not self.command:
            return [*words(replace(self, url=""), ours), self.url]
        command = [word.replace(PYTHON, sys.executable) for word in self.command]
        return [*words(self, ours), *(["--self"] if self.bundled else ["--", *command])]

    @property
    def rooted(self) -> bool:
        """Whether the command, the variables or the working folder name the throw-away root."""
        words = (*self.command, *self.env.values(), self.cwd or "")
        return any(ROOT in word for word in words)

    @property
    def has_files(self) -> bool:
        """Whether the user gave it files to attack, or said what its tools do with files."""
        return bool(self.rooted or self.bindings or self.root_from or self.world)

    @property
    def has_folder(self) -> bool:
        """Whether the user names a working folder, or the command or a variable names a folder.

        A folder with code may be the program itself, as in ``python FOLDER``.
        """
        _, *named = self.folders_in(Path())
        data = [path for path in named if not any((path / mark).exists() for mark in CODE)]
        return self.cwd is not None or bool(data)

    def inside(self) -> "Target":
        """Return the target with the throw-away root as its working folder, if it names no folder.

        The server then resolves relative paths in our root. Arguments that are files of the user's
        folder become absolute, so that the command still works.
        """
        if self.cwd is not None:
            return self
        program, *rest = absolute(self.command)
        words = [str(Path(word).absolute()) if names_file(word) else word for word in rest]
        return replace(self, command=(program, *words), cwd=ROOT)

    def on(self, promise: str) -> PromiseTerms:
        """Return the terms of a promise."""
        return self.promise.get(promise, PromiseTerms())

    @property
    def denied(self) -> deny_list.Denied:
        """Its deny list."""
        return deny_list.read(self.on("deny-list").deny)

    def under(self, promises: Iterable[str]) -> "Target":
        """Return the target with the words and variables that some promises need."""
        terms = [self.on(promise) for promise in sorted(promises)]
        words = [word for one in terms for word in one.args]
        env = {name: value for one in terms for name, value in one.env.items()}
        return replace(self, command=(*self.command, *words), env={**self.env, **env})

    @property
    def doubts(self) -> list[Doubt]:
        """The words in braces of its command and variables that we do not know."""
        return list(doubts((*self.command, *self.env.values(), self.cwd or "", self.url)))

    def command_in(self, root: SafePath | Path) -> tuple[str, ...]:
        """The command with the root and the interpreter filled in."""
        words = (word.replace(ROOT, str(root)) for word in self.command)
        return (*self.without_network, *(word.replace(PYTHON, sys.executable) for word in words))

    def cwd_in(self, root: SafePath | Path) -> str | None:
        """The working folder with the root filled in."""
        return None if self.cwd is None else self.cwd.replace(ROOT, str(root))

    def named_in(self, root: SafePath | Path) -> Named:
        """The named calls, resources and prompts with the root filled in."""
        return Named(
            call=tuple((name, replaced(given, ROOT, str(root))) for name, given in self.call),
            resource=tuple(uri.replace(ROOT, str(root)) for uri in self.resource),
            prompt=tuple((name, replaced(given, ROOT, str(root))) for name, given in self.prompt),
        )

    def env_in(self, root: SafePath | Path) -> dict[str, str]:
        """The extra variables with the root filled in."""
        return {name: value.replace(ROOT, str(root)) for name, value in self.env.items()}

    def folders_in(self, root: SafePath | Path) -> tuple[Path, ...]:
        """Return the working folder, and the folders that its arguments and variables name.

        A word may be a path, an option with a path, or several paths with separators.
        """
        words = [*self.command_in(root), *self.env_in(root).values()]
        parts = [part for word in words for part in re.split(f"[=,;{os.pathsep}]", word)]
        named = [Path(part) for part in parts if Path(part).is_absolute()]
        own = Path(self.cwd_in(root) or Path.cwd())
        return (own, *(path for path in named if names_folder(path)))


def replaced(value: Any, old: str, new: str) -> Any:
    """Return a JSON value with a text in its strings replaced by another."""
    if isinstance(value, Mapping):
        return {name: replaced(inner, old, new) for name, inner in value.items()}
    if isinstance(value, list):
        return [replaced(inner, old, new) for inner in value]
    return value.replace(old, new) if isinstance(value, str) and old else value


def absolute(command: tuple[str, ...]) -> tuple[str, ...]:
    """Make the path of the program absolute if it names a file and has a folder."""
    program = command[0]
    has_folder = os.sep in program or (os.altsep is not None and os.altsep in program)
    if has_folder and names_file(program):
        return (str(Path(program).absolute()), *command[1:])
    return command


ASKING: Final[tuple[tuple[str, Arguments], ...]] = (
    ("explain_error", {"error_message": "unknown tool", "ask_model": True}),
    (
        "text_editor",
        {
            "command": "insert",
            "path": "src/main.py",
            "insert_line": 0,
            "new_str": "# Agreed to by the user.\n",
        },
    ),
)
"""Calls that make the reference server ask the client's model, and the user before it writes.

An insertion can be repeated: each call changes a file of the throw-away root.
"""


OWN: Final[Mapping[str, PromiseTerms]] = {
    **dict.fromkeys(("audit", "deny-list", "redaction", "whole-writes"), PromiseTerms()),
    "read-only": PromiseTerms(args=("--read-only",)),
    "dry-run": PromiseTerms(tools=("apply_cedarscript",)),
    "patch-only": PromiseTerms(tools=("file_apply_patch_only",)),
    "size-limit": PromiseTerms(args=("--max-file-size", "65536"), limit=65536),
    "read-limit": PromiseTerms(limit=500_000),
}
"""Promises of the reference server."""


def reference(
    *,
    env: Mapping[str, str] | None = None,
    call: tuple[tuple[str, Arguments], ...] = (),
    **more: Any,
) -> Target:
    """Return the bundled reference server as a target, serving the throw-away root.

    Its options and calls make it send every kind of request to a client.
    """
    from mcp_touchstone.catalog.loader import home  # noqa: PLC0415  (only this target lives in a suite)

    return Target(
        command=(sys.executable, "-m", "reference_server", "--root", ROOT, "--confirm-writes"),
        env={
            "PYTHONPATH": str(home()),
            "PYTHONSAFEPATH": "1",
            "CEDARSCRIPT_STATE_KEY": "every process of a run shares this key",
            **(env or {}),
        },
        bundled=True,
        promise=OWN,
        call=call + tuple(one for one in ASKING if one not in call),
        **more,
    )
