"""Lists and completes at great length, with new megabytes in each answer and each error."""

import itertools

import kit

numbers = itertools.count(1)
LISTS = {
    "resources/list": lambda: {
        "resources": [
            {"uri": "data:text/plain;base64," + "QUFB" * 50_000, "name": "n" * 50_000},
            *({"uri": f"file:///{n}", "name": "\0"} for n in range(500)),
        ]
    },
    "resources/templates/list": lambda: {
        "resourceTemplates": [
            {"uriTemplate": "x://{" + ",".join(f"v{n}*" for n in range(300)) + "}", "name": f"t{m}"}
            for m in range(300)
        ]
    },
    "resources/read": lambda: {"contents": [{"uri": "x", "blob": "!!!" * 100_000}]},
    "prompts/list": lambda: {
        "prompts": [{"name": "p", "arguments": [{"name": f"a{n}"} for n in range(3000)]}]
    },
    "completion/complete": lambda: {"completion": {"values": [f"v{n}" for n in range(100_000)]}},
}


def initialized(message):
    features = ("resources", "prompts", "completions", "tools")
    return {**plain(message), "capabilities": {name: {} for name in features}}


def answer(message):
    reply = sound(message)
    made = LISTS.get(message.get("method"))
    if reply is not None and made is not None:
        reply.pop("error", None)
        reply["result"] = {**made(), "_meta": {"example.org/n": next(numbers)}}
    elif reply is not None and "error" in reply:
        reply["error"]["data"] = f"{next(numbers)} " + "d" * 2_000_000
    return reply


plain, kit.initialized = kit.initialized, initialized
sound, kit.answer = kit.answer, answer
kit.serve()
