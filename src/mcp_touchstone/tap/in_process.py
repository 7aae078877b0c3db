"""A client in the process of its tests: our server plays parts for it, and its side is judged."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.parts.part import REDIRECTS, Part, listening
from mcp_touchstone.parts.scenarios import find
from mcp_touchstone.results.run import Run
from mcp_touchstone.runtime import scratch
from mcp_touchstone.tap import course, judge, recording
from mcp_touchstone.tap.breaches import CLIENT
from mcp_touchstone.tap.http_stage import PartServer
from mcp_touchstone.tap.recording import Recorder
from mcp_touchstone.tap.stage import Stage
from mcp_touchstone.wire.events import Happened

STARTUP: Final = 30.0
"""Seconds for the first answer of a part over HTTP."""


@dataclass(frozen=True, slots=True)
class ServerInPart:
    """Our server in one scenario.

    Attributes:
        command: starts it on stdio; empty over HTTP.
        url: its address over HTTP; empty on stdio.
        steps: what a client may do there, as data.
    """

    command: tuple[str, ...]
    url: str
    steps: tuple[dict[str, Any], ...]


class ClientTest:
    """One test of a client; use it as a context manager, and then read ``run``."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._stages: list[tuple[Stage, list[Recorder]]] = []
        self._recorders: list[tuple[str, Recorder]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for stage, recorders in self._stages:
            stage.await_ends()
            for one in recorders[:-1]:
                one.event(Happened.RESTARTED)
        for _name, one in self._recorders:
            one.event(course.end(0))
        self._stack.close()

    def play(self, scenario: str, *, http: bool = False, revision: str = "") -> ServerInPart:
        """Return our server in a scenario of ``mcp-touchstone act --list``.

        Args:
            http: whether it is reached over HTTP.
            revision: the only one that it speaks; empty for those of its era.

        Raises:
            UserError: there is no such scenario, or it needs more than a server.
        """
        part = find(scenario, revision)
        if part.protection is not None or part.http_fault == REDIRECTS or (http and part.on_stdio):
            raise UserError(f"the scenario {scenario} runs with `mcp-touchstone client` only")
        if http:
            return ServerInPart((), self._over_http(scenario, part), part.steps)
        return ServerInPart(self._on_stdio(scenario, part), "", part.steps)

    @property
    def run(self) -> Run:
        """What the rules on clients say of the conversations."""
        found = []
        for n, (name, one) in enumerate(self._recorders, 1):
            kept = recording.kept(bytes(one.kept), Path(f"{name}-{n}{recording.SUFFIX}"))
            found += recording.conversations(kept)
        return judge.judge(found, CLIENT, Choice())

    def _recorder(self, scenario: str, **about: str) -> Recorder:
        recorder = Recorder(None, {"scenario": scenario, **about}, os.environ)
        self._recorders.append((scenario, recorder))
        return recorder

    def _on_stdio(self, scenario: str, part: type[Part]) -> tuple[str, ...]:
        stage = self._stack.enter_context(Stage(self._stack.enter_context(scratch.held())))
        recorders: list[Recorder] = []

        def record() -> Recorder:
            recorders.append(self._recorder(scenario))
            return recorders[-1]

        stage.begin(part, record, listening)
        self._stages.append((stage, recorders))
        return stage.command

    def _over_http(self, scenario: str, part: type[Part]) -> str:
        def record(url: str) -> Recorder:
            return self._recorder(scenario, url=url)

        place = self._stack.enter_context(scratch.held())
        server = PartServer(part, record, listening, STARTUP, place)
        return self._stack.enter_context(server).start()
