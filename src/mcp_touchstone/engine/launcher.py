"""Start a process of the server and open a connection to it. Keeps none of them."""

import os
import threading
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.connection.connection import Connection, Pace
from mcp_touchstone.discovery.recon import ServerProfile
from mcp_touchstone.engine.start_limiter import StartLimiter
from mcp_touchstone.runtime.scratch import World
from mcp_touchstone.sandbox.command_files import sandbox_for
from mcp_touchstone.sandbox.own_room import OwnRoom
from mcp_touchstone.sandbox.sandbox import Sandbox, variables, wrap
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.channel import Channel, StdioChannel
from mcp_touchstone.transport.http_endpoint import free_port, values_of
from mcp_touchstone.transport.live_transcript import LiveTranscript
from mcp_touchstone.transport.process import MARK, LaunchError, ServerProcess, now
from mcp_touchstone.wire.allowance import Allowance

if TYPE_CHECKING:
    from mcp_touchstone.transport.http_channel import HttpChannel

STARTING: Final = 3
"""Usual start times after which a process without an answer no longer delays other starts."""

OWN_SHARE: Final = 8
"""Divisor of the limit of the throw-away folders for the file systems of a sandbox."""

GENTLE_RATE: Final = 5.0
"""Requests a second to a server that is not ours to hurt."""


def inherited(env: Mapping[str, str], target: Target) -> Mapping[str, str]:
    """Return the user's variables that a server inherits: few in a sandbox, otherwise all."""
    return env if target.method is None else variables(env, network=target.online)


class Launcher:
    """Starts the processes of one run.

    Args:
        world: the folder its processes run in.

    Attributes:
        allowance: the limit of what all processes together may send.
        limiter: the limit of simultaneous starts.
        mark: text that identifies every process of the run.
        notes: sentences on the run for the report, in their order, as keys.
        profile: what is known of the server.
    """

    def __init__(self, target: Target, world: World, pace: Pace) -> None:
        self._target = target
        self._world = world
        self._pace = pace
        self.allowance = Allowance(lock=threading.Lock())
        self.limiter = StartLimiter(lambda: STARTING * pace.started)
        self.mark = f"{os.getpid()}-{uuid.uuid4().hex}"
        self.notes: dict[str, None] = {}
        self.profile = ServerProfile(pace)
        self._env = self._env_in(world, target)
        rate = target.rate or (GENTLE_RATE if target.gentle else 0)
        self._rate = None
        if rate:
            from mcp_touchstone.transport.http_requests import RequestRate  # noqa: PLC0415  (late)

            self._rate = RequestRate(rate)

    def settle(self) -> None:
        """Take over the place of the world, which may have moved."""
        self._env = self._env_in(self._world, self._target)

    def start(
        self, revision: str, label: str, world: World | None = None, target: Target | None = None
    ) -> Connection:
        """Start a process, by default in the world of the run, and return its connection.

        Raises:
            LaunchError: it could not be started, or the server has sent too much.
        """
        born = now()
        place = world or self._world
        target = _placed(target or self._target)
        env = self._env
        if world is not None or target.url or target.env != self._target.env:
            env = self._env_in(place, target)
        transcript = self._transcript(revision, label, born)
        if self.allowance.met:
            raise LaunchError(f"{self.allowance.met}; we stopped starting it")
        channel: Channel
        if target.transport is Transport.HTTP:
            channel = self._http(target, transcript, env, place)
        else:
            channel = StdioChannel(
                target.command_in(place.root),
                transcript,
                env=env,
                cwd=target.cwd_in(place.root),
                born=born,
                sandbox=sandbox_in(target, place, env),
            )
            watch(place, channel)
        connection = Connection(channel, transcript, self._pace, root=place.root)
        if revision in self.profile.spoken:
            connection.substitute = self.profile.spoken[revision].substitute
        return connection

    def beside(self, host: Connection, revision: str, label: str) -> Connection:
        """Return a connection to the process of another one, for a further session."""
        from mcp_touchstone.transport.http_channel import HttpChannel  # noqa: PLC0415  (as below)

        assert isinstance(host.channel, HttpChannel)  # noqa: S101  (no other has sessions)
        transcript = self._transcript(revision, label, now())
        channel = host.channel.another(transcript)
        beside = Connection(channel, transcript, self._pace, root=host.answers.root)
        beside.substitute = host.substitute
        return beside

    def _env_in(self, world: World, target: Target) -> dict[str, str]:
        ours = inherited(os.environ, target)
        return {**world.env(ours), **target.env_in(world.root), MARK: self.mark}

    def _transcript(self, revision: str, label: str, born: float) -> LiveTranscript:
        return LiveTranscript(
            revision,
            clock=lambda: now() - born,
            label=label,
            allowance=self.allowance,
            slip=self.profile.slip,
        )

    def _http(
        self, target: Target, transcript: LiveTranscript, env: Mapping[str, str], world: World
    ) -> "HttpChannel":
        """Open a channel to an HTTP server, and start the server if it is ours.

        Raises:
            LaunchError: it could not be started.
        """
        from mcp_touchstone.transport.http_channel import HttpChannel  # noqa: PLC0415  (late, as most servers speak stdio)
        from mcp_touchstone.transport.http_server import ServerOutput  # noqa: PLC0415  (as above)

        server = None
        born = now()
        if target.started:
            root = world.root
            server = ServerProcess(
                target.command_in(root),
                ServerOutput(),
                env=env,
                cwd=target.cwd_in(root),
                born=born,
                sandbox=sandbox_in(target, world, env),
            )
            watch(world, server)
        dial = None if server is None else server.dial
        return HttpChannel(
            replace(target.endpoint, open_socket=dial),
            transcript,
            server=server,
            startup=target.timeout,
            secrets=values_of(target.header, os.environ),
            born=born,
            rate=self._rate,
        )


