"""Turn a command line into settings, and settings into the arguments of a run."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp_touchstone.catalog.attack_level import Tier, tiers
from mcp_touchstone.catalog.clause import Level, nearest
from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.catalog.loader import BOTH, rows
from mcp_touchstone.config import files
from mcp_touchstone.config.settings import (
    SHARED_REPORTS,
    ConfigError,
    Layer,
    Settings,
    layer,
    merged,
)
from mcp_touchstone.engine.choice import EXAMPLES, Choice, UsageError
from mcp_touchstone.gate import FILE
from mcp_touchstone.parts import stepper
from mcp_touchstone.profiles.load import chosen
from mcp_touchstone.results.threshold import Floor
from mcp_touchstone.runtime import copy_root, no_network
from mcp_touchstone.runtime.input_file import InputFile
from mcp_touchstone.sandbox import sandbox
from mcp_touchstone.target import minted, values
from mcp_touchstone.target.placeholders import doubts
from mcp_touchstone.target.server_settings import ServerSettings, words
from mcp_touchstone.target.target import Target, absolute, reference
from mcp_touchstone.transport import logins
from mcp_touchstone.transport.http_endpoint import (
    PORT,
    Endpoint,
    EndpointError,
    check_certificates,
    values_of,
)
from mcp_touchstone.transport.tokens import AUTHORIZATION, CommandTokens

if TYPE_CHECKING:
    from mcp_touchstone.config.parser import CommandLine
    from mcp_touchstone.gate.baseline_file import Book

NAME: Final = "{target}"
"""Placeholder in the path of a report or baseline, replaced by the name of the target."""


# --- a command line


def settings(line: "CommandLine", environment: Mapping[str, str] = os.environ) -> list[Settings]:
    """Return the settings of each server that a command line names, at least one.

    Args:
        line: the command line; ``check`` accepts several targets, other commands accept one.
        environment: variables of the shell.

    Raises:
        ConfigError: no server is named, or its configuration cannot be used.
    """
    own = layer(vars(line.options))
    config, target = line.options.config, line.options.target
    several = line.options.subcommand == "check"
    is_of_gateway = line.options.subcommand == "gateway"
    if "bundled" in own:
        _refuse_beside_self(line)
        return [merged(own)]
    command = line.server
    if command is None and line.words and (scheme := _SCHEME.match(line.words[0])):
        if scheme[1].lower() not in {"http", "https"}:
            raise ConfigError(f"{line.words[0]}: scheme not supported; use http or https")
        return [_running(line, own)]
    if "url" in own and command is None and not line.words:
        return [merged(own)]
    names: list[str | None] = [target]
    if command is None and line.words:
        chosen = _targets(line.words, config)
        if chosen and target is not None:
            raise ConfigError(f"--target {target}: {line.words[0]} names a target too; keep one")
        if len(chosen) > 1 and not several:
            raise ConfigError(f"{line.options.subcommand} takes one target, not {len(chosen)}")
        command, names = (None, chosen) if chosen else (line.words, names)
    if command is not None and config is None:
        if target is not None:
            raise ConfigError(f"--target {target}: name the file that defines it with --config")
        return [merged(own, {"command": command})]
    if line.options.subcommand == "init" and config is None:
        raise ConfigError("init: write the command of your server after `--`")
    if command is None and several and names == [None]:
        path = config or files.present()
        names = [*(files.targets(path) if path else ())] or names
    own = own if command is None else {**own, "command": command}
    trusted = config is not None or bool(line.options.trust_config)
    asked = [
        files.ReadOptions(
            config, name, environment, own, trusted, "command" in own, others=is_of_gateway
        )
        for name in names
    ]
    found = [_configured(one) for one in asked]
    return with_own_files(found) if several else found


def client(line: "CommandLine", environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of the client that a command line or a configuration names.

    Raises:
        ConfigError: no client is named, or the configuration cannot be used.
    """
    own = dict(layer(vars(line.options)))
    command = line.server
    if steps := own.get("steps"):
        if command is not None:
            raise ConfigError("client: --steps and a command after `--`: keep one")
        each = ((stepper.STEP, one, *shlex.split(text)) for one, text in steps.items())
        command = (sys.executable, "-I", "-S", stepper.__file__, *chain.from_iterable(each))
    if command is not None:
        own["client"] = command
    config, target = line.options.config, line.options.target
    if line.words:
        raise ConfigError(f"client: write the command after `--`: client -- {line.words[0]}")
    found = None
    if command is None or config is not None or target is not None:
        trusted = config is not None or bool(line.options.trust_config)
        found = files.find(
            files.ReadOptions(config, target, environment, own, trusted, command=True)
        )
    if found is None and command is None:
        raise ConfigError(
            "client: write the command of the client after `--`, or client = [...] into "
            f"{files.FILE}"
        )
    if found is None:
        return of_client(merged(own))
    of_server = found.layer["command"] or found.layer.get("url")
    both = merged(found.layer, {"select": ()} if of_server else {}, own)
    if not both.client:
        raise ConfigError(f'{found.path}: it names no client; write client = ["program"]')
    return replace(of_client(both), origin=found.words)


