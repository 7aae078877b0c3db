"""Answers ping with a hundred thousand arrays in one another."""

import os

from kit import answer, messages, say

for message in messages():
    reply = answer(message)
    if reply is not None and message["method"] == "ping":
        deep = b"[" * 100_000 + b"]" * 100_000
        data = b'{"jsonrpc":"2.0","id":%d,"result":{"x":%s}}\n' % (message["id"], deep)
        while data:
            data = data[os.write(1, data) :]
    elif reply is not None:
        say(reply)
