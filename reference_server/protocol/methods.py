"""The methods of each revision, and the capabilities that the server declares.

A feature (tools, resources, tasks; see ``features``) adds itself here:

    methods.request("tools/list", ALL, toolbox.list_tools, cacheable=True)
    methods.notification("notifications/roots/list_changed", LEGACY, refresh)
    methods.capability("tools", {"listChanged": True}, ALL)

The dispatcher only uses these tables. It needs no checks for methods that a revision lacks.
"""

from __future__ import annotations

from functools import partial

from .calls import Method

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias

    from .calls import Call, Handler
    from .messages import Params

    Listener: TypeAlias = Callable[[Params], None]
    Wrap: TypeAlias = Callable[[Handler, Call], dict[str, Any] | None]
    LogToClient: TypeAlias = Callable[[Call, str, Any, str | None], None]


class Methods:
    """The tables of methods, notifications and capabilities, by revision.

    Attributes:
        instructions: Sentences of the instructions for a model; may be empty.
        log_to_client: Sends a log message for a call. Takes the call, the level, the data and the
            logger, see ``Call.log``. Without the feature it does nothing.
    """

    def __init__(self) -> None:
        self.instructions: list[str] = []
        self.log_to_client: LogToClient = lambda *_message: None
        self._requests: dict[tuple[str, str], Method] = {}
        self._notifications: dict[tuple[str, str], Listener] = {}
        self._capabilities: dict[str, dict[str, Any]] = {}

    def request(
        self,
        name: str,
        revisions: Iterable[str],
        handler: Handler,
        *,
        slow: bool = False,
        endless: bool = False,
        cacheable: bool = False,
    ) -> None:
        method = Method(name, handler, slow=slow, endless=endless, cacheable=cacheable)
        for revision in revisions:
            self._requests[name, revision] = method

    def around(self, name: str, revisions: Iterable[str], wrap: Wrap) -> None:
        """Let calls of a method go through ``wrap``, which gets the handler and may call it."""
        for revision in revisions:
            method = self.find(name, revision)
            if method is not None:
                self.request(
                    name,
                    [revision],
                    partial(wrap, method.handler),
                    slow=method.slow,
                    endless=method.endless,
                    cacheable=method.cacheable,
                )

    def notification(self, name: str, revisions: Iterable[str], listener: Listener) -> None:
        """Add a notification to some revisions. Its listener runs on the reading thread."""
        for revision in revisions:
            self._notifications[name, revision] = listener

    def capability(self, name: str, value: dict[str, Any], revisions: Iterable[str]) -> None:
        for revision in revisions:
            self._capabilities.setdefault(revision, {})[name] = value

    def find(self, name: str, revision: str) -> Method | None:
        return self._requests.get((name, revision))

    def listener(self, name: str, revision: str) -> Listener | None:
        return self._notifications.get((name, revision))

    def introduction(self) -> dict[str, Any]:
        """Return the member ``instructions`` for the answer that describes the server."""
        if not self.instructions:
            return {}
        return {"instructions": " ".join([*self.instructions, "An error says what to do next."])}

    def capabilities(self, revision: str) -> dict[str, Any]:
        return dict(self._capabilities.get(revision, {}))
