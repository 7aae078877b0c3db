"""Answers ping with numbers of a million digits, and not-a-number."""

import os

from kit import answer, messages, say

for message in messages():
    reply = answer(message)
    if reply is not None and message["method"] == "ping":
        data = b'{"jsonrpc":"2.0","id":%d,"result":{"x":%s,"y":1e999999,"z":NaN}}\n'
        data %= (message["id"], b"9" * 1_000_000)
        while data:
            data = data[os.write(1, data) :]
    elif reply is not None:
        say(reply)
