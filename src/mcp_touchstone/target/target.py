"""The server under test: its command, environment, folder and time limit. Starts no process."""

import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.bindings.declared import Declaration
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.catalog.sdk import Sdk
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.target import deny_list
from mcp_touchstone.target.promises import PromiseTerms, shown
from mcp_touchstone.transport.http_endpoint import PORT, Endpoint
from mcp_touchstone.transport.sandbox import Method

ROOT: Final = "{root}"
"""Replaced by the root of the server in a command, an environment value or ``--cwd``."""

PYTHON: Final = "{python}"
"""Replaced in a command by the interpreter that runs this program."""

CODE: Final = ("__main__.py", "package.json", "pyproject.toml")
"""Files at the top of a folder that an interpreter or a launcher runs."""

STARTUP: Final = 60.0
"""Limit in seconds for the first answer of a server; cold starts of ten and more are common."""


Arguments = Mapping[str, Any] | None
"""Arguments of a tool or prompt; None to have them generated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Calls, resources and prompts that the user allows, beside those that mcp-touchstone finds.

    Attributes:
        calls: tools that may be called, with arguments that work.
        resources: URIs that can be read.
        prompts: prompts that can be rendered, with arguments that work.
    """

    calls: tuple[tuple[str, Arguments], ...] = ()
    resources: tuple[str, ...] = ()
    prompts: tuple[tuple[str, Arguments], ...] = ()

    def words(self) -> list[str]:
        """Return them as the words of a command line."""
        found = []
        for option, things in (("--call", self.calls), ("--prompt", self.prompts)):
            for name, arguments in things:
                found += [option, name if arguments is None else f"{name}={json.dumps(arguments)}"]
        return found + [word for uri in self.resources for word in ("--resource", uri)]


def with_arguments(text: str) -> tuple[str, Arguments]:
    """Parse ``NAME={"json": "arguments"}``, or a name alone.

    Raises:
        ValueError: the text after the name is not a JSON object.
    """
    name, equals, rest = text.partition("=")
    if not equals:
        return text, None
    try:
        found = json.loads(rest)
    except ValueError:
        found = None
    if not name or not isinstance(found, dict):
        raise ValueError(f"""{text}: write NAME='{{"argument": "value"}}', or NAME alone""")
    return name, found


