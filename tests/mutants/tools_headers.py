"""Servers that break a rule of server/tools: x-mcp-header."""

from typing import Any, ClassVar

from tests.mutants.kit import MODERN, Json, control, mutant
from tests.mutants.tools import OneMore


def _takes(**properties: Any) -> dict[str, Any]:
    return {"inputSchema": {"type": "object", "properties": properties}}


def _marked(header: Any, kind: Any = "string") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": header}


@mutant("tools-x-mcp-header-value", revision=MODERN)
class MarksWithSpaces(OneMore):
    """Names a header with a space in it."""

    TOOL: ClassVar[Json] = _takes(region=_marked("My Region"))


@mutant("tools-x-mcp-header-value", revision=MODERN)
class MarksWithANewline(OneMore):
    """Ends the name of a header with a newline."""

    TOOL: ClassVar[Json] = _takes(region=_marked("Region\n"))


@mutant("tools-x-mcp-header-value", revision=MODERN)
class MarksWithTrue(OneMore):
    """Marks a property with true in place of a name."""

    TOOL: ClassVar[Json] = _takes(region=_marked(True))


@mutant("tools-x-mcp-header-unique", revision=MODERN)
class MarksTwoPropertiesAlike(OneMore):
    """Gives two properties the same header in different case."""

    TOOL: ClassVar[Json] = _takes(region=_marked("Region"), area=_marked("REGION"))


@mutant("tools-x-mcp-header-primitive", revision=MODERN)
class MarksANumber(OneMore):
    """Marks a property of type number."""

    TOOL: ClassVar[Json] = _takes(share=_marked("Share", "number"))


@mutant("tools-x-mcp-header-primitive", revision=MODERN, outcome="note")
class MarksAUnion(OneMore):
    """Marks a property that is a string or null."""

    TOOL: ClassVar[Json] = _takes(region=_marked("Region", ["string", "null"]))


@mutant("tools-x-mcp-header-reachable", revision=MODERN)
class MarksAnItem(OneMore):
    """Marks the items of a list."""

    TOOL: ClassVar[Json] = _takes(regions={"type": "array", "items": _marked("Region")})


@mutant("tools-x-mcp-header-reachable", revision=MODERN)
class MarksAReference(OneMore):
    """Marks a definition that properties refer to."""

    TOOL: ClassVar[Json] = {
        "inputSchema": {
            "type": "object",
            "properties": {"region": {"$ref": "#/$defs/region"}},
            "$defs": {"region": _marked("Region")},
        }
    }


@mutant("tools-x-mcp-header-not-sensitive", revision=MODERN)
class MarksAPassword(OneMore):
    """Marks a password."""

    TOOL: ClassVar[Json] = _takes(password=_marked("Pass"))


@control(
    "tools-x-mcp-header-value",
    "tools-x-mcp-header-unique",
    "tools-x-mcp-header-primitive",
    "tools-x-mcp-header-reachable",
    "tools-x-mcp-header-not-sensitive",
    revision=MODERN,
)
class MarksCorrectly(OneMore):
    """Marks two properties, one of them in an object; another property has that name."""

    TOOL: ClassVar[Json] = _takes(
        region=_marked("Region"),
        place={"type": "object", "properties": {"zone": _marked("Zone", "integer")}},
        **{"x-mcp-header": {"type": "string", "default": {"x-mcp-header": "no mark"}}},
    )
