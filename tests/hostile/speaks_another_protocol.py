"""Frames its messages with lengths, as language servers do."""

import json, os

from kit import answer, messages

for message in messages():
    reply = answer(message)
    if reply is not None:
        body = json.dumps(reply).encode()
        os.write(1, b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
