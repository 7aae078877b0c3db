"""Run a client in one scenario, and collect what our server recorded."""

import contextlib
import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.parts import stepper
from mcp_touchstone.parts.canary import FetchCanary
from mcp_touchstone.parts.part import REDIRECTS, Part
from mcp_touchstone.parts.scenarios import find
from mcp_touchstone.results.played import PlayedScenario, ScenarioOutcome
from mcp_touchstone.runtime import interrupts, scratch
from mcp_touchstone.runtime.open_folder import Folder, open_folder
from mcp_touchstone.runtime.scratch import World
from mcp_touchstone.runtime.secrets import arguments
from mcp_touchstone.tap import course, recording
from mcp_touchstone.tap.client_process import ClientProcess, LiveClients
from mcp_touchstone.tap.http_stage import PartServer
from mcp_touchstone.tap.recording import Recorder, Recording
from mcp_touchstone.tap.stage import CONVERSATIONS, Stage
from mcp_touchstone.target.target import Target
from mcp_touchstone.wire.events import Happened, Side

SERVER: Final = "{server}"
"""Replaced in the command of a client by the command of our server, or by its URL."""

SERVER_LINE: Final = "{server_line}"
"""The same as one word, for a client that splits it by itself."""

LIMIT: Final = 30.0
"""Seconds that a client has for a scenario, as in the official conformance suite."""

MOST: Final = 4 << 20
"""Greatest size of the recordings of a scenario, in bytes; a plain client needs a hundredth."""

ELSEWHERE: Final = "elsewhere/"
"""Path of the other origin to which redirects lead."""

ANYWHERE: Final = "http://127.0.0.1:1/mcp"
"""Stands for the URL of our server until the port is known."""


@dataclass(frozen=True, slots=True)
class Played:
    """What came of one scenario.

    Attributes:
        scenario: its name, and what came of it.
        recordings: one for each start of our server by a client that spoke.
        said: the last lines of its standard error.
        size: bytes of the recordings.
    """

    scenario: PlayedScenario
    recordings: list[Recording] = field(default_factory=list)
    said: tuple[str, ...] = ()
    size: int = 0


def play(
    target: Target,
    name: str,
    folder: Path | None = None,
    *,
    http: bool = False,
    limit: float = LIMIT,
    known_as: str = "",
    most: int = MOST,
    revision: str = "",
    running: LiveClients | None = None,
) -> Played:
    """Run a client against our server in one scenario.

    Args:
        target: the client; ``{server}`` in its command is replaced. Over HTTP the URL is its last
            argument if it has no ``{server}``, as in the official conformance suite.
        folder: gets the recordings, at the end; None for no files.
        http: whether our server is reached over HTTP.
        limit: seconds for the client.
        known_as: the name of the scenario for the client, if it is another one.
        most: greatest size of the recordings, in bytes.
        revision: the only one that our server speaks; empty for those of the scenario's era.
        running: the clients that another thread may end.

    Raises:
        ClientError: it cannot be started.
        OSError: the recordings cannot be written.
    """
    part = find(name, revision)
    saved = None if folder is None else _emptied(folder)
    with contextlib.ExitStack() as stack:
        with interrupts.held():
            place = stack.enter_context(scratch.held())
            world = stack.enter_context(target.make_world())
        among = running or LiveClients()
        scene = _Scene(target, name, part, known_as or name, place, world, most, among)
        run = scene.over_http if http else scene.on_stdio
        status, client, recorders, trouble = run(stack, limit)
    said = client.said()
    raws = [bytes(one.kept) for one in recorders]
    found = [
        one
        for n, raw in enumerate(raws, 1)
        for one in recording.conversations(
            recording.kept(raw, Path(f"{name}-{n}{recording.SUFFIX}"))
        )
    ]
    for n, raw in enumerate(raws, 1):
        if saved is not None:
            saved.write(f"{name}-{n}{recording.SUFFIX}", raw)
    size = sum(map(len, raws))
    if trouble:
        crashed = PlayedScenario(name, ScenarioOutcome.CRASHED, trouble, status, revision)
        return Played(crashed, [], said, size)
    spoke = [one for one in found if any(row.side is Side.CLIENT for row in one.rows)]
    came = course.outcome(PlayedScenario(name, revision=revision), part, status, spoke, limit)
    if found and not spoke and not http:  # the tap records also if nobody comes
        came = replace(came, why=f"the client connected and sent nothing (exit status {status})")
        if not (part.steps or status):
            why = "the client said nothing, as it has no step to take"
            came = replace(came, outcome=ScenarioOutcome.LEFT_OUT, why=why)
    return Played(came, spoke, said, size)


Run = tuple[int | None, ClientProcess, list[Recorder], str]
"""The exit status of a client, the client, what was recorded, and why that is not judged."""


