"""Opens, then closes its input and stays."""

import os, time

from kit import answer, messages, say

for message in messages():
    reply = answer(message)
    if reply is not None:
        say(reply)
        break
os.close(0)
time.sleep(600)
