"""Faults in the declaration, the lists and the change notifications of any feature.

A chapter sets ``feature`` in a class of its own and combines it with the classes here.
"""

from typing import Any, ClassVar

from tests.mutants.kit import Fault, Json, Out, is_modern, params, refusal

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Listed(Fault):
    """Changes the declaration and the list of one feature.

    Attributes:
        feature: its capability, such as ``tools``.
    """

    feature: ClassVar[str] = ""

    def said(self, message: Any, request: Json) -> Out:
        method = request.get("method")
        if isinstance(message, dict) and "result" in message:
            if method in {"initialize", "server/discover"}:
                self.declare(message["result"]["capabilities"])
            elif method == f"{self.feature}/list":
                self.list(message["result"])
        return message  # type: ignore[no-any-return]

    def declare(self, capabilities: Json) -> None:
        """Change the capabilities."""

    def list(self, result: Json) -> None:
        """Change a list."""

    def grow(self, result: Json) -> None:
        """Add one item to a list."""


class Undeclared(Listed):
    """Does not declare the feature."""

    def declare(self, capabilities: Json) -> None:
        del capabilities[self.feature]


class ListsByName(Listed):
    """Gives its items as an object, by name."""

    def list(self, result: Json) -> None:
        result[self.feature] = {item["name"]: item for item in result[self.feature]}


class OmitsTheList(Listed):
    """Leaves the items out of the result."""

    def list(self, result: Json) -> None:
        del result[self.feature]


class ListsTheFirstTwice(Listed):
    """Lists the first item twice."""

    def list(self, result: Json) -> None:
        result[self.feature].append(dict(result[self.feature][0]))


class CannotList(Listed):
    """Declares the feature and answers its list request with an error."""

    CODE: ClassVar[int] = -32601

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == f"{self.feature}/list" and is_modern(request):
            return refusal(request, self.CODE, "Not now")
        return super().said(message, request)


class Growing(Listed):
    """Lists one more item while it is ``grown``."""

    grown = False
    lists = 0

    def list(self, result: Json) -> None:
        self.lists += 1
        if not self.grown and self.is_time():
            self.grown = True
            self.changed()
        if self.grown:
            self.grow(result)

    def is_time(self) -> bool:
        """Whether the list grows now: at the third request."""
        return self.lists == 3

    def changed(self) -> None:
        """Act on the change."""


class Announcing(Growing):
    """Announces that its list has grown."""

    def changed(self) -> None:
        self.emit({"jsonrpc": "2.0", "method": f"notifications/{self.feature}/list_changed"})


class Subscribed(Growing):
    """Lists one more item in the second list while a subscription to changes is open."""

    stream: Any = None

    def heard(self, line: bytes, message: Any) -> bytes | None:
        method = message.get("method") if isinstance(message, dict) else None
        wanted = {f"{self.feature}ListChanged": True}
        if method == "subscriptions/listen" and params(message).get("notifications") == wanted:
            self.stream, self.lists = message["id"], 0
            self.notify(ACKNOWLEDGED, {"notifications": wanted})
            self.opened()
            return None
        ends = method == "notifications/cancelled" and self.stream is not None
        if ends and params(message).get("requestId") == self.stream:
            self.stream, self.grown = None, False
            return None
        return super().heard(line, message)

    def notify(self, method: str, body: Json) -> None:
        """Send a notification on the subscription."""
        own = {"_meta": {"io.modelcontextprotocol/subscriptionId": self.stream}}
        self.emit({"jsonrpc": "2.0", "method": method, "params": {**own, **body}})

    def is_time(self) -> bool:
        return self.stream is not None and self.lists == 2

    def opened(self) -> None:
        """Act on a new subscription."""


class NotifyingSubscribers(Subscribed):
    """Notifies a subscription that the list has grown."""

    def changed(self) -> None:
        self.notify(f"notifications/{self.feature}/list_changed", {})
