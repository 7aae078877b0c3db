"""Servers that break a rule of basic/schema: on icons, and on the JSON Schemas a server sends."""

from typing import Any, ClassVar

from tests.mutants.kit import MODERN, AskingTool, Fault, Json, Out, control, mutant, params

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


# --- icons


@mutant("schema-icon-shape")
class SizesItsIconInOneWord(Lists):
    """Gives the sizes of an icon as one string."""

    tool: ClassVar[Json] = {"icons": [{"src": "https://a.example/i.png", "sizes": "48x48"}]}


@mutant("schema-icon-shape", revision=MODERN)
class NamesItsIconUrl(Fault):
    """Calls the src of its own icon url."""

    def said(self, message: Any, request: Json) -> Out:
        meta = message.get("result", {}).get("_meta", {}) if isinstance(message, dict) else {}
        if info := meta.get("io.modelcontextprotocol/serverInfo"):
            info["icons"] = [{"url": "https://a.example/i.png"}]
        return message  # type: ignore[no-any-return]


@mutant("schema-icon-src-scheme")
class DrawsItsIconInScript(Lists):
    """Points an icon at a script."""

    tool: ClassVar[Json] = {"icons": [{"src": "javascript:draw()"}]}


@mutant("schema-icon-src-scheme", revision=MODERN)
class DrawsItsIconInText(Lists):
    """Writes an SVG into a data URI as it is, without base64."""

    tool: ClassVar[Json] = {"icons": [{"src": "data:image/svg+xml,%3Csvg/%3E"}]}


@mutant("schema-icon-src-scheme", outcome="note")
class FetchesItsIconInTheClear(Lists):
    """Points an icon at a plain http URL."""

    tool: ClassVar[Json] = {"icons": [{"src": "http://a.example/i.png"}]}


@mutant("schema-icon-sizes-format")
class SizesItsIconByOneNumber(Lists):
    """Says of an icon how wide it is, and not how high."""

    tool: ClassVar[Json] = {"icons": [{"src": "https://a.example/i.png", "sizes": ["any", "48"]}]}


@mutant("schema-icon-sizes-format", revision=MODERN, outcome="note")
class SizesItsIconInCapitals(Lists):
    """Joins width and height by an upper-case X."""

    tool: ClassVar[Json] = {"icons": [{"src": "https://a.example/i.png", "sizes": ["48X48"]}]}


@control("schema-icon-shape", "schema-icon-src-scheme", "schema-icon-sizes-format")
class DrawsIconsInOrder(Lists):
    """Lists a tool with icons, one of them in a data URI."""

    tool: ClassVar[Json] = {
        "icons": [
            {"src": "HTTPS://a.example/i", "mimeType": "image/png", "sizes": ["48x48", "any"]},
            {"src": f"data:image/png;base64,{PNG}", "theme": "dark", "x": [5]},
            {"src": "data:image/svg+xml;charset=utf-8;base64,PHN2Zy8%2B", "sizes": []},
        ]
    }


@control(revision="2025-06-18")
class HasNoIconsYet(Lists):
    """Has a member called icons in a revision that has none."""

    tool: ClassVar[Json] = {"icons": {"src": 5}}


# --- schemas


@mutant("schema-valid-for-dialect")
class MisspellsAType(Lists):
    """Describes an argument with a type that JSON Schema does not have."""

    tool: ClassVar[Json] = {
        "inputSchema": {**SCHEMA, "properties": {"at": {"type": "datetime"}}},
    }


@mutant("schema-valid-for-dialect", revision=MODERN)
class ListsItemsAsBefore(Lists):
    """Describes a tuple in the way of earlier dialects, and names none."""

    tool: ClassVar[Json] = {
        "outputSchema": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]},
    }


@mutant("schema-valid-for-dialect")
class NumbersItsDialect(Lists):
    """Names the dialect of a schema by a number."""

    tool: ClassVar[Json] = {"inputSchema": {**SCHEMA, "$schema": 2020}}


@mutant("schema-2020-12-recommended")
class KeepsAnOldDialect(Lists):
    """Writes its schemas in the draft of 2013."""

    tool: ClassVar[Json] = {
        "inputSchema": {**SCHEMA, "$schema": "http://json-schema.org/draft-04/schema#"},
    }


@control("schema-valid-for-dialect", "schema-2020-12-recommended")
class KeepsADialectThatIsFine(Lists):
    """Describes a tuple in draft-07, and says so."""

    tool: ClassVar[Json] = {
        "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"at": {"type": "array", "items": [{"type": "string"}]}},
            "definitions": {"x": {"$ref": "https://a.example/schema.json"}},
            "x-own": [5],
        },
    }


@control(revision=MODERN)
class OutputsWhatItLikes(Lists):
    """Has an output schema without a type, and a property that may be anything."""

    tool: ClassVar[Json] = {
        "inputSchema": {**SCHEMA, "properties": {"any": True}},
        "outputSchema": {"oneOf": [{"type": "string"}, False]},
    }


class Validates(AskingTool):
    """Has a tool whose schema only 2020-12 can read; says whether it was given what it asks for."""

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
    """Reads no prefixItems."""

    def accepts(self, given: Json) -> bool:
        return super().accepts({name: one for name, one in given.items() if name != "pair"})


@mutant("schema-2020-12-supported", revision=MODERN)
class SkipsDependentRequired(Validates):
    """Reads no dependentRequired."""

    def accepts(self, given: Json) -> bool:
        return super().accepts({"owner": "", **given})


@mutant("schema-2020-12-supported")
class SkipsUnevaluatedProperties(Validates):
    """Reads no unevaluatedProperties."""

    def accepts(self, given: Json) -> bool:
        return super().accepts({name: given[name] for name in given if name != "touchstone"})


@control("schema-2020-12-supported")
class ValidatesInOrder(Validates):
    """Turns away what its schema does."""


@control()
class NeverAnswersWell(Validates):
    """Turns away everything, so nothing can be said of its schemas."""

    def accepts(self, given: Json) -> bool:
        del given
        return False
