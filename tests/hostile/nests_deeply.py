"""Nests the schema of its tool, or all its results, 900 deep; the argument says which."""

import json, sys

import kit

sys.setrecursionlimit(10_000)
if sys.argv[4] == "schema":
    schema = {"type": "string"}
    for _ in range(300):
        below = {"type": "array", "items": {"anyOf": [schema, {"type": "null"}]}}
        schema = {"type": "object", "properties": {"p": below}, "required": ["p"]}
    kit.TOOL["inputSchema"] = schema
    kit.serve()
deep = json.loads('{"a":[' * 450 + "1" + "]}" * 450)
for message in kit.messages():
    reply = kit.answer(message)
    if reply is not None:
        if "result" in reply:
            reply["result"]["_meta"] = {"deep": deep}
        kit.say(reply)
