"""The object to which features add themselves and which their parts share; one per server.

Parts are modules that are imported when a client first needs them. If a client only uses tools, the
prompts are never loaded.
"""

from __future__ import annotations

import threading
import time

from .protocol.methods import Methods
from .protocol.toolbox import Toolbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    from .operation.log import Log
    from .protocol.calls import Call, Handler
    from .protocol.connection import Connection
    from .settings import Settings
    from .workspace import Workspace

    Feature: TypeAlias = Callable[["Surface"], None]


class Surface:
    """The tables of the features, and the objects that their handlers use.

    Attributes:
        hooks: Called with the facts of each request and session; those of the settings first.
        methods: Methods, notifications and capabilities.
        prompts: Functions that return prompts (``content.prompts.Prompt``); called at the first
            request that needs them.
        resources_listed: Called with each list of resources for a client, as a set of paths.
        connection: The connection to the client; set before its first line is read.
    """

    connection: Connection

    def __init__(self, settings: Settings, log: Log) -> None:
        self.settings = settings
        self.log = log
        self.hooks = list(settings.hooks)
        self.methods = Methods()
        self.toolbox = Toolbox()
        self.toolbox.install(self.methods)
        self.prompts: list[Callable[[], Sequence[Any]]] = []
        self.resources_listed: Callable[[Call, frozenset[str]], None] | None = None
        self._at_start: list[Callable[[], None]] = []
        self._parts: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._imports = threading.RLock()

    def part(self, name: str) -> Any:
        """Return the result of the module's ``build(surface)``, which is called only once."""
        return self._kept(name, lambda: self.module(name).build(self))

    def _kept(self, name: str, build: Callable[[], Any]) -> Any:
        with self._lock:
            if name not in self._parts:
                began = time.monotonic()
                self._parts[name] = build()
                milliseconds = round((time.monotonic() - began) * 1000, 3)
                self.log.debug("part_loaded", part=name, duration_ms=milliseconds)
            return self._parts[name]

    def module(self, name: str) -> Any:
        """Import a module of this package when it is first needed.

        Two threads that import modules of one sub-package at once can each wait for the other;
        Python then gives one of them a module that is not complete.
        """
        with self._imports:
            return __import__(f"{__package__}.{name}", fromlist=["build"])

    def later(self, part: str, method: str) -> Handler:
        """Return a handler that loads its part at the first call."""

        def handler(call: Call) -> dict[str, Any] | None:
            answer: dict[str, Any] | None = getattr(self.part(part), method)(call)
            return answer

        return handler

    def at_start(self, action: Callable[[], None]) -> None:
        self._at_start.append(action)

    def start(self) -> None:
        for action in self._at_start:
            action()

    @property
    def workspace(self) -> Workspace:
        workspace: Workspace = self._kept(
            "workspace", lambda: self.module("workspace").Workspace(self.settings, self.log)
        )
        return workspace

    def end(self) -> None:
        """Let the parts send their last messages, while the client still reads."""
        self._tell("end")

    def close(self) -> None:
        self._tell("close")

    def _tell(self, what: str) -> None:
        with self._lock:
            parts = list(self._parts.values())
        for part in parts:
            action = getattr(part, what, None)
            if action:
                action()
