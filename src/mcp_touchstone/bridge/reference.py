"""``mcp-touchstone serve --http``: the reference server over HTTP, a process for each session.

The options about HTTP are parsed by hand, because all others are passed to the server unchanged.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mcp_touchstone.bridge.child import Launch
from mcp_touchstone.bridge.listener import Listener, until_signal
from mcp_touchstone.http_server.hosts import LOOPBACK
from mcp_touchstone.runtime.console import say

if TYPE_CHECKING:
    from mcp_touchstone.bridge.access import Access

SESSIONS: Final = 64
"""Greatest number of sessions; beyond it, an idle session ends for a new one."""

STARTUP: Final = 60.0
"""Seconds a process may take until its first answer."""

SHORTEST_TOKEN: Final = 16

HTTP: Final = "--http"
TOKEN: Final = "--http-token"  # noqa: S105  (the name of an option)
NAME: Final = "--http-name"
ISSUER: Final = "--issuer"
AUDIENCE: Final = "--audience"
SCOPE: Final = "--scope"

_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]/\s]+):(\d{1,5})")
_NAME: Final = re.compile(r"[a-z0-9.-]+|\[[0-9a-f:.]+\]")
_TOKEN_TEXT: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_LAST_PORT: Final = 65_535


class WrongWordError(Exception):
    """An option is invalid; the message names it and the remedy."""


@dataclass
class Options:
    """The options about HTTP.

    Attributes:
        port: port to listen on; 0 for any free one.
        names: further host names that clients may use.
        token: the bearer token; empty for none.
        issuer: the authorization server whose access tokens are accepted; empty for none.
        audience: the URL that the tokens are for.
        scopes: scopes that they must have.
        env: the environment of its processes, without the token.
    """

    host: str
    port: int
    token: str
    issuer: str = ""
    audience: str = ""
    scopes: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    rest: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)


def main(
    program: str,
    command: Sequence[str],
    words: Sequence[str],
    check: Callable[[Sequence[str]], object],
    wrong: type[Exception],
) -> int:
    """Serve until SIGTERM or SIGINT.

    Args:
        command: the command that starts the same server over stdio.
        check: parses the options of the server itself.
        wrong: the exception that ``check`` raises for an invalid option.

    Returns:
        The exit status.
    """
    try:
        options = read(words, os.environ)
        check(options.rest)
        access = _access(options) if options.issuer else None
    except (WrongWordError, wrong) as error:
        return _refuse(f"{program}: {error}")
    launch = Launch(command=(*command, *options.rest), env=options.env)
    try:
        listener = Listener(
            launch,
            port=options.port,
            most=SESSIONS,
            startup=STARTUP,
            host=options.host,
            names=options.names,
            token=options.token,
            access=access,
        )
    except OSError as error:
        address = f"{options.host}:{options.port}"
        return _refuse(f"{program}: {address} cannot be used: {error.strerror}")
    with listener:
        return until_signal(lambda: say(listener.start(), flush=True))


def read(words: Sequence[str], environment: Mapping[str, str]) -> Options:
    """Parse the options about HTTP; keep the others.

    Raises:
        WrongWordError: an option about HTTP is invalid.
    """
    known = (HTTP, TOKEN, NAME, ISSUER, AUDIENCE, SCOPE)
    given: dict[str, list[str]] = {option: [] for option in known}
    rest: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        option, equals, value = word.partition("=")
        if option not in given:
            rest.append(word)
            continue
        if not equals:
            if not left or left[0].startswith("--"):
                raise WrongWordError(f"{option} needs a value")
            value = left.pop(0)
        given[option].append(value)
    if not given[HTTP]:
        raise WrongWordError("write --http HOST:PORT too")
    host, port = _address(given[HTTP][-1])
    names = frozenset(one.lower() for one in given[NAME])
    for name in names:
        if not _NAME.fullmatch(name):
            raise WrongWordError(f"--http-name {name}: write a host name without a port")
    variable = given[TOKEN][-1] if given[TOKEN] else ""
    token = _token(variable, environment) if given[TOKEN] else ""
    if not names and host.strip("[]") not in {one.strip("[]") for one in LOOPBACK}:
        raise WrongWordError(
            f"--http {host}: only loopback is served, such as 127.0.0.1; for another address say "
            "with --http-name under which name clients reach it"
        )
    if bool(given[ISSUER]) != bool(given[AUDIENCE]) or (given[SCOPE] and not given[ISSUER]):
        raise WrongWordError("write both --issuer URL and --audience URL")
    if given[ISSUER] and token:
        raise WrongWordError("--issuer and --http-token both say whose requests are served")
    if names and not (token or given[ISSUER]):
        raise WrongWordError("--http-name needs --http-token: any machine could use the server")
    env = {name: value for name, value in environment.items() if name != variable}
    address = "127.0.0.1" if host == "localhost" else host.strip("[]")
    return Options(
        address,
        port,
        token,
        issuer="".join(given[ISSUER][-1:]),
        audience="".join(given[AUDIENCE][-1:]),
        scopes=tuple(given[SCOPE]),
        names=names,
        rest=tuple(rest),
        env=env,
    )


def _address(value: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(value)
    if found is None or int(found[2]) > _LAST_PORT:
        raise WrongWordError(f"--http {value}: write HOST:PORT, such as 127.0.0.1:8080")
    return found[1].lower(), int(found[2])


def _token(variable: str, environment: Mapping[str, str]) -> str:
    """Return the token in a variable; no message contains it."""
    value = environment.get(variable, "")
    if not value:
        raise WrongWordError(f"--http-token {variable}: the variable is not set")
    if len(value) < SHORTEST_TOKEN or not _TOKEN_TEXT.fullmatch(value):
        raise WrongWordError(
            f"--http-token {variable}: the variable must have {SHORTEST_TOKEN} or more of the "
            "characters of a bearer token, made at random"
        )
    return value


def _access(options: Options) -> "Access":
    """Return the check of access tokens.

    Raises:
        WrongWordError: a library is missing, or the authorization server cannot be used.
    """
    try:
        from mcp_touchstone.bridge.access import Access, AuthorizationServerError  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise WrongWordError(
            f"--issuer needs {error.name}: pip install 'mcp-touchstone[http-auth]'"
        ) from error
    try:
        return Access(options.issuer, options.audience, options.scopes)
    except AuthorizationServerError as error:
        raise WrongWordError(f"--issuer: {error}") from error


def _refuse(sentence: str) -> int:
    say(sentence, error=True)
    return 2
