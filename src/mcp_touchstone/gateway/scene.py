"""Our server behind a gateway and our client before it, for one exchange. Judges nothing."""

import contextlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.connection import answers
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.profile import Client, willing
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.judging.gateways import (
    ExchangePlan,
    ExchangeTalk,
    Expected,
    Held,
    NoSecondClientError,
)
from mcp_touchstone.parts.callers import TOKENS
from mcp_touchstone.parts.canary import FetchCanary
from mcp_touchstone.parts.part import REDIRECTS, listening
from mcp_touchstone.parts.upstream import Upstream
from mcp_touchstone.runtime import scratch
from mcp_touchstone.runtime.input_file import LARGEST_TOML, InputFile
from mcp_touchstone.runtime.scratch import World
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.tap import recording
from mcp_touchstone.tap.drive import ELSEWHERE
from mcp_touchstone.tap.http_stage import PartServer
from mcp_touchstone.tap.recording import Recorder, Recording
from mcp_touchstone.tap.replay import Replay, replay
from mcp_touchstone.tap.stage import Stage
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.http_channel import HttpChannel
from mcp_touchstone.transport.http_endpoint import PORT
from mcp_touchstone.transport.process import LaunchError
from mcp_touchstone.wire.events import Side
from mcp_touchstone.wire.http_headers import AUTHORIZATION

SERVER: Final = "{server}"
URL: Final = "{url}"
CONFIG: Final = "{config}"
PROGRAM: Final = "{program}"
ARGUMENTS: Final = "{arguments}"
"""The words that are replaced: by the command or the URL of our server, and by a file of ours. In
that file ``{program}`` and ``{arguments}`` are the command as a JSON string and a JSON array."""

ROOT: Final = "file:///upstream/root"
"""The root of our client."""

ENDPOINT: Final = f"http://127.0.0.1:{PORT}/mcp"
"""Where a gateway listens if its command names a port and nobody names its URL."""


class GatewayError(UserError):
    """A gateway cannot be judged; the message says why."""


@dataclass(frozen=True, slots=True)
class Way:
    """How our client reaches our server.

    Attributes:
        target: the gateway; without a command and a URL there is none.
        config: the text of its configuration; empty for none.
        suffix: the suffix of the name of that file.
        http: whether our server speaks HTTP to it.
        port: the port of our server over HTTP; 0 for any free one.
        expected: what the gateway is meant to change.
    """

    target: Target
    config: str = ""
    suffix: str = ""
    http: bool = False
    port: int = 0
    expected: Expected = field(default_factory=Expected)

    @property
    def direct(self) -> "Way":
        """The way without the gateway, over the transport of the client."""
        return Way(Target(timeout=self.target.timeout), http=bool(self.target.url))

    @property
    def reaches(self) -> bool:
        """Whether the command, its variables or its configuration name our server."""
        words = [*self.target.command, *self.target.env.values(), self.config]
        names = (SERVER, URL, PROGRAM)
        return any(name in word for word in words for name in names)


def way(target: Target, template: Path | None, port: int, expected: Expected) -> Way:
    """Return the way through a gateway.

    Args:
        template: the file of its configuration, with our names in it; None for none.

    Raises:
        GatewayError: its command does not name our server.
        InputError: the file cannot be read.
    """
    config = "" if template is None else InputFile(template, most=LARGEST_TOML).text()
    suffix = "" if template is None else template.suffix
    if PORT in " ".join((*target.command, *target.env.values(), config)) and not target.url:
        target = replace(target, url=ENDPOINT)
    words = " ".join((*target.command, *target.env.values(), config))
    found = Way(target, config, suffix, URL in words or not target.command, port, expected)
    if target.command and not found.reaches:
        raise GatewayError(
            f"the command does not name our server: write {SERVER} for a stdio command, or {URL}"
        )
    if config and not any(CONFIG in one for one in (*target.command, *target.env.values())):
        raise GatewayError(f"--config-template: no word of the command is {CONFIG}")
    return found


class Behind:
    """Our server, which records what reaches it; use it as a context manager.

    Attributes:
        command: the command of our server on stdio; empty over HTTP.
        url: its URL; empty on stdio.
    """

    def __init__(self, one: Way, part: type[Upstream], folder: Path) -> None:
        self._recorders: list[Recorder] = []
        self._stage: Stage | None = None
        self._server: PartServer | None = None
        self._canary: FetchCanary | None = None
        self.command: tuple[str, ...] = ()
        self.url = ""
        if one.http:
            self._server = PartServer(
                part,
                lambda url: self._recorder(url=url),
                lambda: _listening(one.port),
                one.target.timeout,
                folder,
            )
            if part.http_fault == REDIRECTS:
                self._canary = FetchCanary(self._server.note, listening())
                self._server.elsewhere = f"{self._canary.start()}{ELSEWHERE}"
        else:
            self._stage = Stage(folder)
            self.command = self._stage.command
            self._stage.begin(part, self._recorder, listening)

    def _recorder(self, **about: str) -> Recorder:
        self._recorders.append(Recorder(None, about, {}, planted=TOKENS))
        return self._recorders[-1]

    def __enter__(self) -> Self:
        if self._server is not None:
            self.url = self._server.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._stage is not None:
            self._stage.await_ends()
            self._stage.close()
        if self._server is not None:
            self._server.stop()
        if self._canary is not None:
            self._canary.stop()

    def settle(self) -> None:
        """Wait for the end of its conversations; note which ones the gateway left open."""
        if self._stage is not None:
            self._stage.await_ends()

    def replays(self) -> list[Replay]:
        """Return what it heard and said: one replay for each conversation with messages."""
        found = []
        for number, one in enumerate(list(self._recorders), 1):
            whole = recording.kept(bytes(one.kept), Path(f"upstream-{number}{recording.SUFFIX}"))
            found += [replay(each) for each in recording.conversations(whole) if _spoke(each)]
        return found

    @property
    def words(self) -> Mapping[str, Sequence[str]]:
        """The words that are replaced, with those in their place."""
        return {SERVER: self.command, URL: (self.url,)}


