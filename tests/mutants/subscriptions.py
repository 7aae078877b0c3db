"""Servers that break a rule of basic/patterns/subscriptions."""

import os
import time
from functools import partial
from typing import Any, ClassVar

from tests.mutants.kit import (
    LATE,
    META,
    MODERN,
    Fault,
    Json,
    Out,
    control,
    controls,
    drops,
    has,
    mutant,
    mutants,
    params,
    puts,
    refusal,
    taken_back,
)

ID = META + "subscriptionId"
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CHANGED = "notifications/tools/list_changed"
NEW_RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"
README = "workspace:///README.md"


def _notification(method: str, own: Any, **more: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": {"_meta": {ID: own}, **more}}


def _closing(own: Any) -> Json:
    return {"_meta": {ID: own, META + "serverInfo": {"name": "mutant", "version": "1"}}}


def _own(message: Json) -> Any:
    return params(message).get("_meta", {}).get(ID)


class _Streams(Fault):
    """Changes its subscription messages."""

    def said(self, message: Any, request: Json) -> Out:
        if isinstance(message, dict) and message.get("method") == ACKNOWLEDGED:
            return self.acknowledge(message, self.asked.get(_own(message), {}))
        return message  # type: ignore[no-any-return]

    def acknowledge(self, message: Json, request: Json) -> Out:
        """Return what is sent in place of an acknowledgment."""
        return message

    def close(self, request: Json) -> None:
        """End a subscription of our own accord."""
        body = {"requestId": request["id"]}
        self.pass_on({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": body})
        self.answer(request, _closing(request["id"]))

    def wanted(self, request: Json) -> Json:
        """Return the filter of a request."""
        found = params(request).get("notifications")
        return found if isinstance(found, dict) else {}


class _Unlistened(Fault):
    """Has no subscriptions/listen."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == LISTEN:
            self.refuse(message, -32601, "Method not found")
            return None
        return line


mutants("subscriptions-listen-supported", of=_Unlistened, revision=MODERN)(
    PromisesChangesWithoutListen="Promises change notifications and has no subscriptions/listen."
)


@mutant("subscriptions-listen-supported", revision=MODERN, outcome="note")
class HasNeitherChangesNorListen(_Unlistened):
    """Promises no change notifications and has no subscriptions/listen."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "server/discover" and "result" in message:
            capabilities = message["result"]["capabilities"]
            capabilities["tools"], capabilities["resources"] = {}, {}
        return message  # type: ignore[no-any-return]


@mutant("subscriptions-listen-supported", revision=MODERN)
class RefusesListenLate(_Unlistened):
    """Has no subscriptions/listen, and says so late, as a busy server may."""

    def refuse(self, request: Json, code: int, message: str, data: Any = None) -> None:
        action = partial(super().refuse, request, code, message, data)
        self.later(LATE, action)


@mutant("subscriptions-ack-first", revision=MODERN)
class NotifiesBeforeItAcknowledges(_Streams):
    """Announces new resources before it acknowledges the subscription."""

    def acknowledge(self, message: Json, request: Json) -> Out:
        if self.wanted(request).get("resourcesListChanged"):
            self.emit(_notification(NEW_RESOURCES, request["id"]))
        return message


mutants("subscriptions-ack-first", of=_Streams, revision=MODERN)(
    AcknowledgesWithAResult=has(
        "Answers a subscription to everything with an empty result at once.",
        acknowledge=lambda self, message, request: (
            self.close(request) if len(self.wanted(request)) > 1 else message
        ),
    )
)
mutants("subscriptions-ack-subset", of=_Streams, revision=MODERN)(
    AcknowledgesMoreThanRequested=has(
        "Acknowledges tools for every filter.",
        acknowledge=puts("params", "notifications", "toolsListChanged", True),
    ),
    AcknowledgesWithoutAFilter=has(
        "Acknowledges a subscription without the supported filter.",
        acknowledge=drops("params", "notifications"),
    ),
)


@mutant("subscriptions-ack-subset", revision=MODERN)
class AcknowledgesUrisAsText(_Streams):
    """Gives the supported URIs as one string."""

    def acknowledge(self, message: Json, request: Json) -> Out:
        given = message["params"]["notifications"]
        if given.get("resourceSubscriptions"):
            given["resourceSubscriptions"] = given["resourceSubscriptions"][0]
        return message


@mutant("subscriptions-ack-subset", revision=MODERN, outcome="warn")
class AcknowledgesNormalisedUris(_Streams):
    """Writes the scheme of the supported URIs in capitals, and encodes a letter."""

    def acknowledge(self, message: Json, request: Json) -> Out:
        given = message["params"]["notifications"]
        uris = given.get("resourceSubscriptions", [])
        given["resourceSubscriptions"] = [
            uri.replace("E", "%45").replace("workspace:", "WORKSPACE:") for uri in uris
        ]
        return message


@mutant("subscriptions-ack-subset", revision=MODERN, outcome="warn")
class AcknowledgesWithFalse(_Streams):
    """Gives false for unsupported members."""

    def acknowledge(self, message: Json, request: Json) -> Out:
        if self.wanted(request).get("promptsListChanged"):
            message["params"]["notifications"]["promptsListChanged"] = False
        return message


@mutant("subscriptions-filter-required", revision=MODERN)
class AcceptsAMissingFilter(_Streams):
    """Treats a missing filter as an empty one."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        listens = isinstance(message, dict) and message.get("method") == LISTEN
        if listens and "notifications" not in params(message):
            self.emit(_notification(ACKNOWLEDGED, message["id"], notifications={}))
            return None
        return line


controls("subscriptions-filter-required", of=Fault, revision=MODERN)(
    RefusesAMissingFilterLate=has(
        "Refuses a subscription without a filter late, as a busy server may.",
        said=lambda self, message, request: (
            message
            if request.get("method") != LISTEN or "error" not in message
            else self.later(LATE, lambda: self.emit(message))
        ),
    )
)
mutants("subscriptions-filter-required", of=Fault, revision=MODERN)(
    FailsWithoutAFilter=has(
        "Answers a subscription without a filter with an internal error.",
        said=lambda self, message, request: (
            refusal(request, -32603, "Internal error")
            if request.get("method") == LISTEN and "error" in message
            else message
        ),
    )
)


@mutant("subscriptions-only-requested", revision=MODERN)
class AnnouncesToolsOnEverySubscription(_Streams):
    """Announces new tools on every subscription."""

    def acknowledge(self, message: Json, request: Json) -> Out:
        self.emit(message)
        self.emit(_notification(CHANGED, request["id"]))
        return None


@mutant("subscriptions-only-requested", revision=MODERN)
class UpdatesOnAnEmptySubscription(_Streams):
    """Sends an update of a resource on an empty subscription."""

    def acknowledge(self, message: Json, request: Json) -> Out:
        self.emit(message)
        if "resourceSubscriptions" not in self.wanted(request):
            self.emit(_notification(UPDATED, request["id"], uri=README))
        return None


@mutant("subscriptions-only-requested", revision=MODERN, outcome="warn")
class UpdatesAnotherResource(_Streams):
    """Sends an update of another resource than the subscribed one."""

    def acknowledge(self, message: Json, request: Json) -> Out:
        self.emit(message)
        if self.wanted(request).get("resourceSubscriptions"):
            self.emit(_notification(UPDATED, request["id"], uri="workspace:///other.txt"))
        return None


@mutant(
    "subscriptions-id-in-meta", revision=MODERN, elsewhere=("resources-updated-notification=warn",)
)
class WritesItsIdsAsText(Fault):
    """Writes the id of a subscription as a string."""

    def said(self, message: Any, request: Json) -> Out:
        if isinstance(message, dict) and isinstance(_own(message), int):
            message["params"]["_meta"][ID] = str(_own(message))
        return message  # type: ignore[no-any-return]


@mutant(
    "subscriptions-id-in-meta", revision=MODERN, elsewhere=("resources-updated-notification=warn",)
)
class AcknowledgesOutOfOrder(Fault):
    """Writes ids as strings, and acknowledges string ids later."""

    def said(self, message: Any, request: Json) -> Out:
        if not isinstance(message, dict) or _own(message) is None:
            return message  # type: ignore[no-any-return]
        late = message.get("method") == ACKNOWLEDGED and isinstance(_own(message), str)
        message["params"]["_meta"][ID] = str(_own(message))
        if not late:
            return message
        self.later(0.3, lambda: self.emit(message))
        return None


@mutant(
    "subscriptions-id-in-meta", revision=MODERN, elsewhere=("resources-updated-notification=warn",)
)
class OmitsTheIdOfAnUpdate(Fault):
    """Leaves the subscription id out of an update."""

    def said(self, message: Any, request: Json) -> Out:
        if isinstance(message, dict) and message.get("method") == UPDATED:
            del message["params"]["_meta"]
        return message  # type: ignore[no-any-return]


@mutant("subscriptions-id-only-on-stream", revision=MODERN)
class PutsTheIdIntoProgress(Fault):
    """Puts the id of an open subscription into progress."""

    def said(self, message: Any, request: Json) -> Out:
        if isinstance(message, dict) and message.get("method") == "notifications/progress":
            streams = [own for own, one in self.asked.items() if one.get("method") == LISTEN]
            if streams:
                message["params"]["_meta"] = {ID: streams[-1]}
        return message  # type: ignore[no-any-return]


@mutant("subscriptions-concurrent", revision=MODERN)
class AllowsOneSubscription(_Streams):
    """Neither acknowledges nor refuses a subscription while another is open."""

    open: ClassVar[set[Any]] = set()

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == LISTEN:
            if self.wanted(message) == {"toolsListChanged": True} and self.open:
                return None
            if "notifications" in params(message):
                self.open.add(message["id"])
        self.open.discard(taken_back(message))
        return line


@mutant("subscriptions-concurrent", revision=MODERN)
class EndsAllStreamsAtOnce(_Streams):
    """Ends every subscription when one is cancelled."""

    ended: Json | None = None

    def heard(self, line: bytes, message: Any) -> bytes | None:
        wide = self.asked.get("touchstone-listen")
        cancels = isinstance(message, dict) and message.get("method") == "notifications/cancelled"
        if cancels and wide and wide is not self.ended and self.is_narrow(message):
            self.ended = wide
            body = {"requestId": wide["id"]}
            self.emit({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": body})
            self.close(wide)
        return line

    def is_narrow(self, cancellation: Json) -> bool:
        """Whether the stream that is cancelled is the one beside the wide one."""
        stream = self.asked.get(taken_back(cancellation), {})
        return self.wanted(stream) == {"toolsListChanged": True}


@mutant("subscriptions-stays-open", revision=MODERN)
class EndsAStreamAtOnce(_Streams):
    """Ends a subscription directly after the acknowledgment."""

    def acknowledge(self, message: Json, request: Json) -> Out:
        self.emit(message)
        self.close(request)
        return None


@control("subscriptions-stays-open", "subscriptions-graceful-close", revision=MODERN)
class EndsAStreamThatCarriesNothing(_Streams):
    """Ends a subscription to nothing directly after the acknowledgment."""

    def acknowledge(self, message: Json, request: Json) -> Out:
        self.emit(message)
        if not self.wanted(request):
            self.close(request)
        return None


@mutant("subscriptions-stays-open", revision=MODERN)
class AcknowledgesTwice(_Streams):
    """Acknowledges a subscription twice."""

    def acknowledge(self, message: Json, request: Json) -> Out:
        self.emit(message)
        return message


@mutant("subscriptions-cancel-ends", revision=MODERN)
class IgnoresACancelledSubscription(Fault):
    """Ignores the cancellation of a subscription to the list of resources."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        cancels = isinstance(message, dict) and message.get("method") == "notifications/cancelled"
        return None if cancels and params(message).get("requestId") == "touchstone-list" else line


@control("subscriptions-cancel-ends", "subscriptions-concurrent", revision=MODERN)
class ReadsACancellationLate(Fault):
    """Reads the cancellation of a subscription, and all lines after it, a second later."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if self.asked.get(taken_back(message), {}).get("method") == LISTEN:
            time.sleep(1.0)
        return line


@mutant("subscriptions-cancel-ends", revision=MODERN, outcome="warn")
class AnswersWhenCancelled(Fault):
    """Answers a subscription well after it was cancelled."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        request = self.asked.get(taken_back(message), {})
        if request.get("id") == "touchstone-list":
            self.later(1.0, lambda: self.answer(request, _closing(request["id"])))
        return line


class _EndsItself(Fault):
    """Ends an empty subscription after a second."""

    def said(self, message: Any, request: Json) -> Out:
        if isinstance(message, dict) and message.get("method") == ACKNOWLEDGED:
            stream = self.asked.get(_own(message), {})
            if stream.get("id") == "touchstone-nothing":
                self.later(0.9, lambda: self.close(stream))
        return message  # type: ignore[no-any-return]

    def close(self, stream: Json) -> None:
        """End it."""
        body = {"requestId": stream["id"]}
        self.pass_on({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": body})
        self.announce(stream)
        self.finish(stream)

    def announce(self, stream: Json) -> None:
        """Say that the stream is over."""
        body = {"requestId": stream["id"], "reason": "nobody listens"}
        self.emit({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": body})

    def finish(self, stream: Json) -> None:
        """Answer the request of the stream."""
        self.answer(stream, _closing(stream["id"]))


controls(
    "subscriptions-graceful-close",
    "subscriptions-close-result-shape",
    of=_EndsItself,
    revision=MODERN,
)(EndsAStreamGracefully="Ends a subscription by itself, with a notification and a result.")


@mutant("subscriptions-graceful-close", revision=MODERN)
class EndsAStreamWithoutAResult(_EndsItself):
    """Ends a subscription with only a notification."""

    def finish(self, stream: Json) -> None:
        del stream


mutants("subscriptions-graceful-close", of=Fault, revision=MODERN, outcome="note")(
    LeavesAtOnceOnSigterm=has(
        "Ends on SIGTERM without a word on its open subscriptions.",
        terminated=lambda *_: os._exit(0),
    )
)


@mutant("cancellation-server-only-for-listen", revision=MODERN, passes=("subscriptions-ack-first",))
class CancelsAStreamLongAfterItsEnd(_EndsItself):
    """Announces the end of a subscription again, when more requests were answered."""

    def announce(self, stream: Json) -> None:
        super().announce(stream)
        again = super().announce
        count = len(self.asked)

        def wait() -> None:
            if len(self.asked) > count + 1:
                again(stream)
            else:
                self.later(0.02, wait)

        self.later(0.1, wait)


mutants("subscriptions-close-result-shape", of=_EndsItself, revision=MODERN, outcome="note")(
    AddsNewsToTheFinalResult=has(
        "Adds a member of its own to the final result.",
        finish=lambda self, stream: self.answer(stream, {**_closing(stream["id"]), "sent": 0}),
    )
)
mutants("subscriptions-close-result-shape", of=_EndsItself, revision=MODERN)(
    EndsAStreamWithoutItsId=has(
        "Leaves the subscription id out of the final result.",
        finish=lambda self, stream: self.answer(stream, {}),
    ),
    EndsAStreamWithAnotherId=has(
        "Names another subscription in the final result.",
        finish=lambda self, stream: self.answer(stream, _closing(0)),
    ),
)
