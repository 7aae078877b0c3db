"""Answers everything at once, but not as an answer: its argument says what is wrong with it."""

import json
import sys

import kit

KIND = sys.argv[4]


def say(message):
    if "id" in message:
        wrong = {
            "string": lambda: {**message, "id": str(message["id"])},
            "null": lambda: {**message, "id": None},
            "missing": lambda: {k: v for k, v in message.items() if k != "id"},
            "capital": lambda: {k.capitalize(): v for k, v in message.items()},
            "stderr": lambda: message,
        }
        message = wrong[KIND]()
    if KIND == "stderr":
        print(json.dumps(message), file=sys.stderr, flush=True)
    else:
        plain(message)


plain, kit.say = kit.say, say
kit.serve()
