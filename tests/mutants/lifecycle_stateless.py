"""Servers that break a rule of basic/lifecycle on statelessness."""

import threading
import uuid
from typing import Any, ClassVar

from tests.mutants.asking import Interrupts
from tests.mutants.kit import (
    MODERN,
    AskingTool,
    Fault,
    Json,
    Out,
    client_capabilities,
    control,
    controls,
    is_modern,
    mutant,
    params,
    refusal,
)


def lists_tools(request: Json) -> bool:
    """Whether a request is a stateless tools/list."""
    return request.get("method") == "tools/list" and is_modern(request)


@mutant("lifecycle-stateless-no-prior-context", revision=MODERN)
class LoadsItsToolsOnDiscover(Fault):
    """Lists no tools before the first server/discover."""

    def said(self, message: Any, request: Json) -> Out:
        known = any(r.get("method") == "server/discover" for r in self.asked.values())
        if lists_tools(request) and "result" in message and not known:
            message["result"]["tools"] = []
        return message  # type: ignore[no-any-return]


@mutant(
    "lifecycle-stateless-no-prior-context", "versioning-dual-era-modern-request", revision=MODERN
)
class ListsNothingWithoutDiscover(Fault):
    """Lists no tools in a process whose first message was not server/discover."""

    def said(self, message: Any, request: Json) -> Out:
        first = next(iter(self.asked.values()), {}).get("method")
        if lists_tools(request) and first != "server/discover":
            return refusal(request, -32600, "the server is not initialized")
        return message  # type: ignore[no-any-return]


@mutant("lifecycle-stateless-no-prior-context", revision=MODERN)
class RemembersElicitationOfOthers(Fault):
    """Shows a tool to every client after one client declared elicitation."""

    def said(self, message: Any, request: Json) -> Out:
        able = any("elicitation" in client_capabilities(r) for r in self.asked.values())
        if lists_tools(request) and "result" in message and able:
            message["result"]["tools"].append(dict(AskingTool.TOOL))
        return message  # type: ignore[no-any-return]


@control("lifecycle-stateless-no-prior-context", revision=MODERN)
class ShowsToolsByCapability(Fault):
    """Shows a tool to requests that declare elicitation."""

    def said(self, message: Any, request: Json) -> Out:
        if (
            lists_tools(request)
            and "result" in message
            and "elicitation" in client_capabilities(request)
        ):
            message["result"]["tools"].append(dict(AskingTool.TOOL))
        return message  # type: ignore[no-any-return]


@control("tools-list-must-answer", revision=MODERN)
class CountsItsListsInADescription(Fault):
    """Writes another description of its first tool into each list."""

    lists = 0

    def said(self, message: Any, request: Json) -> Out:
        if lists_tools(request) and "result" in message:
            self.lists += 1
            message["result"]["tools"][0]["description"] = f"Listed {self.lists} times."
        return message  # type: ignore[no-any-return]


@mutant("lifecycle-stateless-multiplexing", "subscriptions-graceful-close=note", revision=MODERN)
class ServesOneAtATime(Fault):
    """Refuses a request while another is served."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[Json] = []
        self.holding = threading.Lock()

    def said(self, message: Any, request: Json) -> Out:
        if not is_modern(request) or "result" not in message:
            return message  # type: ignore[no-any-return]
        with self.holding:
            self.held.append(message)
        self.later(0.03, self.release)
        return None

    def release(self) -> None:
        """Answer what was held back meanwhile."""
        with self.holding:
            held, self.held = self.held, []
        for message in held[1:]:
            self.refuse(message, -32603, "busy")
        for message in held[:1]:
            self.emit(message)


class Pages(Fault):
    """The reference server with its tools on two pages."""

    cursor = "page-2"

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and lists_tools(message) and "cursor" in params(message):
            given = dict(params(message))
            if given.pop("cursor") != self.cursor:
                self.refuse(message, -32602, "unknown cursor")
                return None
            self.pass_on(message | {"params": given})
            return None
        return line

    def said(self, message: Any, request: Json) -> Out:
        if lists_tools(request) and "result" in message:
            tools = message["result"]["tools"]
            if "cursor" in params(request):
                message["result"]["tools"] = tools[1:]
            else:
                message["result"]["tools"] = tools[:1]
                message["result"]["nextCursor"] = self.cursor
        return message  # type: ignore[no-any-return]


controls("lifecycle-stateless-no-affinity", of=Pages, revision=MODERN)(
    PagesItsTools="Gives cursors that every process of the server accepts."
)


@mutant("lifecycle-stateless-no-affinity", revision=MODERN)
class KeepsItsCursors(Pages):
    """Gives cursors that only the issuing process accepts."""

    def __init__(self) -> None:
        super().__init__()
        self.cursor = uuid.uuid4().hex


class AsksForInput(Interrupts):
    """A stateless tool that asks for input, with a requestState."""

    step: str = "step-1"
    MISSING: ClassVar[Json] = {"requiredCapabilities": {"elicitation": {}}}

    def cannot(self, request: Json) -> None:
        self.refuse(request, -32021, "Elicitation is needed", self.MISSING)

    def state(self, request: Json) -> str:
        return self.step


controls("lifecycle-stateless-no-affinity", of=AsksForInput, revision=MODERN)(
    SharesItsState="Gives request states that every process of the server accepts."
)


@mutant("lifecycle-stateless-no-affinity", revision=MODERN)
class KeepsItsState(AsksForInput):
    """Gives request states that only the issuing process accepts."""

    def __init__(self) -> None:
        super().__init__()
        self.step = uuid.uuid4().hex
