"""Lists other tools each time it is asked."""

from kit import TOOL, answer, messages, say

count = 0
for message in messages():
    reply = answer(message)
    if reply is not None and message["method"] == "tools/list":
        count += 1
        reply["result"]["tools"] = [{**TOOL, "name": f"echo_{count}_{n}"} for n in range(count)]
    if reply is not None:
        say(reply)
