"""Prints its answers pretty, one bracket a line."""

import json, os

from kit import answer, messages

for message in messages():
    reply = answer(message)
    if reply is not None:
        data = json.dumps(reply, indent=1).encode() + b"\n"
        while data:
            data = data[os.write(1, data) :]
