"""A client under test, with all that it starts: started like a server, and ended as one family."""

import contextlib
import json
import os
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.catalog.sdk import UNKNOWN
from mcp_touchstone.discovery.packages import identity
from mcp_touchstone.engine.launcher import inherited, sandbox_in, watch
from mcp_touchstone.parts.part import listening
from mcp_touchstone.report.text import last_lines
from mcp_touchstone.runtime.scratch import World
from mcp_touchstone.sandbox.sandbox import keeper
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.orphans import sweep
from mcp_touchstone.transport.pipes import Gone
from mcp_touchstone.transport.process import MARK, LaunchError, ServerProcess
from mcp_touchstone.wire.framing import Line

STARTING: Final = 30.0
"""Seconds for the start of its keeper, and of its sandbox."""

ENDING: Final = 6.0
"""Seconds for the end of everything below the keeper."""

LOOK: Final = 0.5
"""Seconds until we look which processes run; the time between two looks doubles."""

LAST_LINES: Final = 6
"""Lines of its standard error that are shown."""


STARTS: Final = threading.Lock()
"""Held at the start of a client: the end of another one kills children that nobody knows yet."""


class ClientError(UserError):
    """A client cannot be run; the message says why."""


class ClientProcess:
    """A client that runs below a keeper, which ends everything below it; a context manager.

    The keeper runs in the sandbox, if there is one, before the command of the client is known: a
    server can then listen in the network of the sandbox, and the command can name its port.

    Args:
        target: the client: its sandbox, its variables and its working folder.
        world: the folder that it may change.
        words: a command with all files that the client needs, for the sandbox.
        more: further variables.
        shown: a folder of ours that the client may read in the sandbox.

    Attributes:
        env: its environment.
        sdk: its SDK and packages, by the files that its processes see.

    Raises:
        ClientError: it cannot be started.
    """

    def __init__(
        self,
        target: Target,
        world: World,
        words: Sequence[str],
        more: Mapping[str, str],
        shown: Path,
    ) -> None:
        self.ended, self.overflow = False, ""
        self.sdk = UNKNOWN
        self._mark = f"{os.getpid()}-{uuid.uuid4().hex}"
        ours = world.env(inherited(os.environ, target))
        self.env = {**ours, **target.env_in(world.root), **more, MARK: self._mark}
        self._words = [word for word in words if word]
        self._cwd = Path(target.cwd_in(world.root) or Path.cwd())
        self._reports: dict[str, str] = {}
        self._reported = threading.Condition()
        kept = replace(target, command=(*keeper(), *words), places=(shown,))
        box = sandbox_in(kept, world, self.env)
        try:
            with STARTS:
                self._process = ServerProcess(
                    keeper(),
                    self,
                    env=self.env,
                    cwd=target.cwd_in(world.root),
                    sandbox=box,
                )
        except LaunchError as error:
            raise ClientError(f"client: {error}") from error
        watch(world, self._process)

    def listen(self) -> socket.socket:
        """Return a socket that listens where the client is: in the network of its sandbox.

        Raises:
            ClientError: there is no sandbox.
            OSError: no port is free.
        """
        if not self._await("ready", STARTING):
            raise ClientError(f"client: {' '.join(self.said()) or 'it could not be started'}")
        return self._process.listen("127.0.0.1", 0) or listening()

    def begin(self, words: Sequence[str], more: Mapping[str, str] = {}) -> None:
        """Start the command, with further variables.

        Raises:
            ClientError: it cannot be started.
        """
        if self._await("ready", STARTING):
            try:
                line = json.dumps([[*words], {**more}]).encode()
                self._process.pipes.send(line + b"\n", STARTING)
            except Gone as error:
                raise ClientError(f"client: its keeper {error}") from error
        else:
            raise ClientError(f"client: {' '.join(self.said()) or 'it could not be started'}")

    def wait(self, seconds: float, *, look: bool = True) -> int | None:
        """Wait for the end of the client, not for that of what it started.

        Args:
            look: whether its SDK is looked for. What a launcher installs in a sandbox can be read
                only as long as the client runs.

        Returns:
            its exit status, negative for a signal; None if it has not ended.

        Raises:
            ClientError: it could not be started.
        """
        patience = self._process.patience(seconds)
        pause = LOOK
        while left := patience.left():
            look = look and not self.sdk.sdks
            if self._await("ended", min(left, pause) if look else left):
                return int(self._reports["ended"])
            if "refused" in self._reports:
                raise ClientError(f"client: {self._words[0]}: {self._reports['refused']}")
            if self.ended:  # it ended its keeper
                return self._process.wait(STARTING)
            if look and (seen := self._process.family.facts()):
                self.sdk = identity(seen, self._words, self._cwd, self.env)
            pause *= 2
        # The search for the SDK of the client may have taken the rest of its time.
        return int(self._reports["ended"]) if self._await("ended", 0) else None

    def said(self) -> tuple[str, ...]:
        """Return the last lines of its standard error."""
        return tuple(last_lines(self._process.pipes.stderr(), LAST_LINES))

    def kill(self) -> None:
        """Let the keeper end everything; ``end`` must still be called."""
        self._process.pipes.close()

    def end(self) -> None:
        """End it, and all that it started."""
        if self._process.ending is None:
            self._process.end(ENDING)
            with STARTS:
                sweep(self._mark)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()

    def _await(self, word: str, seconds: float) -> bool:
        """Wait for a report, or for the end of all reports."""
        with self._reported:
            self._reported.wait_for(
                lambda: word in self._reports or "refused" in self._reports or self.ended, seconds
            )
            return word in self._reports

    # --- the reports of the keeper

    def heard(self, line: Line) -> None:
        """Take a report."""
        word, _, about = line.raw.decode("utf-8", "replace").partition(" ")
        with self._reported:
            self._reports.setdefault(word.strip(), about.strip())
            self._reported.notify_all()

    def happened(self, sentence: str) -> None:
        """Ignore it."""

    def input_closed(self) -> None:
        """Ignore it."""

    def finished(self) -> None:
        """Take the end of the reports."""
        with self._reported:
            self.ended = True
            self._reported.notify_all()


class LiveClients:
    """The clients that run at a moment, in several threads: one client, started several times.

    Attributes:
        sdk: its SDK and packages, as far as they were found.
    """

    def __init__(self) -> None:
        self.sdk = UNKNOWN
        self._lock, self._clients, self._over = threading.Lock(), set[ClientProcess](), False

    @contextlib.contextmanager
    def holds(self, client: ClientProcess) -> Iterator[None]:
        """Know a client in this block."""
        with self._lock:
            self._clients.add(client)
            over = self._over
        if over:
            client.kill()
        try:
            yield
        finally:
            with self._lock:
                self._clients.discard(client)
                if not self.sdk.sdks and client.sdk != UNKNOWN:
                    self.sdk = client.sdk

    def end(self) -> None:
        """Kill them, and those that come later."""
        with self._lock:
            self._over, left = True, [*self._clients]
        for client in left:
            client.kill()
