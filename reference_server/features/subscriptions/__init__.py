"""Subscribers and their notifications.

A legacy session subscribes to single resources (server/resources#subscriptions). Once it is ready,
it is notified of changes of lists without a subscription. In 2026-07-28, a client is notified only
on a stream that it opens with ``subscriptions/listen`` (basic/patterns/subscriptions).

The code that makes a change announces it; a ``watcher`` detects the changes of other programs.
"""

from __future__ import annotations

import threading

from ...content import uris
from ...content.resources import asked_for, not_found
from ...protocol.envelope import object_of
from ...protocol.errors import invalid_params, invalid_request
from ...protocol.framing import encode
from .watcher import Watcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ...protocol.calls import Call
    from ...protocol.messages import Params
    from ...surface import Surface
    from .watcher import Look

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"

MOST_STREAMS = 64
MOST_URIS = 1000
"""Maximum number of resources that one stream, or the session, may subscribe to."""

_MOMENT = 1.0
"""Maximum time for the last messages, in seconds."""

_LISTS = {
    "toolsListChanged": "tools",
    "promptsListChanged": "prompts",
    "resourcesListChanged": "resources",
}
"""Member of the filter -> capability whose ``listChanged`` it requires."""


class Listener:
    """The legacy session as a subscriber.

    Attributes:
        paths: The subscribed resources, as URI -> path.
        looks: State of each file at the last notification, by path.
        listed: Paths of the resources in the last list that the client knows; None before that.
    """

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self.paths: dict[str, str] = {}
        self.looks: dict[str, Look] = {}
        self.listed: frozenset[str] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether it may be notified now. Earlier changes are announced then."""
        return self._surface.connection.session.ready

    def wants_list(self, name: str) -> bool:
        revision = self._surface.connection.session.revision
        return revision is not None and _promised(self._surface, revision, name, "listChanged")

    @property
    def watches_list(self) -> bool:
        """Whether to announce a new file; only to a client that has listed the resources."""
        return self.listed is not None and self.wants_list("resources")

    def notify(self, method: str, params: Params) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = params
        self._surface.connection.send(encode(message))

    def compare(self, looks: dict[str, Look], listed: frozenset[str] | None) -> None:
        """Announce and record changes; ``listed`` is None if the list is not needed."""
        for uri, path in self.paths.items():
            if path in looks and looks[path] != self.looks.get(path):
                self.notify("notifications/resources/updated", {"uri": uri})
        self.looks.update((path, looks[path]) for path in self.paths.values() if path in looks)
        if listed is not None and listed != self.listed:
            self.listed = listed
            self.notify("notifications/resources/list_changed", {})


class Stream(Listener):
    """An open ``subscriptions/listen`` as a subscriber.

    Args:
        call: The request; its id marks all messages of the stream.
        lists: Capabilities whose lists the client wants to be notified of.
    """

    is_ready = True

    def __init__(self, surface: Surface, call: Call, lists: Iterable[str]) -> None:
        super().__init__(surface)
        self.call = call
        self._lists = frozenset(lists)

    def wants_list(self, name: str) -> bool:
        return name in self._lists

    @property
    def watches_list(self) -> bool:
        return "resources" in self._lists

    def notify(self, method: str, params: Params) -> None:
        self.call.notify(method, {"_meta": {SUBSCRIPTION_ID: self.call.id}, **params})

    def end(self) -> None:
        """End the stream (#graceful-closure)."""
        self.call.finish({"_meta": {SUBSCRIPTION_ID: self.call.id}})


class Subscriptions:
    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        # Held during notifications, because none may follow the answer to an unsubscribe.
        self._lock = threading.Lock()
        self._session = Listener(surface)
        self._streams: list[Stream] = []
        self._watcher = Watcher(surface, self)

    # --- announcements

    def resource_updated(self, uri: str) -> None:
        with self._lock:
            for listener in self._ready():
                if uri in listener.paths:
                    listener.notify("notifications/resources/updated", {"uri": uri})

    def list_changed(self, name: str) -> None:
        """Announce a change of ``tools/list``, ``prompts/list`` or ``resources/list``."""
        with self._lock:
            for listener in self._ready():
                if listener.wants_list(name):
                    listener.notify(f"notifications/{name}/list_changed", {})

    def _ready(self) -> list[Listener]:
        """Return the subscribers that may be notified now, and remove ended streams."""
        self._streams = [stream for stream in self._streams if not stream.call.cancelled]
        return [one for one in (self._session, *self._streams) if one.is_ready]

    # --- requests

    def subscribe(self, call: Call) -> dict[str, Any]:
        target = asked_for(call)
        seen = self._surface.workspace.look(target.path)
        if seen is None:
            raise not_found(target.uri, call)
        with self._lock:
            if len(self._session.paths) >= MOST_URIS and target.uri not in self._session.paths:
                raise invalid_params(f"at most {MOST_URIS} resources can be subscribed to")
            self._session.paths[target.uri] = target.path
            self._session.looks[target.path] = seen
            self._watch()
        return {}

    def unsubscribe(self, call: Call) -> dict[str, Any]:
        """Answer ``resources/unsubscribe``; a missing subscription is not an error."""
        target = asked_for(call)
        with self._lock:
            self._session.paths.pop(target.uri, None)
        return {}

    def listed(self, call: Call, paths: frozenset[str]) -> None:
        """Record a list of resources that is sent to the client.

        A session is notified of differences from its first list. No change between that list and
        the first check of the watcher is therefore lost.
        """
        with self._lock:
            if call.session:
                if self._session.listed is None:
                    self._session.listed = paths
                self._watch()
            for listener in self._ready():
                if listener.watches_list:
                    listener.compare({}, paths)

    def listen(self, call: Call) -> None:
        """Open a stream; the answer to ``subscriptions/listen`` ends it.

        The files are examined before the acknowledgment, so that all later changes are announced.
        The acknowledgment must be the first message of the stream (#acknowledgment).
        """
        lists, wanted = self._read_filter(call)
        stream = Stream(self._surface, call, (_LISTS[member] for member in lists))
        for uri in wanted or ():
            target = uris.target_of(uri)
            seen = self._surface.workspace.look(target.path) if target else None
            if target and seen:
                stream.paths[uri] = target.path
                stream.looks[target.path] = seen
        if stream.watches_list:
            files = self._surface.part("content.resources").files(call)
            stream.listed = frozenset(entry.path for entry in files)
        honoured: dict[str, Any] = dict.fromkeys(lists, True)
        if wanted is not None:
            honoured["resourceSubscriptions"] = list(stream.paths)
        with self._lock:
            self._ready()
            if len(self._streams) >= MOST_STREAMS:
                raise invalid_request(f"at most {MOST_STREAMS} subscriptions can be open")
            stream.notify("notifications/subscriptions/acknowledged", {"notifications": honoured})
            self._streams.append(stream)
            self._watch()

    def _read_filter(self, call: Call) -> tuple[list[str], list[str] | None]:
        """Return the supported lists and URIs in a filter; None instead of URIs if unsupported."""
        wanted = object_of(call.params, "notifications")
        for member in _LISTS:
            if not isinstance(wanted.get(member, False), bool):
                raise invalid_params(f"notifications.{member} must be true or false")
        listed = wanted.get("resourceSubscriptions")
        strings = isinstance(listed, list) and all(isinstance(uri, str) for uri in listed)
        if "resourceSubscriptions" in wanted and not strings:
            raise invalid_params("notifications.resourceSubscriptions must be an array of strings")
        if listed and len(listed) > MOST_URIS:
            raise invalid_params(f"at most {MOST_URIS} resources can be subscribed to")
        lists = [
            member
            for member, name in _LISTS.items()
            if wanted.get(member) and _promised(self._surface, call.revision, name, "listChanged")
        ]
        promised = _promised(self._surface, call.revision, "resources", "subscribe")
        return lists, listed if promised else None

    # --- for the watcher

    def _wanted(self) -> tuple[frozenset[str], bool] | None:
        everybody = (self._session, *self._streams)
        paths = frozenset(path for one in everybody for path in one.paths.values())
        lists = any(one.watches_list for one in everybody)
        return (paths, lists) if paths or lists else None

    def _watch(self) -> None:
        if self._wanted():
            self._watcher.start()

    def watched(self) -> tuple[frozenset[str], bool] | None:
        """Return the paths to check and whether to check the list; None to end the watch."""
        with self._lock:
            self._ready()
            wanted = self._wanted()
            if wanted is None:
                self._watcher.ended()
            return wanted

    def compare(self, looks: dict[str, Look], listed: frozenset[str] | None) -> None:
        with self._lock:
            for listener in self._ready():
                listener.compare(looks, listed if listener.watches_list else None)

    def end(self) -> None:
        """End the watch and the streams, while the client can still receive messages.

        Later changes are not announced. The messages are sent on a thread, because a client that
        no longer reads must not keep the server alive.
        """
        self._watcher.close()
        ending = threading.Thread(target=self._end_streams, name="mcp-ending", daemon=True)
        ending.start()
        ending.join(_MOMENT)

    def _end_streams(self) -> None:
        with self._lock:
            self._ready()
            for stream in self._streams:
                stream.end()
            self._streams = []


def build(surface: Surface) -> Subscriptions:
    """Build the part ``subscriptions``."""
    return Subscriptions(surface)


def _promised(surface: Surface, revision: str, name: str, flag: str) -> bool:
    return bool(surface.methods.capabilities(revision).get(name, {}).get(flag))
