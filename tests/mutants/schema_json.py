"""Servers that break a rule of basic/schema: on icons, and on the JSON Schemas a server sends."""

from typing import Any, ClassVar

from tests.mutants.kit import (
    MODERN,
    AskingTool,
    Fault,
    Json,
    Out,
    control,
    controls,
    has,
    mutant,
    mutants,
    params,
)

SCHEMA: Json = {"type": "object"}
PNG = "iVBORw0KGgo="


class Lists(Fault):
    """Lists one more tool."""

    tool: ClassVar[Json]

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "tools/list" and "result" in message:
            tool = {"name": "now", "inputSchema": SCHEMA, **self.tool}
            message["result"]["tools"].append(tool)
        return message  # type: ignore[no-any-return]


mutants("schema-icon-shape", of=Lists)(
    GivesIconSizesAsText=has(
        "Gives the sizes of an icon as one string.",
        tool={"icons": [{"src": "https://a.example/i.png", "sizes": "48x48"}]},
    )
)


@mutant("schema-icon-shape", revision=MODERN)
class NamesItsIconUrl(Fault):
    """Names the src of its own icon url."""

    def said(self, message: Any, request: Json) -> Out:
        meta = message.get("result", {}).get("_meta", {}) if isinstance(message, dict) else {}
        if info := meta.get("io.modelcontextprotocol/serverInfo"):
            info["icons"] = [{"url": "https://a.example/i.png"}]
        return message  # type: ignore[no-any-return]


mutants("schema-icon-src-scheme", of=Lists)(
    GivesAnIconAScriptUrl=has(
        "Gives an icon a javascript: URL.", tool={"icons": [{"src": "javascript:draw()"}]}
    ),
    GivesAnIconAsPlainData=has(
        "Writes an SVG into a data URI without base64.",
        MODERN,
        tool={"icons": [{"src": "data:image/svg+xml,%3Csvg/%3E"}]},
    ),
)
mutants("schema-icon-src-scheme", of=Lists, outcome="note")(
    GivesAnIconAnHttpUrl=has(
        "Gives an icon an http URL.", tool={"icons": [{"src": "http://a.example/i.png"}]}
    )
)
mutants("schema-icon-sizes-format", of=Lists)(
    GivesAnIconOnlyAWidth=has(
        "Gives the width of an icon, and not the height.",
        tool={"icons": [{"src": "https://a.example/i.png", "sizes": ["any", "48"]}]},
    )
)
mutants("schema-icon-sizes-format", of=Lists, revision=MODERN, outcome="note")(
    GivesIconSizesWithACapitalX=has(
        "Joins width and height with an upper-case X.",
        tool={"icons": [{"src": "https://a.example/i.png", "sizes": ["48X48"]}]},
    )
)


@control("schema-icon-shape", "schema-icon-src-scheme", "schema-icon-sizes-format")
class GivesValidIcons(Lists):
    """Lists a tool with valid icons, one of them in a data URI."""

    tool: ClassVar[Json] = {
        "icons": [
            {"src": "HTTPS://a.example/i", "mimeType": "image/png", "sizes": ["48x48", "any"]},
            {"src": f"data:image/png;base64,{PNG}", "theme": "dark", "x": [5]},
            {"src": "data:image/svg+xml;charset=utf-8;base64,PHN2Zy8%2B", "sizes": []},
        ]
    }


controls(of=Lists, revision="2025-06-18")(
    NamesAMemberIconsTooEarly=has(
        "Has a member named icons in a revision without icons.", tool={"icons": {"src": 5}}
    )
)
mutants("schema-valid-for-dialect", of=Lists)(
    MisspellsAType=has(
        "Gives an argument a type that JSON Schema does not have.",
        tool={"inputSchema": {**SCHEMA, "properties": {"at": {"type": "datetime"}}}},
    ),
    GivesAnOldTupleWithoutADialect=has(
        "Describes a tuple as in earlier dialects, without naming one.",
        MODERN,
        tool={"outputSchema": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]}},
    ),
    NumbersItsDialect=has(
        "Gives the dialect of a schema as a number.",
        tool={"inputSchema": {**SCHEMA, "$schema": 2020}},
    ),
)
mutants("schema-2020-12-recommended", of=Lists)(
    UsesDraft04=has(
        "Uses draft-04 for its schemas.",
        tool={"inputSchema": {**SCHEMA, "$schema": "http://json-schema.org/draft-04/schema#"}},
    )
)


