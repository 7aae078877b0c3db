"""Lists as many read-only tools as its argument says, all on one page."""

import sys

import kit

TOOLS = [
    {
        "name": f"tool_{n}",
        "description": f"Does the thing number {n}.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["text"],
        },
        "annotations": {"readOnlyHint": True},
    }
    for n in range(int(sys.argv[4]))
]


def answer(message):
    reply = kit.sound(message)
    if message.get("method") == "tools/list":
        reply["result"] = {"tools": TOOLS}
    return reply


kit.sound, kit.answer = kit.answer, answer
kit.serve()