def _spoke(one: Recording) -> bool:
    return any(row.side is Side.CLIENT and row.headers is None for row in one.rows)


def _listening(port: int) -> Any:
    try:
        return listening(port)
    except OSError as error:
        raise GatewayError(f"--upstream-port {port}: {error.strerror}") from error


def filled(words: Sequence[str], places: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the words of a command with the names of our server replaced."""
    for word in words:
        if word in places:
            yield from places[word]
            continue
        for name, given in places.items():
            word = word.replace(name, shlex.join(given))  # noqa: PLW2901
        yield word


def configured(text: str, behind: Behind) -> str:
    """Return the text of a configuration with our server in it."""
    program, *arguments = behind.command or ("",)
    places = {
        PROGRAM: json.dumps(program),
        ARGUMENTS: json.dumps(arguments),
        SERVER: json.dumps(shlex.join(behind.command))[1:-1],
        URL: behind.url,
    }
    for name, given in places.items():
        text = text.replace(name, given)
    return text


def client(revision: str) -> Client:
    """Return our client: it declares every capability, and its answers are fixed."""
    one = willing(revision)
    capabilities = {k: v for k, v in one.capabilities.items() if k != "tasks"}
    return replace(
        one,
        capabilities=capabilities,
        roots=answers.offer(ROOT),
        tasks=None,
        elicitation=answers.accept({"name": "Ünï"}),
    )


@dataclass(frozen=True, slots=True)
class Came:
    """What came of an exchange.

    Attributes:
        held: its transcripts and steps.
        trouble: the reason that it could not be held; empty if it was.
        stderr: the last words of the gateway.
        revision: the revision that was agreed.
        info: name and version that the other side reports.
        strays: processes that the gateway left behind.
        reached: whether our server heard anything.
    """

    held: Held
    trouble: str = ""
    stderr: str = ""
    revision: str = ""
    info: Mapping[str, object] | None = None
    strays: int = 0
    reached: bool = False


def hold(one: Way, planned: ExchangePlan, name: str, revision: str) -> Came:
    """Hold an exchange once; end all that was started.

    Raises:
        GatewayError: no port is free.
    """
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch.held())
        behind = Behind(one, planned.part, folder)
        with behind:
            target = _target(one, behind, folder)
            world = stack.enter_context(World())
            pool = ProcessPool(target, world, Pace(target.timeout))
            with pool.killed_on_error():
                came, talk = _talk(pool, planned, name, revision, one.expected)
                pool.settle()
                behind.settle()
            strays = pool.close()
        replays = behind.replays()
        held = Held(
            [each.transcript for each in talk.connections] if talk else [],
            [each.server for each in replays],
            talk.steps if talk else {},
            talk.facts if talk else {},
            [each.client_record() for each in replays],
        )
        return replace(came, held=held, strays=strays, reached=bool(replays))


def _target(one: Way, behind: Behind, folder: Path) -> Target:
    """Return what our client starts or asks."""
    if not one.target.command and not one.target.url:
        return replace(one.target, command=behind.command, url=behind.url)
    places = dict(behind.words)
    if one.config:
        path = folder / f"config{one.suffix}"
        path.write_text(configured(one.config, behind), "utf-8")
        places[CONFIG] = (str(path),)
    whole = {name: (shlex.join(given),) for name, given in places.items()}
    env = {name: next(filled([value], whole)) for name, value in one.target.env.items()}
    return replace(one.target, command=tuple(filled(one.target.command, places)), env=env)


def _talk(
    pool: ProcessPool, planned: ExchangePlan, name: str, revision: str, expected: Expected
) -> tuple[Came, ExchangeTalk | None]:
    """Open a connection and hold the exchange."""
    nothing = Held((), (), {})

    def open_(host: Connection | None = None, token: str = "") -> Connection:
        connection = (
            pool.spawn(revision, "client")
            if host is None
            else pool.beside(host, revision, "another client", judged=True)
        )
        if token and isinstance(connection.channel, HttpChannel):
            connection.channel.session.given[AUTHORIZATION] = f"Bearer {token}"
        connection.transcript.enter(name)
        connection.answers.use(client(revision))
        connection.open()
        return connection

    try:
        first = open_()
    except LaunchError as error:
        return Came(nothing, f"it does not start: {error}"), None
    opening = first.opening
    info = _info(first)
    if opening is None or opening.result is None:
        said = first.channel.stderr()
        return Came(nothing, f"no result of the opening request: {opening}", said), None
    agreed = opening.result.get("protocolVersion", revision)
    agreed = agreed if agreed in rev.ALL and not first.modern else revision
    first.transcript.agree(agreed)
    hosts = [first]
    talk = ExchangeTalk(lambda token: hosts.pop() if hosts else open_(first, token), expected)
    try:
        planned.run(talk)
    except NoSecondClientError as error:
        return Came(nothing, str(error), first.channel.stderr(), agreed, info), talk
    except LaunchError as error:
        return Came(nothing, f"it does not serve a second client: {error}"), talk
    return Came(nothing, "", first.channel.stderr(), agreed, info), talk


def _info(connection: Connection) -> Mapping[str, object]:
    result = (connection.opening.result if connection.opening else None) or {}
    meta = result.get("_meta")
    own = meta.get(f"{rev.META}serverInfo") if isinstance(meta, dict) else None
    found = result.get("serverInfo", own)
    return found if isinstance(found, dict) else {}
