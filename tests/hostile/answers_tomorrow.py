"""Opens, then puts every answer off until tomorrow."""

import threading, time

from kit import answer, messages, say


def later(reply):
    time.sleep(86_400)
    say(reply)


for message in messages():
    reply = answer(message)
    if reply is not None and message["method"] == "initialize":
        say(reply)
    elif reply is not None:
        threading.Thread(target=later, args=(reply,), daemon=True).start()
