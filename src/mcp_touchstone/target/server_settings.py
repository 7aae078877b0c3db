"""The settings that say how one server is started and what may be used of it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp_touchstone.target import values
from mcp_touchstone.target.option import ANY, LEAVES, RUN, START, OptionType, Risk, option, options
from mcp_touchstone.target.values import Arguments

if TYPE_CHECKING:
    from mcp_touchstone.bindings.declared import Declaration
    from mcp_touchstone.catalog.sdk import Package
    from mcp_touchstone.target.promises import PromiseTerms

STARTUP: Final = 60.0
"""Limit in seconds for the first answer of a server; cold starts of ten and more are common."""

PROMISES: Final = "promises of the server"
HOW: Final = "how the server is run"
USED: Final = "tools, resources and prompts that may be used"


_run: Final = partial(option, group=HOW)
_start: Final = partial(option, group=HOW, commands=START)
_use: Final = partial(option, group=USED)


def _uses(uses: Iterable[tuple[str, Arguments]]) -> list[str]:
    return [name if given is None else f"{name}={json.dumps(given)}" for name, given in uses]


def _reaches_another(url: str, *_: object) -> bool:
    """Return whether a URL may be that of a server that we did not start."""
    from mcp_touchstone.transport.http_endpoint import Endpoint  # noqa: PLC0415  (only if it is read)

    one = Endpoint(url)
    return not one.local or any(one.on(port).port != port for port in (1, 2))


def _is_large(size: int, *_: object) -> bool:
    from mcp_touchstone.runtime.disk_limit import MIB  # noqa: PLC0415  (only if it is read)

    return size > MIB


_ELSEWHERE: Final = Risk(
    "a URL that is not on the loopback interface or has no `{port}`: we may not have started it",
    _reaches_another,
)
_LARGE: Final = Risk("more than the default", _is_large)
_OFF: Final = Risk("`off`", lambda method, *_: method == "off")
_SETS_VARIABLES: Final = Risk(
    "terms with `env`", lambda promises, *_: any(terms.env for terms in promises.values())
)


def _promises(promises: "Mapping[str, PromiseTerms]") -> list[str]:
    from mcp_touchstone.target.promises import shown  # noqa: PLC0415  (only if one is given)

    return [shown(name, promises[name]) for name in sorted(promises)]


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """How one server is started, and what the user says about it.

    Attributes:
        command: program and arguments; ``{root}`` in them is replaced by the throw-away root; empty
            for a running server.
        origin: words of a command line that select the server, without values of a configuration;
            empty to list its settings instead.
    """

    command: tuple[str, ...] = ()
    origin: tuple[str, ...] = ()
    bundled: bool = option(
        "use the bundled reference server",
        names=("--self",),
        commands=("check", "recon", "golden", "load", "bridge"),
        in_files=False,
    )
    url: str = _run(
        "the server after `--` speaks HTTP at this URL; {port} is replaced in both by a port that "
        "we choose: --http 'http://127.0.0.1:{port}/mcp' -- ./server --port {port}",
        "URL",
        values.url,
        default="",
        names=("--http", "--url"),
        commands=(*RUN, "gateway"),
        in_pytest=True,
        risk=_ELSEWHERE,
    )
    header: Mapping[str, str] = _run(
        "send this header with each HTTP request; its value is read from a variable; repeatable",
        "NAME=env:VARIABLE",
        values.header,
        kind=OptionType.TABLE,
        in_pytest=True,
        write=lambda found: [f"{name}=env:{variable}" for name, variable in found.items()],
        risk=ANY,
    )
    issuer: str = _run(
        "give the server an authorization server of ours, and use its tokens: `mock`; {issuer}, "
        "{jwks} and {audience} are replaced in the command and in --env",
        "mock",
        values.issuer,
        default="",
        in_pytest=True,
    )
    scope: tuple[str, ...] = _run(
        "a scope of the tokens of --issuer; repeatable",
        "NAME",
        values.scope,
        kind=OptionType.TEXTS,
        in_pytest=True,
    )
    token_command: str = _run(
        "send the bearer token that this command prints; it is run again before the token expires",
        "COMMAND",
        default="",
        in_pytest=True,
        risk=ANY,
    )
    other_token_command: str = _run(
        "a command that prints the token of another user, who must not reach what is the first's",
        "COMMAND",
        default="",
        in_pytest=True,
        risk=ANY,
    )
    ca_file: Path | None = _run(
        "accept the certificates of this file too, for https", "FILE", Path, risk=ANY
    )
    intrusive: bool = _run(
        "send malformed and heavy traffic also to a server on another machine, which we did not "
        "start",
        risk=ANY,
    )
    rate: int = _run(
        "HTTP requests a second at most (default: 5 to a server on another machine that we did not "
        "start, else no limit)",
        "N",
        values.whole(1, values.MOST_REQUESTS),
        kind=OptionType.NUMBER,
        default=0,
        risk=ANY,
    )
    sdk: "Package | None" = _run(
        "the SDK that the server is built on, where its files do not show it (a bundle, a "
        "container, a URL): 'mcp 1.30.0'",
        "'NAME VERSION'",
        values.sdk,
    )
    env: Mapping[str, str] = _start(
        "set a variable for the server; its HOME is a throw-away folder (with `bridge`, yours) "
        "unless you set it here; repeatable",
        "NAME=VALUE",
        values.variable,
        kind=OptionType.TABLE,
        write=lambda found: [f"{name}={value}" for name, value in found.items()],
        risk=ANY,
        commands=(*START, "gateway"),
    )
    cwd: str | None = _start(
        "working folder of the server; {root} is replaced in it",
        "DIR",
        risk=LEAVES,
        commands=(*START, "gateway"),
    )
    root_from: Path | None = _start(
        "copy this folder into each throw-away {root}; the folder itself is not changed",
        "DIR",
        Path,
        risk=LEAVES,
    )
    world: Path | None = _start(
        "make each throw-away {root} in this folder, for servers that refuse the usual one",
        "DIR",
        Path,
        risk=LEAVES,
    )
    root_size: int = _run(
        "end the server, client or gateway when it has written this much to its throw-away "
        "folders (default: 1024); they may have a file for each 8 KiB of it",
        "MIB",
        values.whole(1, values.MOST_MIB),
        kind=OptionType.NUMBER,
        default=0,
        in_pytest=True,
        commands=(*RUN, "fleet", "client", "gateway"),
        risk=_LARGE,
    )
    offline: bool = _start("start the server without any network, loopback included (Linux)")
    sandbox: str = _run(
        "keep the server, client or gateway from your files, your processes and the network "
        "(Linux): auto, unshare, bwrap or off; auto where tools that may write are called, off "
        "otherwise",
        "NAME",
        values.sandbox,
        default="",
        complete=lambda: values.SANDBOXES,
        in_pytest=True,
        commands=(*RUN, "client", "gateway", "tap"),
        risk=_OFF,
    )
    online: bool = _run(
        "leave it the network in its sandbox",
        in_pytest=True,
        commands=(*RUN, "client", "gateway", "tap"),
        risk=ANY,
    )
    timeout: float = _start(
        "limit for the first reply (default 60); later limits adapt to the server",
        "SECONDS",
        values.seconds,
        kind=OptionType.NUMBER,
        default=STARTUP,
        in_pytest=True,
        commands=(*START, "gateway"),
    )
    call: tuple[tuple[str, Arguments], ...] = _use(
        "allow calls of a tool that is not annotated read-only, best with arguments that work: "
        """NAME='{"json": "arguments"}'; {root} is replaced in them; repeatable""",
        "NAME={...}",
        values.use,
        kind=OptionType.USES,
        write=_uses,
        in_pytest=True,
    )
    prompt: tuple[tuple[str, Arguments], ...] = _use(
        "a prompt with arguments that work; repeatable",
        "NAME={...}",
        values.use,
        kind=OptionType.USES,
        write=_uses,
        in_pytest=True,
    )
    resource: tuple[str, ...] = _use(
        "a resource that can be read; repeatable", "URI", kind=OptionType.TEXTS, in_pytest=True
    )
    promise: "Mapping[str, PromiseTerms]" = option(
        "a guarantee the server makes, for the security suite. Staying inside {root} is always "
        "tested; a violation of a guarantee that is not listed is only a note. With terms: "
        """NAME='{"args": [words added to the command], "limit": N, "deny": [names]}'. """
        "Repeatable:",
        "NAME",
        values.promise,
        kind=OptionType.PROMISES,
        write=_promises,
        complete=values.promises,
        group=PROMISES,
        commands=("check", "golden"),
        in_pytest=True,
        risk=_SETS_VARIABLES,
    )
    bindings: "tuple[Declaration, ...]" = _use(
        "which tool reads or writes files, where that is not detected: "
        """read='{"tool": "get", "path": "name"}'; verified before use; repeatable""",
        "OPERATION={...}",
        values.binding,
        kind=OptionType.BINDINGS,
        write=lambda found: [one.text for one in found],
    )


SERVER_OPTIONS: Final = options(ServerSettings)
"""Field of ``ServerSettings`` -> its option."""


def words(one: ServerSettings, ours: ServerSettings | None = None) -> list[str]:
    """Return settings as options of a command line, except those that ``ours`` has too.

    The limit for the first reply is left out: it changes no verdict of a server that answers.
    """
    ours = ours or ServerSettings()
    found: list[str] = []
    for name, row in SERVER_OPTIONS.items():
        value, usual = getattr(one, name), getattr(ours, name)
        if isinstance(value, Mapping):
            value = {key: inner for key, inner in value.items() if usual.get(key) != inner}
        elif isinstance(value, tuple):
            value = tuple(inner for inner in value if inner not in usual)
        if value != usual and name != "timeout":
            found += row.words(value)
    return found
