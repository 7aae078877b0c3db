"""Servers that write without end."""

import os, sys, threading

from kit import NOTE, answer, flood, messages, reference, say, serve, write


def floods_stdout():
    """Writes valid notifications as fast as it can."""
    flood((NOTE + b"\n") * 500)


def sends_many_notifications():
    """Sends 100,000 notifications as soon as it is open, and is sound."""
    for message in messages():
        if message.get("method") == "notifications/initialized":
            flood((NOTE + b"\n") * 500, 200)
        reply = answer(message)
        if reply is not None:
            say(reply)


def floods_stderr():
    """Is sound, but logs without end to stderr."""

    def log():
        while True:
            os.write(2, b"debug: all is well " * 2000 + b"\n")

    threading.Thread(target=log, daemon=True).start()
    reference()


def writes_a_line_without_end():
    """Never ends the line it began."""
    flood(b"x" * 65536)


def writes_a_hundred_megabyte_line():
    """Answers initialize with a line of 100 MB."""
    sys.stdin.readline()
    write(b'{"jsonrpc":"2.0","id":101,"result":{"protocolVersion":"')
    flood(b"x" * 65536, 1600)
    flood(b'"}}\n', 1)
    for _ in sys.stdin:
        pass


def returns_a_gigabyte():
    """Answers tools/list with a gigabyte."""

    def huge(reply):
        write(b'{"jsonrpc":"2.0","id":%d,"result":{"tools":[],"x":"' % reply["id"])
        flood(b"x" * 65536, 16384)
        return b'"}}\n'

    serve(tools_list=huge)


def glues_everything_together():
    """Writes message after message with no line feed between them."""

    def glued(reply):
        flood(NOTE * 700, 1000)
        return reply

    serve(ping=glued)


def writes_binary():
    """Writes noise without end."""
    flood(bytes(range(256)) * 256)


def writes_empty_lines():
    """Writes empty lines and nothing else."""
    flood(b"\n" * 32768)
