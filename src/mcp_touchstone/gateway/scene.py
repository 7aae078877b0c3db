"""Our server behind a gateway and our client before it, for one exchange. Judges nothing."""

import contextlib
import json
import re
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.errors import UserError, our_fault
from mcp_touchstone.config import resolve
from mcp_touchstone.config.settings import Settings
from mcp_touchstone.connection import answers
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.profile import Client, willing
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.gateway.http_upstream import UpstreamServer
from mcp_touchstone.judging.expected import Expected
from mcp_touchstone.judging.gateway_talk import ExchangePlan, ExchangeTalk, NoSecondClientError
from mcp_touchstone.judging.hops import RecordedExchange
from mcp_touchstone.parts.callers import TOKENS
from mcp_touchstone.parts.canary import FetchCanary
from mcp_touchstone.parts.part import REDIRECTS, listening
from mcp_touchstone.parts.rich_upstream import DECLINE, REFUSE, WAIT
from mcp_touchstone.parts.second import SECOND, Second, Twin
from mcp_touchstone.parts.upstream import DATA, Upstream
from mcp_touchstone.runtime import scratch
from mcp_touchstone.runtime.input_file import LARGEST_TOML, InputFile
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.tap import recording
from mcp_touchstone.tap.drive import ELSEWHERE
from mcp_touchstone.tap.recording import Recorder
from mcp_touchstone.tap.replay import Replay, replay
from mcp_touchstone.tap.stage import CONVERSATIONS, PROGRAM, Stage, known_secret
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.family import alive, naming
from mcp_touchstone.transport.http_channel import HttpChannel
from mcp_touchstone.transport.http_endpoint import PORT, free_port
from mcp_touchstone.transport.process import LaunchError, ServerProcess, now
from mcp_touchstone.wire.events import Side
from mcp_touchstone.wire.framing import brief
from mcp_touchstone.wire.http_headers import AUTHORIZATION

SERVER: Final = "{server}"
URL: Final = "{url}"
CONFIG: Final = "{config}"
"""The words that are replaced: by the command or the URL of our server, and by a file of ours. In
that file ``{program}`` and ``{arguments}`` are the command as a JSON string and a JSON array. Each
but the file may have a name, as in ``{server:a}``: there is a server for each name."""

NAMED: Final = re.compile(r"\{(server|url|program|arguments)(?::([A-Za-z0-9_-]+))?\}")

ENDPOINT: Final = f"http://127.0.0.1:{PORT}/mcp"
"""Where a gateway listens if its command names a port and nobody names its URL."""

LONG: Final = 1000
"""Characters of a question that our client reads."""

PATIENCE: Final = 3.0
"""Seconds for the end of our server after that of the gateway."""

STOPPING: Final = 10.0
"""Seconds for the end of the gateway after SIGTERM."""

MOST: Final = 1024
"""Conversations with our server; a gateway may begin one for each of the 320 calls of an exchange,
and others beside them."""

RARE: Final = 4 << 20
"""Bytes of each recording after the first ones; a gateway begins so many only for small calls."""

LOOK: Final = 0.1
"""Seconds between two looks at the processes."""

NOT_STARTED: Final = "the gateway does not start"
ON_STDIO: Final = f" on stdio (the command of a gateway that listens names {PORT})"
"""What a user forgets first if a gateway does not answer on stdio."""

_T = TypeVar("_T")


class GatewayError(UserError):
    """A gateway cannot be judged; the message says why."""


@dataclass(frozen=True, slots=True)
class Way:
    """How our client reaches our server.

    Attributes:
        target: the gateway; without a command and a URL there is none.
        config: the text of its configuration; empty for none.
        suffix: the suffix of the name of that file.
        servers: our servers behind it: their names, and whether each speaks HTTP.
        port: the port of our server over HTTP; 0 for any free one.
        expected: what the gateway is meant to change.
    """

    target: Target
    config: str = ""
    suffix: str = ""
    servers: Mapping[str, bool] = field(default_factory=lambda: {"": False})
    port: int = 0
    expected: Expected = field(default_factory=Expected)

    @property
    def direct(self) -> "Way":
        """The way without the gateway, over the transport of the client."""
        over_http = bool(self.target.url)
        return Way(Target(timeout=self.target.timeout), servers={"": over_http})

    @property
    def http(self) -> bool:
        """Whether the first server speaks HTTP to it."""
        return next(iter(self.servers.values()))


