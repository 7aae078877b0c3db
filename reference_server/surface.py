"""What a feature adds itself to, and what its parts share: one of these per server.

Parts are modules that are imported when a client first needs them; a server that is only asked
for its tools never loads its prompts.
"""

from __future__ import annotations

import threading

from .protocol.methods import Methods
from .tools.toolbox import Toolbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .operation.log import Log
    from .protocol.calls import Call
    from .protocol.connection import Connection
    from .protocol.methods import Handler
    from .settings import Settings
    from .workspace import Workspace


class Surface:
    """The tables a feature fills, and the things its handlers use.

    Attributes:
        settings: The operator's decisions.
        log: For the operator.
        methods: Methods, notifications and capabilities.
        toolbox: The tools.
        connection: The one client; set before its first line is read.
    """

    connection: Connection

    def __init__(self, settings: Settings, log: Log) -> None:
        self.settings = settings
        self.log = log
        self.methods = Methods()
        self.toolbox = Toolbox()
        self.toolbox.install(self.methods)
        self._at_start: list[Callable[[], None]] = []
        self._parts: dict[str, Any] = {}
        self._lock = threading.RLock()

    def part(self, name: str) -> Any:
        """Give what ``build(surface)`` of the module of that name gave; it is called once."""
        with self._lock:
            if name not in self._parts:
                self._parts[name] = self.module(name).build(self)
            return self._parts[name]

    @staticmethod
    def module(name: str) -> Any:
        """Import a module of this package when it is first needed."""
        return __import__(f"{__package__}.{name}", fromlist=["build"])

    def later(self, part: str, method: str) -> Handler:
        """Give a handler that loads its part when it is first called."""

        def handler(call: Call) -> dict[str, Any] | None:
            answer: dict[str, Any] | None = getattr(self.part(part), method)(call)
            return answer

        return handler

    def at_start(self, action: Callable[[], None]) -> None:
        """Have something done once the first line can be read, without keeping it waiting."""
        self._at_start.append(action)

    def start(self) -> None:
        """Do what waits for the start; for the server."""
        for action in self._at_start:
            action()

    @property
    def workspace(self) -> Workspace:
        """The files below the roots, opened when they are first needed."""
        workspace: Workspace = self.part("workspace")
        return workspace

    def end(self) -> None:
        """Have the parts say their last words, while the client can hear them."""
        self._tell("end")

    def close(self) -> None:
        """Let go of what the parts hold, at the end of the server."""
        self._tell("close")

    def _tell(self, what: str) -> None:
        with self._lock:
            parts = list(self._parts.values())
        for part in parts:
            action = getattr(part, what, None)
            if action:
                action()
