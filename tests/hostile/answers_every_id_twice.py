"""Gives every answer twice."""

from kit import answer, messages, say

for message in messages():
    reply = answer(message)
    if reply is not None:
        say(reply)
        say(reply)