def of_client(found: Settings) -> Settings:
    """Return the settings of a target for its client, with a name of its own."""
    return replace(found, name=f"{found.name}-client".strip("-"))


def gateway(line: "CommandLine") -> Settings:
    """Return the settings of the gateway that a command line or a configuration names.

    Raises:
        ConfigError: no gateway is named, or the configuration cannot be used.
    """
    named = line.server or line.words or "url" in vars(line.options) or line.options.config
    if not named and files.present() is None:
        raise ConfigError(
            "no gateway is named: write its command after `--` (gateway -- COMMAND {server}), or "
            f"gateway = [...] into {files.FILE}"
        )
    (found,) = settings(line)
    if found.client and not (found.gateway or found.command or found.url):
        raise ConfigError(
            f'{found.configuration}: it names no gateway; write gateway = ["program"]'
        )
    return of_gateway(found) if found.origin else found


def of_gateway(found: Settings) -> Settings:
    """Return the settings of a target for its gateway, with a name of its own beside a server."""
    if not found.gateway:
        return found
    name = f"{found.name}-gateway".strip("-")
    url, select = ("", ()) if found.command else (found.url, found.select)
    return replace(found, command=found.gateway, name=name, url=url, select=select)


def _running(line: "CommandLine", own: Layer) -> Settings:
    """Return the settings of a server that runs already."""
    url, *others = line.words
    if others or "url" in own or line.options.config or line.options.target:
        raise ConfigError(f"{url}: name one server; drop the other words or options that name one")
    try:
        return merged(own, {"url": values.url(url)})
    except EndpointError as error:
        raise ConfigError(str(error)) from error


def _refuse_beside_self(line: "CommandLine") -> None:
    options = line.options
    others = {
        "a command": line.server or line.words,
        "--config": options.config,
        "--target": options.target,
    }
    named = next((word for word, value in others.items() if value), "")
    if named:
        raise ConfigError(f"--self and {named} both name a server; keep one")


def _targets(words: Collection[str], config: Path | None) -> list[str | None]:
    """Return the targets that these words name; empty if the words are a command."""
    try:
        path = config or files.present()
        known = () if path is None else files.servers(path)
    except InputError:
        if config is None:
            return []
        raise
    asked = list(dict.fromkeys(words))
    wrong = [word for word in asked if word not in known]
    misspelt = len(asked) == 1 and "/" not in asked[0] and bool(nearest(asked[0], known))
    if wrong and (len(wrong) < len(asked) or misspelt):
        raise ConfigError(
            f"{path}: no target is called {wrong[0]!r}{nearest(wrong[0], known)}; it names "
            f"{', '.join(known)}; write a command after `--`"
        )
    return [] if wrong else [*asked]


def _configured(asked: files.ReadOptions) -> Settings:
    """Read a configuration and merge it with the options of the command line."""
    own, found = asked.own, files.find(asked)
    if found is None:
        raise ConfigError(
            f"no server is named, and there is no {files.FILE} here: write the command after `--` "
            f"(check -- COMMAND), or let `mcp-touchstone init -- COMMAND` write {files.FILE}; "
            "--self names the bundled reference server"
        )
    both = merged(found.layer, own)
    if "command" in own:
        return both
    return replace(both, origin=(*found.words, *words(merged(own))))


