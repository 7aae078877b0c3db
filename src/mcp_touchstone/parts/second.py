"""A further server of ours behind a gateway that joins several."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from mcp_touchstone.parts.part import INVALID_PARAMS, Json
from mcp_touchstone.parts.upstream import TOOLS, Upstream
from mcp_touchstone.wire.framing import value_in

SECOND: Final = "second-"
"""What its names begin with."""

PLACE: Final = "test://second/text"
"""Its resource."""

CALLED: Final = ("echo", "leave")
"""Its tools are like these."""


def _pages(beginning: str) -> Mapping[str, tuple[str, tuple[tuple[Json, ...], ...]]]:
    tools = [one for one in TOOLS if one["name"] in CALLED]
    return {
        "tools/list": ("tools", (tuple({**t, "name": beginning + t["name"]} for t in tools),)),
        "prompts/list": ("prompts", (({"name": f"{beginning}bare"},),)),
        "resources/list": ("resources", (({"uri": PLACE, "name": f"{SECOND}text"},),)),
        "resources/templates/list": ("resourceTemplates", ((),)),
    }


class Second(Upstream):
    """A server with other names than the first."""

    beginning: ClassVar[str] = SECOND
    pages = _pages(SECOND)
    contents: ClassVar[Mapping[str, list[Json]]] = {PLACE: [{"uri": PLACE, "text": "second"}]}

    def call(self, request: Json) -> None:
        """Answer tools/call."""
        name: Any = value_in(request, "params", "name")
        plain = str(name).removeprefix(self.beginning)
        if plain in CALLED and name == self.beginning + plain:
            super().call({**request, "params": {**request["params"], "name": plain}})
        else:
            self.refuse(request, INVALID_PARAMS, f"Unknown tool: {name}")


class Twin(Second):
    """A server with tools and prompts of the names that the first has too."""

    beginning = ""
    pages = _pages("")
