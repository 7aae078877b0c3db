"""Dies when it has read so many lines: the number is an argument."""

import os, sys

from kit import answer, messages, say

left = int(sys.argv[4])
for message in messages():
    left -= 1
    if not left:
        os._exit(9)
    reply = answer(message)
    if reply is not None:
        say(reply)