mutants("schema-local-reference-resolves", of=Lists)(
    LosesItsDefinitions=has(
        "Refers to definitions that it does not send.",
        tool={"inputSchema": {**SCHEMA, "properties": {"at": {"$ref": "#/$defs/Place"}}}},
    ),
    RefersToNoAnchor=has(
        "Refers to an anchor that its schema does not have.",
        MODERN,
        tool={
            "inputSchema": {
                **SCHEMA,
                "properties": {"at": {"$ref": "#place"}},
                "$defs": {"Place": {"$anchor": "places", "type": "string"}},
            }
        },
    ),
)


@control("schema-local-reference-resolves")
class RefersInEachAllowedWay(Lists):
    """Refers to definitions, anchors, itself and another document, and uses $ref as a name."""

    tool: ClassVar[Json] = {
        "inputSchema": {
            **SCHEMA,
            "properties": {
                "a": {"$ref": "#/$defs/a~1b%20c"},
                "b": {"$ref": "#place"},
                "c": {"type": "array", "items": {"$ref": "#"}},
                "d": {"$ref": "https://a.example/schema.json#/x"},
                "$ref": {"type": "string", "default": {"$ref": "#/nowhere"}},
            },
            "$defs": {"a/b c": {"$anchor": "place", "type": "string"}},
        }
    }


@control("schema-valid-for-dialect", "schema-2020-12-recommended")
class UsesDraft07(Lists):
    """Describes a tuple in draft-07, and names it."""

    tool: ClassVar[Json] = {
        "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"at": {"type": "array", "items": [{"type": "string"}]}},
            "definitions": {"x": {"$ref": "https://a.example/schema.json"}},
            "x-own": [5],
        }
    }


controls(of=Lists, revision=MODERN)(
    HasAnOpenOutputSchema=has(
        "Has an output schema without a type, and a property without constraints.",
        tool={
            "inputSchema": {**SCHEMA, "properties": {"any": True}},
            "outputSchema": {"oneOf": [{"type": "string"}, False]},
        },
    )
)


class Validates(AskingTool):
    """Has a tool whose schema needs 2020-12; reports whether its arguments fit."""

    TOOL: ClassVar[Json] = {
        **AskingTool.TOOL,
        "inputSchema": {
            "type": "object",
            "properties": {
                "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
                "card": {"type": "string"},
                "owner": {"type": "string"},
            },
            "dependentRequired": {"card": ["owner"]},
            "unevaluatedProperties": False,
        },
    }

    def on_ask(self, request: Json) -> None:
        wrong = not self.accepts(params(request).get("arguments") or {})
        text = {"type": "text", "text": "no" if wrong else "yes"}
        self.answer(request, {"content": [text], "isError": wrong})

    def accepts(self, given: Json) -> bool:
        """Whether arguments fit."""
        pair = given.get("pair", ["", 0])
        return (
            [type(one) for one in pair[:2]] in ([], [str], [str, int])
            and ("card" not in given or "owner" in given)
            and given.keys() <= {"pair", "card", "owner"}
        )


@mutant("schema-2020-12-supported")
class SkipsPrefixItems(Validates):
    """Ignores prefixItems."""

    def accepts(self, given: Json) -> bool:
        return super().accepts({name: one for name, one in given.items() if name != "pair"})


mutants("schema-2020-12-supported", of=Validates, revision=MODERN)(
    SkipsDependentRequired=has(
        "Ignores dependentRequired.",
        accepts=lambda self, given: Validates.accepts(self, {"owner": "", **given}),
    )
)


@mutant("schema-2020-12-supported")
class SkipsUnevaluatedProperties(Validates):
    """Ignores unevaluatedProperties."""

    def accepts(self, given: Json) -> bool:
        return super().accepts({name: given[name] for name in given if name != "touchstone"})


controls("schema-2020-12-supported", of=Validates)(
    ValidatesBy2020="Refuses arguments that do not fit its schema."
)
controls(of=Validates)(RefusesEveryCall=has("Refuses every call.", accepts=lambda *_: False))
