"""Names itself, its tools and its errors in HTML, Markdown and workflow commands."""

from kit import TOOL, answer, messages, say

NAME = (
    "</td></script><script>alert(1)</script><img src=x onerror=alert(1)>"
    " | [x](javascript:alert(1)) `\n::error::owned\r\n## owned"
)
for message in messages():
    reply = answer(message)
    if reply is not None and message["method"] == "initialize":
        reply["result"]["serverInfo"]["name"] = NAME
    elif reply is not None and message["method"] == "tools/list":
        reply["result"]["tools"] = [{**TOOL, "name": NAME, "description": NAME}]
    elif reply is not None and message["method"] == "ping":
        reply["result"] = {NAME: NAME}
    if reply is not None:
        say(reply)
