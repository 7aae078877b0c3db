"""Asks for core dumps, then aborts in its root; its name says what limit it found."""

import os, resource

from kit import ROOT, answer, messages, say

hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
os.chdir(ROOT)
for message in messages():
    reply = answer(message)
    if reply is not None and message["method"] == "initialize":
        reply["result"]["serverInfo"]["name"] = f"a core of {hard} bytes"
    if reply is not None and message["method"] == "ping":
        os.abort()
    if reply is not None:
        say(reply)
