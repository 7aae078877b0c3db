"""Answers only after something that no client sends; its argument names it."""

import json, os, sys

import kit

KIND = sys.argv[4]


def headers():
    """Read messages with a Content-Length header, and write them so."""
    source = sys.stdin.buffer
    while line := source.readline():
        if not line.lower().startswith(b"content-length:"):
            continue
        length = int(line.split(b":")[1])
        while source.readline().strip():
            pass
        reply = kit.answer(json.loads(source.read(length)))
        if reply is not None:
            body = json.dumps(reply).encode()
            os.write(1, b"Content-Length: %d\r\n\r\n%s" % (len(body), body))


def blank_lines():
    """Take a message only when an empty line follows it."""
    held = []
    for line in sys.stdin.buffer:
        if line.strip():
            held.append(line)
            continue
        reply = kit.answer(json.loads(b"".join(held))) if held else None
        held.clear()
        if reply is not None:
            kit.say(reply)


def initialized():
    """Answer initialize when notifications/initialized has come."""
    held = []
    for message in kit.messages():
        if message["method"] == "notifications/initialized":
            for one in held:
                kit.say(kit.answer(one))
            held.clear()
        elif message["method"] == "initialize":
            held.append(message)
        elif (reply := kit.answer(message)) is not None:
            kit.say(reply)


def buffered():
    """Write into a buffer that is flushed when it is full, and at the end."""
    with open(1, "w", buffering=8192) as output:
        for message in kit.messages():
            reply = kit.answer(message)
            if reply is not None:
                output.write(json.dumps(reply) + "\n")


def end_of_input():
    """Read all of the input before the first answer."""
    for message in list(kit.messages()):
        reply = kit.answer(message)
        if reply is not None:
            kit.say(reply)


{
    "headers": headers,
    "blank lines": blank_lines,
    "initialized": initialized,
    "buffered": buffered,
    "end of input": end_of_input,
}[KIND]()
