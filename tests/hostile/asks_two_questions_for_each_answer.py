"""Asks its client for its roots twice after each answer it gets: twice as often each time."""

import itertools

import kit

numbers = itertools.count(1)


def ask():
    kit.say({"jsonrpc": "2.0", "id": f"q{next(numbers)}", "method": "ping"})


for message in kit.messages():
    reply = kit.answer(message)
    if reply is not None:
        kit.say(reply)
    if "method" not in message or message["method"] == "notifications/initialized":
        ask()
        ask()