def way(settings: Settings) -> Way:
    """Return the way through a gateway.

    Raises:
        UserError: its command does not name our server, or its configuration cannot be read.
    """
    target, template = resolve.gateway_target(settings), settings.config_template
    port, expected = settings.upstream_port, Expected.read(settings.expects)
    if not target.command and not port:
        raise GatewayError("gateway: a gateway that runs already needs --upstream-port PORT")
    config = "" if template is None else InputFile(template, most=LARGEST_TOML).text()
    suffix = "" if template is None else template.suffix
    if PORT in " ".join((*target.command, *target.env.values(), config)) and not target.url:
        target = replace(target, url=ENDPOINT)
    words = " ".join((*target.command, *target.env.values(), config))
    servers: dict[str, bool] = {}
    for kind, name in NAMED.findall(words):
        servers[name] = servers.get(name, False) or kind == "url"
    if target.command and not servers:
        raise GatewayError(
            f"the command does not name our server: write {SERVER} for a stdio command, or {URL}"
        )
    if len(servers) > 1:
        expected = replace(expected, foreign=(*expected.further, SECOND))
    if config and not any(CONFIG in one for one in (*target.command, *target.env.values())):
        raise GatewayError(f"--config-template: no word of the command is {CONFIG}")
    if target.method is not None and any(servers.values()) and not target.online:
        raise GatewayError(f"--sandbox: it keeps the gateway from {URL}; add --online")
    return Way(target, config, suffix, servers or {"": True}, port, expected)


