"""Servers whose lists of tools are endless, or whose schemas are valid, odd or endless."""

import itertools

from kit import ARGUMENT, gives, lists, plain, serve


def _doubled(depth, word):
    """Give a schema of few bytes that a plain validator visits 2**depth times."""
    defs = {
        f"d{n}": {word: [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(depth)
    }
    return {"$defs": {**defs, f"d{depth}": {"type": "object"}}, "$ref": "#/$defs/d0"}


def _takes(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


def _wide(depth):
    """Give an object of ten members that have ten members, and so on."""
    if not depth:
        return {"type": "string"}
    return _takes(**{f"m{n}": {"$ref": f"#/$defs/level{depth - 1}"} for n in range(10)})


RAW = "RAW"
KINDS = {
    "doubles": lambda: {"type": "object", **_doubled(40, "allOf")},
    "unions": lambda: {"type": "object", **_doubled(40, "anyOf")},
    "enum": lambda: _takes(color={"enum": [f"color number {n}" for n in range(100_000)]}),
    "names": lambda: {"type": "object", "required": [f"n{n}" for n in range(100_000)]},
    "wide": lambda: {**_wide(8), "$defs": {f"level{n}": _wide(n) for n in range(8)}},
    "branches": lambda: {
        "type": "object",
        "allOf": [{"properties": {f"m{n}": {}}, "required": [f"m{n}"]} for n in range(5_000)],
    },
    "patterns": lambda: _takes(
        long={"type": "string", "pattern": "^" + "(" * 4 + "a{1000}" + "){1000}" * 4 + "$"},
        slow={"type": "string", "pattern": "^(a|aa){60}$\\d"},
        slower={"type": "string", "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"},
        counted={"type": "string", "pattern": "a{99999999999999999999}"},
        closed={"type": "string", "pattern": "[" * 5000},
    ),
    "lengths": lambda: _takes(
        text={"type": "string", "minLength": 10**12},
        list={"type": "array", "minItems": 10**12, "uniqueItems": True},
    ),
    "numbers": lambda: _takes(
        huge={"type": "integer", "minimum": 10**400},
        endless={"type": "number", "minimum": RAW, "multipleOf": 5e-324},
        delay={"type": ["integer", "null"], "maximum": RAW},
    ),
    "types": lambda: _takes(
        one={"type": {"type": "string"}}, two={"type": [[], {}]}, three=True, four=[], five=None
    ),
    "cycles": lambda: {
        "type": "object",
        "$ref": "#/$defs/a",
        "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
    },
    "deep": lambda: _nested(400),
    "items": lambda: {"type": "object", "properties": {"x": {"uniqueItems": True}}},
}


def _nested(depth):
    schema = {"type": "string"}
    for _ in range(depth):
        schema = _takes(below=schema)
    return schema


def sends_schemas_that_explode():
    """Lists read-only tools whose schemas are valid, odd or endless; the argument names one kind."""
    schema = KINDS[ARGUMENT]()
    output = {"type": "object", "properties": {"list": {"uniqueItems": True}}}
    if ARGUMENT in {"doubles", "unions"}:
        output = schema
    listed = lists({"inputSchema": schema, "outputSchema": output})
    many = list(range(200_000 if ARGUMENT == "items" else 2))
    serve(
        # no float holds 1e999
        tools_list=lambda reply: (
            plain(listed(reply)).replace(f'"{RAW}"'.encode(), b"1e999") + b"\n"
        ),
        tools_call=gives(structuredContent={"list": many}),
    )


def lists_thousands_of_tools():
    """Lists as many read-only tools as its argument says, all on one page."""
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
        "required": ["text"],
    }
    tools = (
        {"name": f"tool_{n}", "description": f"Does the thing number {n}.", "inputSchema": schema}
        for n in range(int(ARGUMENT))
    )
    serve(tools_list=lists(*tools))


def gives_a_new_list_of_megabytes_each_time():
    """Lists tools with a description of eight megabytes, and with another one each time."""
    numbers = itertools.count(1)
    words = "word " * (8 * 2**20 // 5)
    serve(tools_list=lambda reply: lists({"description": f"{next(numbers)} {words}"})(reply))
