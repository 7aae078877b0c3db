"""Asks its client under an id of a megabyte, which each answer has to repeat."""

from kit import answer, messages, say

for message in messages():
    reply = answer(message)
    if reply is not None:
        say({"jsonrpc": "2.0", "id": "x" * 2**20, "method": "ping"})
        say(reply)
