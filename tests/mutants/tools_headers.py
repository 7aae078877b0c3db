"""Servers that break a rule of server/tools: x-mcp-header."""

from typing import Any

from tests.mutants.kit import MODERN, controls, has, mutants
from tests.mutants.tools import OneMore


def _takes(**properties: Any) -> dict[str, Any]:
    return {"inputSchema": {"type": "object", "properties": properties}}


def _marked(header: Any, kind: Any = "string") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": header}


mutants("tools-x-mcp-header-value", of=OneMore, revision=MODERN)(
    MarksWithANewline=has(
        "Ends the name of a header with a newline.", TOOL=_takes(region=_marked("Region\n"))
    ),
    MarksWithTrue=has(
        "Marks a property with true in place of a name.", TOOL=_takes(region=_marked(True))
    ),
)
mutants("tools-x-mcp-header-unique", of=OneMore, revision=MODERN)(
    MarksTwoPropertiesAlike=has(
        "Gives two properties the same header in different case.",
        TOOL=_takes(region=_marked("Region"), area=_marked("REGION")),
    )
)
mutants("tools-x-mcp-header-primitive", of=OneMore, revision=MODERN)(
    MarksANumber=has(
        "Marks a property of type number.", TOOL=_takes(share=_marked("Share", "number"))
    )
)
mutants("tools-x-mcp-header-primitive", of=OneMore, revision=MODERN, outcome="note")(
    MarksAUnion=has(
        "Marks a property that is a string or null.",
        TOOL=_takes(region=_marked("Region", ["string", "null"])),
    )
)
mutants("tools-x-mcp-header-reachable", of=OneMore, revision=MODERN)(
    MarksAnItem=has(
        "Marks the items of a list.",
        TOOL=_takes(regions={"type": "array", "items": _marked("Region")}),
    ),
    MarksAReference=has(
        "Marks a definition that properties refer to.",
        TOOL={
            "inputSchema": {
                "type": "object",
                "properties": {"region": {"$ref": "#/$defs/region"}},
                "$defs": {"region": _marked("Region")},
            }
        },
    ),
)
mutants("tools-x-mcp-header-not-sensitive", of=OneMore, revision=MODERN)(
    MarksAPassword=has("Marks a password.", TOOL=_takes(password=_marked("Pass")))
)
controls(
    "tools-x-mcp-header-value",
    "tools-x-mcp-header-unique",
    "tools-x-mcp-header-primitive",
    "tools-x-mcp-header-reachable",
    "tools-x-mcp-header-not-sensitive",
    of=OneMore,
    revision=MODERN,
)(
    MarksCorrectly=has(
        "Marks two properties, one of them in an object; another property has that name.",
        TOOL=_takes(
            region=_marked("Region"),
            place={"type": "object", "properties": {"zone": _marked("Zone", "integer")}},
            **{"x-mcp-header": {"type": "string", "default": {"x-mcp-header": "no mark"}}},
        ),
    )
)
