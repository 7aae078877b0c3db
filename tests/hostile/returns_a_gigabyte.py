"""Answers tools/list with a gigabyte."""

import os

from kit import answer, messages, say

for message in messages():
    reply = answer(message)
    if reply is not None and message["method"] == "tools/list":
        os.write(1, b'{"jsonrpc":"2.0","id":%d,"result":{"tools":[],"x":"' % message["id"])
        chunk = b"x" * 65536
        try:
            for _ in range(16384):
                view = memoryview(chunk)
                while view:
                    view = view[os.write(1, view) :]
            os.write(1, b'"}}\n')
        except BrokenPipeError:
            os._exit(0)
    elif reply is not None:
        say(reply)
