"""Our server behind a gateway whose clients differ: by their tokens, over HTTP."""

import json
import secrets
from collections.abc import Mapping
from typing import ClassVar, Final

from mcp_touchstone.parts.part import Json
from mcp_touchstone.parts.upstream import TOOLS, Upstream
from mcp_touchstone.wire.http_headers import MARK

TOKENS: Final = ("touchstone-token-of-one-client", "touchstone-token-of-another-client")
"""Tokens of clients for the gateway; our server never issued them."""

STAMP: Final = "This is result "
"""Beginning of the texts of a list, a resource and a prompt; the rest differs in each result."""

HEADER: Final = "Mark"
"""The argument that calls repeat in ``Mcp-Param-Mark``."""


def _marked(tool: Json) -> Json:
    schema = tool["inputSchema"]
    mark = {"type": "string", MARK: HEADER}
    return {**tool, "inputSchema": {**schema, "properties": {**schema["properties"], "mark": mark}}}


ECHO: Final = tuple(
    {**_marked(one), "description": STAMP} for one in TOOLS if one["name"] == "echo"
)
TEXT: Final = "test://upstream/text%20file.txt"
"""The resource."""


class Stamped(Upstream):
    """One tool, whose argument a header repeats; each list, resource and prompt is another one."""

    pages: ClassVar[Mapping[str, tuple[str, tuple[tuple[Json, ...], ...]]]] = {
        **Upstream.pages,
        "tools/list": ("tools", (ECHO,)),
    }

    contents: ClassVar = {TEXT: [{"uri": TEXT, "text": STAMP}]}
    results: ClassVar = {
        **Upstream.results,
        "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": STAMP}}]},
    }

    def answer(self, request: Json, result: Json) -> None:
        """Stamp a result."""
        stamped = json.dumps(result).replace(STAMP, f"{STAMP}{secrets.token_hex(8)}")
        super().answer(request, json.loads(stamped))


def over_http(fault: str) -> type[Upstream]:
    """Return our server with a fault over HTTP: COMMENTS, DROPS or REDIRECTS."""
    return type("Upstream", (Upstream,), {"http_fault": fault})
