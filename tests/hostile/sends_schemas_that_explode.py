"""Lists read-only tools whose schemas are valid, odd or endless; the argument names one kind."""

import sys

import kit


def doubled(depth, word):
    """Give a schema of few bytes that a plain validator visits 2**depth times."""
    defs = {
        f"d{n}": {word: [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(depth)
    }
    return {"$defs": {**defs, f"d{depth}": {"type": "object"}}, "$ref": "#/$defs/d0"}


def takes(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


def wide(depth):
    """Give an object of ten members that have ten members, and so on."""
    if not depth:
        return {"type": "string"}
    return takes(**{f"m{n}": {"$ref": f"#/$defs/level{depth - 1}"} for n in range(10)})


RAW = "RAW"
KINDS = {
    "doubles": lambda: {"type": "object", **doubled(40, "allOf")},
    "unions": lambda: {"type": "object", **doubled(40, "anyOf")},
    "enum": lambda: takes(color={"enum": [f"color number {n}" for n in range(100_000)]}),
    "names": lambda: {"type": "object", "required": [f"n{n}" for n in range(100_000)]},
    "wide": lambda: {**wide(8), "$defs": {f"level{n}": wide(n) for n in range(8)}},
    "branches": lambda: {
        "type": "object",
        "allOf": [{"properties": {f"m{n}": {}}, "required": [f"m{n}"]} for n in range(5_000)],
    },
    "patterns": lambda: takes(
        long={"type": "string", "pattern": "^" + "(" * 4 + "a{1000}" + "){1000}" * 4 + "$"},
        slow={"type": "string", "pattern": "^(a|aa){60}$\\d"},
        slower={"type": "string", "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"},
        counted={"type": "string", "pattern": "a{99999999999999999999}"},
        closed={"type": "string", "pattern": "[" * 5000},
    ),
    "lengths": lambda: takes(
        text={"type": "string", "minLength": 10**12},
        list={"type": "array", "minItems": 10**12, "uniqueItems": True},
    ),
    "numbers": lambda: takes(
        huge={"type": "integer", "minimum": 10**400},
        endless={"type": "number", "minimum": RAW, "multipleOf": 5e-324},
        delay={"type": ["integer", "null"], "maximum": RAW},
    ),
    "types": lambda: takes(
        one={"type": {"type": "string"}}, two={"type": [[], {}]}, three=True, four=[], five=None
    ),
    "cycles": lambda: {
        "type": "object",
        "$ref": "#/$defs/a",
        "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
    },
    "deep": lambda: nested(400),
    "items": lambda: {"type": "object", "properties": {"x": {"uniqueItems": True}}},
}


def nested(depth):
    schema = {"type": "string"}
    for _ in range(depth):
        schema = takes(below=schema)
    return schema


schema = KINDS[sys.argv[4]]()
output = {"type": "object", "properties": {"list": {"uniqueItems": True}}}
if sys.argv[4] in {"doubles", "unions"}:
    output = schema
kit.TOOL = {**kit.TOOL, "inputSchema": schema, "outputSchema": output}
plain = kit.say


def say(message):
    """Write numbers that no float holds as they are."""
    import json, os

    data = json.dumps(message).replace(f'"{RAW}"', "1e999").encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def answer(message):
    reply = kit.sound(message)
    if message.get("method") == "tools/call":
        many = list(range(200_000 if sys.argv[4] == "items" else 2))
        reply["result"] = {
            "content": [{"type": "text", "text": "echo"}],
            "structuredContent": {"list": many},
        }
    return reply


kit.sound, kit.answer, kit.say = kit.answer, answer, say
kit.serve()
