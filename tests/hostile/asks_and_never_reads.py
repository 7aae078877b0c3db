"""Opens, then asks its client thousands of times and reads no answer."""

import time

from kit import answer, messages, say

for message in messages():
    reply = answer(message)
    if reply is not None:
        say(reply)
        break
try:
    for count in range(3000):
        say({"jsonrpc": "2.0", "id": count, "method": "ping", "params": {"x": "y" * 1000}})
except OSError:
    pass
time.sleep(600)