@dataclass(frozen=True, slots=True)
class _Scene:
    """A client and a part of ours.

    Attributes:
        place: a folder of ours that the client only reads.
        world: the folder that it may change.
        most: greatest size of what is recorded, in bytes.
    """

    target: Target
    name: str
    part: type[Part]
    known_as: str
    place: Path
    world: World
    most: int
    running: LiveClients

    def on_stdio(self, stack: contextlib.ExitStack, limit: float) -> Run:
        """Run the client with a command that stands in for our server."""
        recorders: list[Recorder] = []
        stage = stack.enter_context(Stage(self.place))
        words = [*self._filled(stage.program, http=False)]
        client = stack.enter_context(self._client(words))

        hidden = client.env | arguments(self.target.command)

        def record() -> Recorder:
            left = self.most - sum(len(one.kept) for one in recorders)
            recorders.append(Recorder(None, self._about(), hidden, max(1, left)))
            return recorders[-1]

        stage.begin(self.part, record, client.listen)
        with self.world.limit.ending(client.kill), self.running.holds(client):
            client.begin([*self._filled(stage.command, http=False)])
            status = client.wait(limit, look=not self.running.sdk.sdks)
        stage.await_ends() if status is not None else stage.abandon()
        client.end()
        stage.close()
        for one in recorders:
            if one is not recorders[-1]:
                one.event(Happened.RESTARTED)
            one.event(course.end(status))
        refused = f"the client connected more than {CONVERSATIONS} times" * stage.refused
        return status, client, recorders, refused or self._excess(recorders)

    def over_http(self, stack: contextlib.ExitStack, limit: float) -> Run:
        """Run the client with the URL of our server."""
        part = self.part
        client = stack.enter_context(self._client([*self._filled([ANYWHERE], http=True)]))

        def record(url: str) -> Recorder:
            about = {"url": url, **self._about()}
            return Recorder(None, about, client.env | arguments(self.target.command), self.most)

        server = stack.enter_context(PartServer(part, record, client.listen, limit, self.place))
        recorder = server.tape.recorder
        canary = FetchCanary(recorder.event, client.listen())
        stack.callback(canary.stop)
        elsewhere = f"{canary.start()}{ELSEWHERE}"
        server.elsewhere = elsewhere if part.http_fault == REDIRECTS else ""
        url, known = server.start(), {}
        if part.protection is not None:
            from mcp_touchstone.tap.guard import Guard  # noqa: PLC0415  (an extra)

            server.guard = guard = Guard(part.protection, recorder.event, client.listen, elsewhere)
            stack.callback(guard.close)
            guard.protect(url)
            known = guard.known
        with self.world.limit.ending(client.kill), self.running.holds(client):
            client.begin([*self._filled([url], http=True)], self._context(**known) if known else {})
            status = client.wait(limit, look=not self.running.sdk.sdks)
        recorder.event(course.end(status))
        client.end()
        return status, client, [recorder], self._excess([recorder])

    def _about(self) -> dict[str, str]:
        return {"scenario": self.name, "revision": self._revision}

    @property
    def _revision(self) -> str:
        """The revision that the client is told: the newest one of the era, or the only one."""
        only = self.part.versions
        newest = rev.LATEST_MODERN if self.part.modern else rev.LATEST_LEGACY
        return only[0] if len(only) == 1 else newest

    def _client(self, words: Sequence[str]) -> ClientProcess:
        more = {
            "MCP_CONFORMANCE_SCENARIO": self.known_as,
            "MCP_CONFORMANCE_PROTOCOL_VERSION": self._revision,
            **self._context(),
        }
        with interrupts.held():
            return ClientProcess(self.target, self.world, words, more, self.place)

    def _context(self, **known: str) -> dict[str, str]:
        """Return the variable with the steps, and with what the client knows before."""
        steps = self.part.steps
        calls = [
            {"name": one["call"], "arguments": stepper.arguments(one)}
            for one in stepper.flat(steps)
            if one.get("call", "*") != "*"
        ]
        context = {"name": self.known_as, "steps": steps, "toolCalls": calls, **known}
        return {"MCP_CONFORMANCE_CONTEXT": json.dumps(context)}

    def _filled(self, server: Sequence[str], *, http: bool) -> Iterator[str]:
        """Yield the words of the client's command."""
        command = self.target.command_in(self.world.root)
        if http and not names_server(command):
            command = (*command, SERVER)
        for word in command:
            if word == SERVER:
                yield from server
            else:
                line = shlex.join(server)
                yield word.replace(SERVER, line).replace(SERVER_LINE, line)

    def _excess(self, recorders: Sequence[Recorder]) -> str:
        full = any(one.full for one in recorders)
        if self.world.limit.met:
            return f"the client was ended: {self.world.limit.met} (--root-size)"
        return f"the conversation has more than {self.most >> 10:,} KiB" if full else ""


def names_server(command: Sequence[str]) -> bool:
    """Whether a command has a place for our server."""
    return any(SERVER in word or SERVER_LINE in word for word in command)


def _emptied(folder: Path) -> Folder:
    """Make the folder of a scenario, without the recordings of an earlier run.

    It is opened once: what the client puts in its place later gets no recording of ours.
    """
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    top = open_folder(folder.parent.resolve())
    with contextlib.suppress(FileExistsError):
        top.make_folder(folder.name)
    found = top.open(folder.name)
    for name in found.names():
        with contextlib.suppress(OSError, InputError):
            if name.endswith(recording.SUFFIX):
                recording.read(folder / name, named=False)
                found.unlink(name)
    return found