@dataclass(frozen=True, kw_only=True)
class Target:
    """A server under test.

    Attributes:
        command: program and arguments; ``{root}`` in them is replaced by the throw-away root; empty
            for a running server.
        url: its URL if it speaks HTTP, empty on stdio; ``{port}`` in it and in the command is
            replaced.
        headers: header of each HTTP request -> variable of our environment with its value.
        ca_file: certificates to accept beside those of the system.
        intrusive: whether malformed and heavy traffic may go to a server that runs on another
            machine.
        rate: greatest number of HTTP requests a second; 0 for the default.
        sdk: its SDK, as the user names it; None to look for it.
        env: variables added to ours; a value may contain ``{root}``.
        cwd: working folder, by default the user's; may contain ``{root}``.
        startup: limit for the first answer, in seconds.
        bundled: whether this is our own reference server.
        named: calls, resources and prompts that the user allows.
        promises: claims of the server, beside those that every server with a root makes.
        terms: promise -> its terms.
        seed: a folder whose content is copied into each root; None for none.
        world: the parent folder of the roots; None for the default.
        declarations: effects of its tools on files, as declared by the user.
        origin: words of a command line that select it, without values of a configuration; empty to
            list its settings instead.
        apart: words before the command that disable the network; empty for none.
        sandbox: method that isolates its processes from the user's files and processes; None for
            no sandbox.
        network: whether it can use the machine's network in a sandbox.
        unsafe: the reason why a required sandbox is missing; empty otherwise.
        wanted: the user's value of ``--sandbox``; empty if there was none.
    """

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    startup: float = STARTUP
    bundled: bool = False
    named: Named = Named()
    promises: frozenset[str] = frozenset()
    terms: Mapping[str, PromiseTerms] = field(default_factory=dict)
    declarations: tuple[Declaration, ...] = ()
    origin: tuple[str, ...] = ()
    seed: Path | None = None
    world: Path | None = None
    apart: tuple[str, ...] = ()
    sandbox: Method | None = None
    network: bool = False
    unsafe: str = ""
    wanted: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    ca_file: Path | None = None
    intrusive: bool = False
    rate: int = 0
    sdk: Sdk | None = None

    @property
    def transport(self) -> Transport:
        """The transport under test."""
        return Transport.HTTP if self.url else Transport.STDIO

    @property
    def endpoint(self) -> Endpoint:
        """Its HTTP endpoint."""
        return Endpoint(self.url, self.headers, self.ca_file)

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
        """Return the target with the port filled in."""
        number = str(port)
        return replace(
            self,
            url=self.url.replace(PORT, number),
            command=tuple(word.replace(PORT, number) for word in self.command),
            env={name: value.replace(PORT, number) for name, value in self.env.items()},
        )

    @property
    def guesses(self) -> bool:
        """Whether tools may be called that are neither named nor annotated read-only.

        A server with neither a sandbox nor a root of ours may change what belongs to the user.
        """
        return not self.unsafe and (self.sandbox is not None or self.rooted)

    @property
    def shelter(self) -> str:
        """Description of the sandbox for the user; empty if there is nothing to report."""
        if self.sandbox is not None:
            net = "with the network" if self.network else "without the network"
            return f"{self.sandbox}: only its own files and processes, {net}"
        if self.unsafe:
            return (
                f"none: {self.unsafe}; tools are called only if they are named or annotated "
                "read-only (--sandbox off calls the others too)"
            )
        return "off: the server can do all that you can" if self.wanted == "off" else ""

    @property
    def shown(self) -> str:
        """The command as a person would type it."""
        if self.bundled:
            return "(the bundled reference server)"
        words = [self.url] if self.url else []
        if self.url and self.command:
            words.append("--")
        return " ".join([*words, *map(shlex.quote, self.command)])

    def words(self) -> list[str]:
        """Return the words of a command line that selects this target again, in any environment."""
        if self.origin:
            return list(self.origin)
        if self.url and not self.command:
            return [*self.options(), self.url]
        command = [word.replace(PYTHON, sys.executable) for word in self.command]
        return [*self.options(), *(["--self"] if self.bundled else ["--", *command])]

    def options(self) -> list[str]:
        """Return its settings as options, without the defaults of the bundled server."""
        ours = reference() if self.bundled else Target(command=())
        env = {name: value for name, value in self.env.items() if ours.env.get(name) != value}
        calls = tuple(call for call in self.named.calls if call not in ours.named.calls)
        found = [word for name, value in env.items() for word in ("--env", f"{name}={value}")]
        if self.cwd is not None:
            found += ["--cwd", self.cwd]
        if self.seed is not None:
            found += ["--root-from", str(self.seed)]
        if self.world is not None:
            found += ["--world", str(self.world)]
        found += ["--offline"] if self.apart else []
        found += ["--sandbox", self.wanted] if self.wanted else []
        found += ["--online"] if self.network else []
        found += ["--http", self.url] if self.url and self.command else []
        for name, variable in self.headers.items():
            found += ["--header", f"{name}=env:{variable}"]
        found += [] if self.ca_file is None else ["--ca-file", str(self.ca_file)]
        found += ["--intrusive"] if self.intrusive else []
        found += ["--rate", str(self.rate)] if self.rate else []
        found += [] if self.sdk is None else ["--sdk", str(self.sdk)]
        found += replace(self.named, calls=calls).words()
        found += [word for one in self.declarations for word in ("--bindings", one.text)]
        for promise in sorted(self.promises - ours.promises):
            found += ["--promise", shown(promise, self.on(promise))]
        return found

    @property
    def rooted(self) -> bool:
        """Whether the command, the variables or the working folder name the throw-away root."""
        words = (*self.command, *self.env.values(), self.cwd or "")
        return any(ROOT in word for word in words)

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
        words = [str(Path(word).absolute()) if Path(word).is_file() else word for word in rest]
        return replace(self, command=(program, *words), cwd=ROOT)

    def on(self, promise: str) -> PromiseTerms:
        """Return the terms of a promise."""
        return self.terms.get(promise, PromiseTerms())

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

    def command_in(self, root: SafePath | Path) -> tuple[str, ...]:
        """The command with the root and the interpreter filled in."""
        words = (word.replace(ROOT, str(root)) for word in self.command)
        return (*self.apart, *(word.replace(PYTHON, sys.executable) for word in words))

    def cwd_in(self, root: SafePath | Path) -> str | None:
        """The working folder with the root filled in."""
        return None if self.cwd is None else self.cwd.replace(ROOT, str(root))

    def named_in(self, root: SafePath | Path) -> Named:
        """The named calls, resources and prompts with the root filled in."""
        return Named(
            calls=tuple(
                (name, replaced(given, ROOT, str(root))) for name, given in self.named.calls
            ),
            resources=tuple(uri.replace(ROOT, str(root)) for uri in self.named.resources),
            prompts=tuple(
                (name, replaced(given, ROOT, str(root))) for name, given in self.named.prompts
            ),
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
        return (own, *(path for path in named if path.is_dir()))


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
    if has_folder and Path(program).is_file():
        return (str(Path(program).absolute()), *command[1:])
    return command


ASKING: Final = Named(
    calls=(
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
)
"""Calls that make the reference server ask the client's model, and the user before it writes.

An insertion can be repeated: each call changes a file of the throw-away root.
"""


OWN: Final[Mapping[str, PromiseTerms]] = {
    "read-only": PromiseTerms(args=("--read-only",)),
    "dry-run": PromiseTerms(tools=("apply_cedarscript",)),
    "patch-only": PromiseTerms(tools=("file_apply_patch_only",)),
    "size-limit": PromiseTerms(args=("--max-file-size", "65536"), limit=65536),
    "read-limit": PromiseTerms(limit=500_000),
}
"""Promises of the reference server with terms, except its deny list."""


def reference(
    *,
    startup: float = STARTUP,
    env: Mapping[str, str] | None = None,
    named: Named = Named(),
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
        startup=startup,
        bundled=True,
        promises=frozenset({"audit", "deny-list", "redaction", "whole-writes", *OWN}),
        terms=OWN,
        named=replace(
            named, calls=named.calls + tuple(c for c in ASKING.calls if c not in named.calls)
        ),
    )