def with_own_files(found: list[Settings]) -> list[Settings]:
    """Insert the name of each target into the paths of its files.

    The name replaces ``{target}``. If several targets are checked, it is added to each path without
    ``{target}``, except to baselines and to reports that can hold several targets.

    Raises:
        ConfigError: two targets would share a baseline.
    """
    several = len(found) > 1
    placed = [_with_own_file(one, several=several) for one in found]
    books = [one.baseline for one in placed if one.baseline is not None and not one.no_baseline]
    shared = next((path for path in books if books.count(path) > 1), None)
    if shared is not None:
        raise ConfigError(f"several targets share the baseline {shared}; put {NAME} into its name")
    return placed


def _with_own_file(one: Settings, *, several: bool) -> Settings:
    def own(path: Path) -> Path:
        if several and NAME not in str(path):
            return path.with_name(f"{path.stem}-{one.name}{path.suffix}")
        return Path(str(path).replace(NAME, one.name))

    def report(word: str) -> str:
        kind, colon, path = word.partition(":")
        if not path or (kind in SHARED_REPORTS and NAME not in path):
            return word
        return f"{kind}{colon}{own(Path(path))}"

    return replace(
        one,
        json=one.json and own(one.json),
        attest=one.attest and own(one.attest),
        save=one.save and own(one.save),
        scripts=one.scripts and own(one.scripts),
        since=one.since and own(one.since),
        baseline=one.baseline and Path(str(one.baseline).replace(NAME, one.name)),
        report=tuple(map(report, one.report)),
    )


# --- the arguments of a run


def target(settings: Settings, *, explores: bool = False) -> Target:
    """Return the server to start.

    Args:
        explores: whether tools are called to find their effect on files, as in ``recon``.

    Raises:
        UsageError: the command or a folder cannot be used.
    """
    writes = settings.suite != "conformance"
    settings = _with_login(settings)
    texts = (*settings.command, *settings.env.values(), settings.cwd or "", settings.url)
    if wrong := next((one for one in doubts(texts) if one.refused), None):
        raise UsageError(str(wrong))
    _check_http(settings)
    if not settings.bundled and (settings.command or not settings.url):
        _refuse_quoted(settings.command)
    plain = _plain_target(settings)
    explores = explores and plain.rooted and not settings.bundled
    found = _sandboxed(plain, settings, writes or explores)
    if found.issuer and found.method is not None and not found.online:
        raise UsageError("--issuer: the sandbox keeps the server from it; add --online")
    return found


def client_target(settings: Settings) -> Target:
    """Return the client to start, with its sandbox.

    Raises:
        UsageError: the sandbox cannot be used.
    """
    plain = Target(
        command=absolute(settings.client),
        env=settings.env,
        cwd=settings.cwd,
        sandbox=settings.sandbox,
        online=settings.online,
        root_size=settings.root_size,
    )
    # A file may say that for its server, which has a sandbox where the client has none.
    online = settings.online and bool(settings.sandbox or not settings.origin)
    return _sandboxed(plain, replace(settings, offline=False, online=online), writes=False)


def gateway_target(settings: Settings) -> Target:
    """Return the gateway to start, or the URL of one that runs, with its sandbox.

    Raises:
        UsageError: the sandbox cannot be used.
    """
    given = ("url", "env", "cwd", "timeout", "sandbox", "online", "root_size")
    command = absolute(settings.command) if settings.command else ()
    plain = Target(command=command, **{name: getattr(settings, name) for name in given})
    if settings.sandbox not in {"", "off"} and not command:
        raise UsageError(f"--sandbox {settings.sandbox}: we did not start this gateway; drop it")
    return _sandboxed(plain, replace(settings, offline=False), writes=False)


def _with_login(settings: Settings) -> Settings:
    """Return the settings with the token of ``login``, if the server runs and no other is given."""
    given = [name for name in settings.header if name.lower() == AUTHORIZATION.lower()]
    if settings.command or not settings.url or settings.token_command or given:
        return settings
    if logins.read(settings.url) is None:
        return settings
    return replace(settings, token_command=logins.command(settings.url))


