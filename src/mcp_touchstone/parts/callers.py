"""Our server behind a gateway whose clients differ: by their tokens, over HTTP."""

import secrets
from collections.abc import Mapping
from typing import ClassVar, Final

from mcp_touchstone.parts.part import Json
from mcp_touchstone.parts.upstream import TOOLS, Upstream
from mcp_touchstone.wire.http_headers import MARK

TOKENS: Final = ("touchstone-token-of-one-client", "touchstone-token-of-another-client")
"""Tokens of clients for the gateway; our server never issued them."""

STAMP: Final = "Return a text; this is list "
"""Beginning of the description of the tool; the rest differs in each result of a list."""

HEADER: Final = "Mark"
"""The argument that calls repeat in ``Mcp-Param-Mark``."""


def _marked(tool: Json) -> Json:
    schema = tool["inputSchema"]
    mark = {"type": "string", MARK: HEADER}
    return {**tool, "inputSchema": {**schema, "properties": {**schema["properties"], "mark": mark}}}


ECHO: Final = tuple(_marked(one) for one in TOOLS if one["name"] == "echo")


class Stamped(Upstream):
    """One tool, whose argument a header repeats; each result of a list is another one."""

    pages: ClassVar[Mapping[str, tuple[str, tuple[tuple[Json, ...], ...]]]] = {
        **Upstream.pages,
        "tools/list": ("tools", (ECHO,)),
    }

    def answer(self, request: Json, result: Json) -> None:
        """Stamp a list of tools."""
        if "tools" in result:
            about = f"{STAMP}{secrets.token_hex(8)}"
            result = {**result, "tools": [{**one, "description": about} for one in result["tools"]]}
        super().answer(request, result)


def over_http(fault: str) -> type[Upstream]:
    """Return our server with a fault over HTTP: COMMENTS, DROPS or REDIRECTS."""
    return type("Upstream", (Upstream,), {"http_fault": fault})