class Behind:
    """Our server, which records what reaches it; use it as a context manager.

    Attributes:
        command: the command of our server on stdio; empty over HTTP.
        url: its URL; empty on stdio.
        place: its folder.

    Args:
        name: its name among several; empty for the only one.
        port: its port over HTTP; 0 for any free one, None for stdio.
        both: whether it is on stdio too, by the next port: for a gateway that runs already.
    """

    def __init__(
        self,
        name: str,
        port: int | None,
        part: type[Upstream],
        timeout: float,
        place: Path,
        *,
        both: bool,
    ) -> None:
        self._name, self.place = name, place
        self._recorders: list[Recorder] = []
        self._stage: Stage | None = None
        self._server: UpstreamServer | None = None
        self._canary: FetchCanary | None = None
        self.command: tuple[str, ...] = ()
        self.url = ""
        if port is not None:
            self._server = UpstreamServer(
                part,
                lambda url: self._recorder(url=url),
                lambda: _on(port, lambda: listening(port)),
                timeout,
                place,
            )
            if part.http_fault == REDIRECTS:
                self._canary = FetchCanary(self._server.note, listening())
                self._server.elsewhere = f"{self._canary.start()}{ELSEWHERE}"
        if port is None or both:
            further = (port or 0) + 1 if both else 0
            self._stage = _on(further, lambda: Stage(place, further, MOST))
            self.command = self._stage.command
            self._stage.begin(part, self._recorder, listening)

    def _recorder(self, **about: str) -> Recorder:
        most = RARE if len(self._recorders) >= CONVERSATIONS else 0
        self._recorders.append(Recorder(None, about, {}, planted=TOKENS, most=most))
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

    def left(self, gateway: ServerProcess) -> list[str] | None:
        """Stop the process that we started, and nothing else; return what it leaves of our server.

        None if something else of the gateway goes on, as it was not stopped then, and in a sandbox,
        whose end is that of all in it.
        """
        if self._stage is None or gateway.sandbox is not None:
            return None
        secret, members = self._stage.command[-1], gateway.family.members()
        gateway.pipes.close_input()
        if gateway.wait(PATIENCE) is None:
            gateway.family.stop()
        if gateway.wait(STOPPING) is None:
            return None
        until = now() + PATIENCE
        while (left := naming(secret)) and now() < until:
            threading.Event().wait(LOOK)
        if any(alive(one) for one in members if one not in left):
            return None
        return [f"process {one.pid}" for one in left]

    @property
    def trouble(self) -> str:
        """Why it did not serve the gateway to the end; empty if it did."""
        if self._stage is not None and self._stage.refused:
            return f"the gateway began more than {MOST} conversations with our server"
        lost = self._server is not None and self._server.lost_port
        return "another program took the port of our server" if lost else ""

    def settle(self) -> None:
        """Wait for the end of its conversations; note which ones the gateway left open."""
        if self._stage is not None:
            self._stage.await_ends()

    def recordings(self) -> Iterator[tuple[str, bytes]]:
        """Yield what was recorded, with names of files."""
        for number, one in enumerate(list(self._recorders), 1):
            raw = bytes(one.kept)
            if raw.count(b"\n") > 1:  # more than its head
                yield f"{self._name or 'upstream'}-{number}{recording.SUFFIX}", raw

    def replays(self) -> list[Replay]:
        """Return what it heard and said: one replay for each conversation with messages."""
        return [
            replay(each)
            for name, raw in self.recordings()
            for each in recording.conversations(recording.kept(raw, Path(name)))
            if any(row.side is Side.CLIENT and row.headers is None for row in each.rows)
        ]

    def words(self, *, in_file: bool) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield the words that are replaced, with those in their place.

        Args:
            in_file: whether that is within a file, which has a text of JSON.
        """
        end = f":{self._name}}}" if self._name else "}"
        program, *arguments = self.command or ("",)
        line = json.dumps(shlex.join(self.command))[1:-1]
        yield f"{{server{end}", (line,) if in_file else self.command
        yield f"{{url{end}", (self.url,)
        if in_file:
            yield f"{{program{end}", (json.dumps(program),)
            yield f"{{arguments{end}", (json.dumps(arguments),)


def _on(port: int, begin: Callable[[], _T]) -> _T:
    """Return what begins to listen on a port that the user named, or on a free one."""
    try:
        return begin()
    except OSError as error:
        raise GatewayError(f"--upstream-port: port {port}: {error.strerror}") from error


def addresses(port: int) -> tuple[str, str]:
    """Return how a gateway that we do not start reaches our server: a command, and a URL."""
    command = (*PROGRAM, str(port + 1), known_secret(port + 1))
    return shlex.join(command), f"http://127.0.0.1:{port}/mcp"


def filled(words: Sequence[str], places: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the words of a command with the names of our server replaced."""
    for word in words:
        if word in places:
            yield from places[word]
            continue
        for name, given in places.items():
            word = word.replace(name, shlex.join(given))  # noqa: PLW2901
        yield word


def client(revision: str) -> Client:
    """Return our client: it declares every capability, and its answers are fixed."""
    one = willing(revision)
    capabilities = {k: v for k, v in one.capabilities.items() if k != "tasks"}
    capabilities["experimental"] = {"com.example.client/feature": {"deep": [1, None]}}
    return replace(
        one,
        capabilities=capabilities,
        roots=answers.offer("file:///upstream/root"),
        tasks=None,
        elicitation=_as_asked(answers.accept(DATA["filled"])),
        sampling=_as_asked(answers.give(DATA["said"])),
    )


def _as_asked(usual: answers.Policy) -> answers.Policy:
    """Return a policy that declines, refuses or says nothing where a question asks for that."""
    wanted = {
        DECLINE: answers.decline(),
        REFUSE: answers.refuse(-32042, "No — ünïcode", why={"of": ["client", 1.5]}),
        WAIT: answers.silence(),
    }

    def policy(params: Mapping[str, Any]) -> answers.Answer:
        words = brief(params, LONG)
        return next((one for word, one in wanted.items() if f"{word}, please" in words), usual)(
            params
        )

    return policy