def _check_http(settings: Settings) -> None:
    """Check the options for servers that speak HTTP."""
    if not settings.url:
        for option, given in (
            ("--header", settings.header),
            ("--ca-file", settings.ca_file),
            ("--rate", settings.rate),
            ("--issuer", settings.issuer),
            ("--token-command", settings.token_command),
            ("--other-token-command", settings.other_token_command),
        ):
            if given:
                raise UsageError(f"{option} is for a server that speaks HTTP; name its URL")
        if any(PORT in word for word in (*settings.command, *settings.env.values())):
            raise UsageError(
                f"{PORT} is for a server that speaks HTTP; name its URL, such as "
                f"--http 'http://127.0.0.1:{PORT}/mcp'"
            )
        return
    if settings.bundled:
        raise UsageError("--self speaks stdio; drop --http")
    elsewhere = not (settings.command or settings.intrusive or Endpoint(settings.url).local)
    if settings.suite != "conformance" and elsewhere:
        raise UsageError(
            f"--suite {settings.suite}: attacks a server of somebody; --intrusive allows that"
        )
    if PORT in settings.url and not settings.command:
        raise UsageError(f"{settings.url}: {PORT} is for a server that we start; add -- COMMAND")
    if settings.offline:
        raise UsageError("--offline would keep us from a server that speaks HTTP; --sandbox works")
    if settings.sandbox not in {"", "off"} and not settings.command:
        raise UsageError(f"--sandbox {settings.sandbox}: we did not start this server; drop it")
    if settings.ca_file is not None:
        pem = InputFile(settings.ca_file, "--ca-file needs certificates in PEM", most=1 << 24)
        check_certificates(pem.text(), f"--ca-file {settings.ca_file}")
    values_of(settings.header, os.environ)
    _check_tokens(settings)


def _check_tokens(settings: Settings) -> None:
    """Check the options for bearer tokens, and that there are tokens."""
    own = [name for name in settings.header if name.lower() == AUTHORIZATION.lower()]
    sources = {
        "--issuer": settings.issuer,
        "--token-command": settings.token_command,
        "--header Authorization": own,
    }
    given = [option for option, value in sources.items() if value]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} both give a token; keep one")
    if settings.scope and not settings.issuer:
        raise UsageError("--scope is for the tokens of --issuer")
    if not settings.issuer:
        tokens = CommandTokens(settings.token_command, settings.other_token_command)
        tokens.own()
        tokens.other()
        return
    if settings.other_token_command:
        raise UsageError("--issuer has another user already; drop --other-token-command")
    if not settings.command:
        raise UsageError("--issuer is for a server that we start; add -- COMMAND")
    minted.check_placeholders((*settings.command, *settings.env.values()))
    minted.issuer()


_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

_OF_OURS: Final = (
    "env",
    "timeout",
    "call",
    "resource",
    "prompt",
    "root_from",
    "world",
    "offline",
    "sandbox",
    "online",
)
"""Settings that the bundled server takes."""


def _plain_target(settings: Settings) -> Target:
    given = {one.name: getattr(settings, one.name) for one in fields(ServerSettings)}
    given |= {"root_from": _root_from(settings), "world": _world(settings)}
    if settings.bundled:
        return reference(**{name: given[name] for name in _OF_OURS})
    return Target(**{**given, "command": settings.command and absolute(settings.command)})


def _sandboxed(found: Target, settings: Settings, writes: bool) -> Target:
    """Return a copy of a target with the sandbox for its processes."""
    word = settings.sandbox or ("auto" if writes and found.started else "off")
    if settings.online and settings.offline:
        raise UsageError("--online excludes --offline; drop one")
    if word == "off" and settings.online:
        raise UsageError("--online: without --sandbox the server has the network anyway")
    attacks_commands = writes and settings.attack_commands
    if word == "off" and attacks_commands:
        raise UsageError("--attack-commands requires a sandbox; drop --sandbox off")
    if word == "off":
        return replace(found, without_network=_without_network(settings))
    method, why = sandbox.choose(word)
    if method is None and attacks_commands:
        raise UsageError(f"--attack-commands requires a sandbox: {why}")
    if method is None and word != "auto":
        raise UsageError(f"--sandbox {word}: {why}")
    if method is None:
        return replace(found, without_network=_without_network(settings), unsafe=why)
    return replace(found, method=method)


