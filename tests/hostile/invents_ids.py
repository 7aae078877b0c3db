"""Answers under ids nobody used."""

from kit import answer, messages, say

for message in messages():
    reply = answer(message)
    if reply is not None and message["method"] == "ping":
        reply["id"] = f"invented-{reply['id']}"
    if reply is not None:
        say(reply)
