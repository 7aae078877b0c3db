"""Servers that break a rule of server/resources: leaving the tree, telling of changes."""

import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.mutants.kit import MODERN, Fault, Json, Out, SaysMore, has, mutant, mutants, params
from tests.mutants.resources import README

OLD = "2024-11-05"
UPDATED = "notifications/resources/updated"
CHANGED = "notifications/resources/list_changed"


class _Open(Fault):
    """Reads files by their address."""

    prefix = "workspace:///"

    def heard(self, line: bytes, message: Any) -> bytes | None:
        uri = params(message).get("uri") if isinstance(message, dict) else None
        if isinstance(uri, str) and uri.startswith(self.prefix):
            file = self.file(uri.removeprefix(self.prefix))
            if message.get("method") == "resources/read" and file is not None and file.is_file():
                contents = {"uri": README, "text": file.read_text(encoding="utf-8")}
                hints = {"ttlMs": 0, "cacheScope": "private"}
                self.answer(message, {"contents": [contents], **hints})
                return None
        return line

    def file(self, path: str) -> Path | None:
        """Return the file that is read; None where nothing is wrong with the path."""
        read = unquote(path)
        return Path(sys.argv[-1], read) if ".." in read else None


mutants("resources-path-traversal-legacy", of=_Open)(
    ClimbsOutOfTheTree="Follows .. in a URI out of the tree."
)


@mutant("resources-path-traversal", revision=MODERN)
class DecodesTwice(_Open):
    """Checks for .. in a URI before the last decoding."""

    def file(self, path: str) -> Path | None:
        once = unquote(path)
        return None if ".." in once else super().file(once)


@mutant("resources-path-traversal", revision=MODERN)
class TurnsBackslashesAfterTheCheck(_Open):
    """Turns backslashes into slashes after its check for climbs."""

    def file(self, path: str) -> Path | None:
        read = unquote(path)
        return None if "../" in read else super().file(read.replace("\\", "/"))


mutants("resources-path-traversal-legacy", of=_Open, revision=OLD, outcome="warn")(
    ReadsByAbsolutePath=has(
        "Reads any file by its plain address.",
        prefix="file://",
        file=lambda self, path: Path(unquote(path)),
    )
)


class _Swallows(Fault):
    """Drops a notification."""

    method = CHANGED

    def said(self, message: Any, request: Json) -> Out:
        if isinstance(message, dict) and message.get("method") == self.method:
            return None
        return message  # type: ignore[no-any-return]


mutants("resources-list-changed-notification-legacy", of=_Swallows)(
    DropsListChanges="Declares listChanged and never announces changes of the list."
)
mutants("resources-list-changed-notification", of=_Swallows, revision=MODERN)(
    DropsListChangesOfSubscriptions=(
        "Accepts a subscription to the list and never announces changes."
    )
)
mutants("resources-updated-notification-legacy", of=_Swallows)(
    DropsUpdates=has(
        "Accepts a subscription to a resource and never announces changes.", method=UPDATED
    )
)
mutants("resources-updated-notification", of=_Swallows, revision=MODERN)(
    DropsUpdatesOfSubscriptions=has(
        "Acknowledges a subscription to a resource and never announces changes.", method=UPDATED
    )
)


class _Requested(Fault):
    """Handles one method in its own way."""

    method = "resources/subscribe"

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == self.method:
            return self.take(line, message)
        return line

    def take(self, line: bytes, request: Json) -> bytes | None:
        """Answer it."""
        self.answer(request, {})
        return None


mutants("resources-subscribe-result", of=_Requested)(
    RefusesSubscriptions=has(
        "Declares subscribe and refuses subscriptions to listed resources.",
        take=lambda self, line, request: (
            self.refuse(request, -32603, "Too busy")
            if params(request).get("uri") not in {"", "not a uri", 7}
            else line
        ),
    )
)
mutants("resources-subscribe-removed", of=_Requested, revision=MODERN)(
    AcceptsTheRemovedSubscribe="Accepts resources/subscribe in a stateless revision."
)


@mutant("resources-updated-shape")
class UpdatesWithoutAUri(_Requested):
    """Announces an update without a URI."""

    def take(self, line: bytes, request: Json) -> bytes | None:
        if params(request).get("uri") == README:
            self.emit({"jsonrpc": "2.0", "method": UPDATED, "params": {"url": README}})
        return line


@mutant("resources-updated-only-after-subscribe", revision=OLD)
class UpdatesWithoutSubscription(SaysMore):
    """Announces an update without a subscription."""

    def more(self) -> None:
        self.emit({"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": README}})


mutants("resources-no-updates-after-unsubscribe", of=_Requested)(
    IgnoresUnsubscribe=has(
        "Confirms unsubscribe and still sends updates.", method="resources/unsubscribe"
    )
)


@mutant("resources-not-found-code", revision=MODERN, outcome="warn")
class ReadsAnyUri(Fault):
    """Returns contents for any URI of an unused scheme."""

    def said(self, message: Any, request: Json) -> Out:
        uri = params(request).get("uri")
        if (
            request.get("method") == "resources/read"
            and isinstance(uri, str)
            and uri.startswith("touchstone-never://")
            and uri.endswith("/nothing")
        ):
            contents = {"uri": uri, "text": "whatever"}
            hints = {"ttlMs": 0, "cacheScope": "private"}
            self.answer(request, {"contents": [contents], **hints})
            return None
        return message  # type: ignore[no-any-return]
