"""Names itself in halves of characters."""

from kit import answer, messages, say

NAME = "half \ud83d\udc00\udfff"
for message in messages():
    reply = answer(message)
    if reply is not None and message["method"] == "initialize":
        reply["result"]["serverInfo"]["name"] = NAME
    elif reply is not None and message["method"] == "ping":
        reply["result"] = {NAME: NAME}
    if reply is not None:
        say(reply)
