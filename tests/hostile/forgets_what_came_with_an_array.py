"""Reads all that lies there and drops it behind an array, which is served in a read of its own."""

import json, os

from kit import answer, say

REFUSED = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no request"}}

rest = b""
while chunk := os.read(0, 65536):
    *lines, rest = (rest + chunk).split(b"\n")
    for line in lines:
        message = json.loads(line)
        if isinstance(message, list):
            say(REFUSED)
            break
        if not isinstance(message.get("method"), str):
            say({**REFUSED, "id": message.get("id")})
        elif (reply := answer(message)) is not None:
            say(reply)