def sandbox_in(target: Target, world: World, env: Mapping[str, str]) -> Sandbox | None:
    """Return the sandbox of a process in a world; None if it gets none."""
    if target.method is None:
        return None
    command = (*target.starts, *target.command_in(world.root))
    # The sandbox has a copy of a folder that the command names. What is in these changes while the
    # server runs, so the sandbox has the folders themselves.
    for place in target.places:
        command = tuple(word.replace(str(place), "") for word in command)
    found = sandbox_for(
        target.method,
        command,
        world=world.path.tree.path,
        cwd=Path(target.cwd_in(world.root) or Path.cwd()),
        env=env,
        home=Path.home(),
        network=target.online,
    )
    most = world.limit.size
    beyond = most + (1 << 20)  # a file may pass the limit of the world, whose watcher then says so
    own = min(max(found.own, most // OWN_SHARE), most)
    readable = (*found.readable, *target.places)
    return replace(found, file_size=min(found.file_size, beyond), own=own, readable=readable)


def watch(world: World, process: ServerProcess) -> None:
    """Let the limit of a world look at the file systems that a process has in its sandbox."""
    if process.sandbox is not None:
        world.limit.watch_room(OwnRoom(process.outer, process.sandbox))


def confined(target: Target, world: World) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command that runs a server in its sandbox in a world, and its environment.

    Raises:
        OSError: there is no such program, or no such folder.
    """
    mark = f"{os.getpid()}-{uuid.uuid4().hex}"
    env = {**world.env(inherited(os.environ, target)), **target.env_in(world.root), MARK: mark}
    words, box = target.command_in(world.root), sandbox_in(target, world, env)
    if box is not None:
        words = wrap(box, words, cwd=target.cwd_in(world.root) or Path.cwd(), env=env)
    return words, env


def _placed(target: Target) -> Target:
    """Return the target on a free port of its own, if we start it and it speaks HTTP.

    Raises:
        LaunchError: no port is free.
    """
    if not (target.url and target.started):
        return target
    try:
        return target.on_port(free_port())
    except OSError as error:
        raise LaunchError(str(error)) from error