def _refuse_quoted(command: tuple[str, ...]) -> None:
    """Check that the command is not quoted as a single word, as in ``-- "node dist/index.js"``."""
    program = command[0]
    if len(command) == 1 and len(program.split()) > 1 and not shutil.which(program):
        raise UsageError(
            f"there is no program {program!r}; write the command without quotes: -- {program}"
        )


def _without_network(settings: Settings) -> tuple[str, ...]:
    if not settings.offline:
        return ()
    try:
        return no_network.way()
    except no_network.OfflineError as error:
        raise UsageError(f"--offline: {error}") from error


def _root_from(settings: Settings) -> Path | None:
    """Return the folder that is copied into each root; None if none was named."""
    folder = settings.root_from
    if folder is None:
        return None
    try:
        copy_root.check(folder)
    except (copy_root.SeedError, OSError) as error:
        raise UsageError(f"--root-from: {error}") from error
    return folder.absolute()


def _world(settings: Settings) -> Path | None:
    """Return the folder in which roots are created; None if none was named."""
    if settings.world is not None and not settings.world.is_dir():
        raise UsageError(f"--world: {settings.world} is not a folder")
    return None if settings.world is None else settings.world.resolve()


def choice(settings: Settings, environment: Mapping[str, str] = os.environ) -> Choice:
    """Return the choice of checks and limits for a run.

    Raises:
        UsageError: words of ``--fail-on`` are unknown or exclude each other, or no client is named.
    """
    found = floor(settings.fail_on)
    if found.profile and not settings.for_:
        raise UsageError("--fail-on profile: name the clients with --for")
    refuse_quick_attacks(quick=settings.quick, suite=settings.suite)
    usual = CI_DEADLINE if environment.get("CI") else 0.0
    return Choice(
        select=settings.select,
        revisions=settings.revision,
        levels=tuple(level for level in Level if level.value.split()[0] in settings.level),
        strict=settings.strict,
        jobs=settings.jobs,
        examples=EXAMPLES if settings.examples is None else settings.examples,
        seed=settings.seed,
        quick=settings.quick,
        calls=bool(settings.call),
        floor=found,
        clients=chosen(settings.for_),
        tiers=tiers((*settings.attacks, *[Tier.COMMANDS] * settings.attack_commands)),
        accept_unbound=settings.accept_unbound,
        deadline=usual if settings.deadline is None else settings.deadline,
    )


def refuse_quick_attacks(*, quick: bool, suite: str) -> None:
    """Check that a quick run leaves something to judge.

    Raises:
        UsageError: only attacks are chosen.
    """
    if quick and suite == "security":
        raise UsageError("--quick leaves out all attacks; drop it, or --suite security")


CI_DEADLINE: Final = 1200.0
"""Limit of a whole run in seconds if CI is set and no limit was given."""


def floor(words: Iterable[str]) -> Floor:
    """Return the lowest severities that fail a run, from words of ``--fail-on``.

    Raises:
        UsageError: the words are unknown or exclude each other.
    """
    try:
        return Floor.read(words)
    except ValueError as error:
        raise UsageError(f"--fail-on: {error}") from error


def book(settings: Settings) -> "Book | None":
    """Return the baseline; None if there is none.

    The bundled server has a baseline only if one is named or updated.

    Raises:
        UsageError: options exclude each other.
        BaselineError: the file cannot be read, is invalid, or was named and does not exist.
    """
    if settings.no_baseline:
        if settings.baseline or settings.update_baseline:
            raise UsageError("--no-baseline excludes --baseline and --update-baseline; drop one")
        return None
    if settings.bundled and not settings.baseline and not settings.update_baseline:
        return None
    usual = settings.usual_baseline or Path(FILE)
    if settings.baseline is None and not settings.update_baseline and not usual.exists():
        return None
    from mcp_touchstone.gate import baseline_file  # noqa: PLC0415  (only if there is one)

    return baseline_file.find(
        settings.baseline,
        usual,
        lambda: rows(BOTH),
        update=settings.update_baseline,
    )