def hold(one: Way, planned: ExchangePlan, name: str, revision: str) -> RecordedExchange:
    """Hold an exchange once; end all that was started.

    Raises:
        GatewayError: no port is free.
    """
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch.held())
        behind, runs_already = [], bool(one.target.url and not one.target.command)
        for number, (own, over_http) in enumerate(one.servers.items()):
            place = folder / str(number)
            place.mkdir()
            part = (Twin if one.expected.further else Second) if number else planned.part
            port = (0 if number else one.port) if over_http else None
            server = Behind(own, port, part, one.target.timeout, place, both=runs_already)
            behind.append(stack.enter_context(server))
        label = f"{name} {'through' if one.target.command or one.target.url else 'direct'}"
        target = _target(one, behind)
        world = stack.enter_context(target.make_world())
        pool = ProcessPool(target, world, Pace(target.timeout))

        def heard() -> list[Replay]:
            return [each for server in behind for each in server.replays()]

        with pool.killed_on_error():
            talk, trouble = _talk(pool, planned, label, revision, one.expected, heard)
            first = pool.connections[0] if pool.connections else None
            stderr = first.channel.stderr() if first else ""
            if talk is not None and planned.part.lingers and target.command:
                talk.facts["left"] = behind[0].left(talk.first.process)
            pool.settle()
            for server in behind:
                server.settle()
        strays = pool.close()
        if ended := next(filter(None, (server.trouble for server in behind)), ""):
            trouble = f"{ended} in {name}"
        replays = heard()
        return RecordedExchange(
            [each.transcript for each in talk.connections] if talk else (),
            [each.server for each in replays],
            talk.steps if talk else {},
            talk.facts if talk else {},
            [each.client_record() for each in replays],
            trouble=trouble,
            stderr=stderr,
            strays=strays,
            recordings=[each for server in behind for each in server.recordings()],
            connections=pool.connections,
        )


def _target(one: Way, behind: Sequence[Behind]) -> Target:
    """Return what our client starts or asks."""
    if not one.target.command and not one.target.url:
        return replace(one.target, command=behind[0].command, url=behind[0].url)
    target = one.target
    places = dict(pair for server in behind for pair in server.words(in_file=False))
    if one.config:
        text = one.config
        for name, (given,) in (pair for server in behind for pair in server.words(in_file=True)):
            text = text.replace(name, given)
        if PORT in text:  # the launcher knows nothing of the file
            port = free_port()
            target, text = target.on_port(port), text.replace(PORT, str(port))
        path = behind[0].place / f"config{one.suffix}"
        path.write_text(text, "utf-8")
        places[CONFIG] = (str(path),)
    whole = {name: (shlex.join(given),) for name, given in places.items()}
    env = {name: next(filled([value], whole)) for name, value in target.env.items()}
    command = tuple(filled(target.command, places))
    return replace(
        target,
        command=command,
        env=env,
        places=tuple(one.place for one in behind),
        starts=PROGRAM,
    )


def _talk(  # noqa: PLR0917  (one caller)
    pool: ProcessPool,
    planned: ExchangePlan,
    label: str,
    revision: str,
    expected: Expected,
    heard: Callable[[], list[Replay]],
) -> tuple[ExchangeTalk | None, str]:
    """Open a connection and hold the exchange; return it, and why it could not be held."""

    def open_(host: Connection | None = None, token: str = "") -> Connection:
        connection = (
            pool.spawn(revision, f"{label} client")
            if host is None
            else pool.beside(host, revision, f"{label} another client", judged=True)
        )
        if token and isinstance(connection.channel, HttpChannel):
            connection.channel.session.given[AUTHORIZATION] = f"Bearer {token}"
        connection.transcript.enter(label)
        connection.answers.use(client(revision))
        connection.open()
        return connection

    try:
        first = open_()
    except LaunchError as error:
        return None, f"{NOT_STARTED}: {error}"
    if first.opening is None or first.opening.result is None:
        where = "" if isinstance(first.channel, HttpChannel) else ON_STDIO
        why = f"no result of the opening request{where}: {first.opening}"
        return None, f"{NOT_STARTED}: {why}"
    agreed = first.opening.result.get("protocolVersion")
    first.transcript.agree(agreed if agreed in rev.ALL and not first.modern else revision)
    hosts = [first]
    talk = ExchangeTalk(
        lambda token: hosts.pop() if hosts else open_(first, token),
        expected,
        lambda: [one.server for one in heard()],
    )
    try:
        planned.run(talk)
    except (NoSecondClientError, LaunchError) as error:
        return talk, f"the gateway drops a second client: {error}"
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001  (a fault of an exchange must not lose the run)
        return talk, our_fault(error)
    return talk, ""
