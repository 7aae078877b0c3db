"""Our server behind a gateway, in trouble: late, wrong, changing, ended, or not ending."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from mcp_touchstone.parts.part import Json, Peer
from mcp_touchstone.parts.upstream import DATA, TOOLS, Upstream, text_in, tool
from mcp_touchstone.wire.framing import encode, object_in

GROWN: Final = "grown"
"""The tool that appears during a session."""

OWN: Final = "own-"
"""Prefix of the tool that only one session has."""

WORDLESS: Final = b"this line is no message\n"
"""What a server writes by mistake."""

UNPAIRED: Final = "half \ud83d of it"
"""A text that JSON can write, by an escape, and UTF-8 cannot."""


class Troubled(Upstream):
    """A server that answers late or wrongly, and whose list changes; one tool is of its session."""

    numbers: ClassVar[Iterator[int]] = itertools.count()

    def __init__(self, peer: Peer) -> None:
        super().__init__(peer)
        self._late: list[Json] = []
        self._own = f"{OWN}{next(self.numbers)}"
        self._more: list[Json] = [*DATA["troubled"]]

    def lists(self) -> Mapping[str, tuple[str, tuple[tuple[Json, ...], ...]]]:
        """Return the lists, with the tools of this session in that of the tools."""
        own = () if self.modern else (tool(self._own, "A tool of this session.", {}),)
        return {**super().lists(), "tools/list": ("tools", (TOOLS, (*self._more, *own)))}

    def call(self, request: Json) -> None:
        """Answer tools/call."""
        name = text_in(request, "name")
        mark = object_in(request, "params", "arguments").get("mark")
        if name == "tardy":
            self.begun(request, mark)
            self._late.append(request)
            return
        late, self._late = self._late, []
        for one in late:
            self.answer(one, self.text("tardy"))
        if name == "garbage":
            self.peer.write(WORDLESS)
            self.peer.write(encode({"jsonrpc": "2.0", "id": "of nobody", "result": {}}))
            self.say({"id": request.get("id"), "result": "no object"})
        elif name == "unpaired":
            self.answer(request, self.text(UNPAIRED))
        elif name == "grow":
            self._more.append(tool(GROWN, "A new tool.", {}))
            if not self.modern:  # there a subscription has its own stream
                self.say({"method": "notifications/tools/list_changed"})
            self.answer(request, self.text("grown"))
        elif name in {GROWN, self._own} and name in self._names():
            self.answer(request, self.text(name))
        else:
            super().call(request)

    def _names(self) -> list[Any]:
        return [one["name"] for page in self.lists()["tools/list"][1] for one in page]


class Stubborn(Upstream):
    """A server that goes on after the end of its input."""

    lingers = 60.0
