"""Writes message after message with no line feed between them."""

import os

from kit import answer, messages, say

note = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'
for message in messages():
    reply = answer(message)
    if reply is not None and message["method"] == "ping":
        try:
            for _ in range(1000):
                os.write(1, note * 700)
        except OSError:
            os._exit(0)
    if reply is not None:
        say(reply)
