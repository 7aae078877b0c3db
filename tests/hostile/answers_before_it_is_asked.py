"""Guesses the next ids and answers them beforehand."""

from kit import answer, messages, say

for message in messages():
    reply = answer(message)
    if reply is not None:
        say(reply)
        if isinstance(reply["id"], int):
            say({"jsonrpc": "2.0", "id": reply["id"] + 1, "result": {}})
