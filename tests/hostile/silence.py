"""Servers that say nothing, too late, or nothing that can be taken for an answer."""

import base64, json, os, signal, socket, sys, time

from kit import ARGUMENT, ROOT, answer, messages, plain, reference, say, serve


def never_answers():
    """Reads everything, answers nothing."""
    for _ in sys.stdin:
        pass


def listens_on_a_port():
    """Listens on a port, as an HTTP server does, and reads none of its input."""
    with socket.create_server(("127.0.0.1", 0)):
        time.sleep(60)


def never_reads():
    """Never reads its input and never ends by itself."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)


def reads_one_byte_a_second():
    """Is sound, but takes one byte of its input a second."""
    while os.read(0, 1):
        time.sleep(1)


def answers_tomorrow():
    """Opens, then never answers."""
    serve(lambda reply: b"", initialize=lambda reply: reply)


def invents_ids():
    """Answers under ids nobody used."""
    serve(ping=lambda reply: {**reply, "id": f"invented-{reply['id']}"})


def stops_itself():
    """Is stopped (SIGSTOP) in the middle of the conversation."""
    reference(12, signal.SIGSTOP)


def echoes_every_line():
    """Echoes every line."""
    for line in sys.stdin.buffer:
        os.write(1, line)


def answers_late():
    """Answers everything soundly, as many seconds late as its argument says."""

    def late(reply):
        time.sleep(float(ARGUMENT))
        return reply

    serve(late)


def starts_slowly():
    """Is sound, but takes its time to start."""
    time.sleep(1.2)
    serve()


def is_slow_at_its_first_start():
    """Answers at once, except the processes that were started within a second of the first one."""
    mark = os.path.join(ROOT, "started")
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        pass
    if time.time() - os.stat(mark).st_mtime < 1:
        time.sleep(float(ARGUMENT))
    serve()


def _on_stderr(said):
    os.write(2, plain(said) + b"\n")
    return b""


BESIDE = {
    "string": lambda said: {**said, "id": str(said["id"])},
    "wrapped": lambda said: {**said, "id": {"id": said["id"]}},
    "null": lambda said: {**said, "id": None},
    "constant": lambda said: {**said, "id": 1},
    "missing": lambda said: {name: value for name, value in said.items() if name != "id"},
    "capital": lambda said: {name.capitalize(): value for name, value in said.items()},
    "twice encoded": lambda said: plain(json.dumps(said)) + b"\n",
    "repr": lambda said: repr(said).encode() + b"\n",
    "bytes": lambda said: repr(plain(said)).encode() + b"\n",
    "logged": lambda said: b"INFO 12:00:01 send " + plain(said) + b"\n",
    "spinner": lambda said: "\r⠋ ready ".encode() + plain(said) + b"\n",
    "sse": lambda said: b"data: " + plain(said) + b"\n",
    "separators": lambda said: b"\x1e" + plain(said) + b"\n",
    "zeros": lambda said: plain(said) + b"\0\n",
    "base64": lambda said: base64.b64encode(plain(said)) + b"\n",
    "bom": lambda said: b"\xef\xbb\xbf" + plain(said) + b"\n",
    "quoted": lambda said: b"DEBUG sends " + plain(said) + b"\n" + plain(said) + b"\n",
    "stderr": _on_stderr,
    **{
        f"utf-{form}": lambda said, form=form: (json.dumps(said) + "\n").encode(f"utf-{form}")
        for form in ("16-le", "16-be", "32-le", "32-be")
    },
}


def answers_beside_the_id():
    """Answers everything at once, but not as an answer: its argument says what is wrong with it."""
    serve(BESIDE[ARGUMENT])


def _headers():
    """Read messages with a Content-Length header, and write them so."""
    source = sys.stdin.buffer
    while line := source.readline():
        if not line.lower().startswith(b"content-length:"):
            continue
        length = int(line.split(b":")[1])
        while source.readline().strip():
            pass
        reply = answer(json.loads(source.read(length)))
        if reply is not None:
            body = plain(reply)
            os.write(1, b"Content-Length: %d\r\n\r\n%s" % (len(body), body))


def _blank_lines():
    """Take a message only when an empty line follows it."""
    held = []
    for line in sys.stdin.buffer:
        if line.strip():
            held.append(line)
            continue
        reply = answer(json.loads(b"".join(held))) if held else None
        held.clear()
        if reply is not None:
            say(reply)


def _initialized():
    """Answer initialize when notifications/initialized has come."""
    held = []
    for message in messages():
        if message["method"] == "notifications/initialized":
            for one in held:
                say(answer(one))
            held.clear()
        elif message["method"] == "initialize":
            held.append(message)
        elif (reply := answer(message)) is not None:
            say(reply)


def _buffered():
    """Write into a buffer that is flushed when it is full, and at the end."""
    with open(1, "wb", buffering=8192) as output:
        serve(lambda reply: output.write(plain(reply) + b"\n") and b"")


def _end_of_input():
    """Read all of the input before the first answer."""
    for message in list(messages()):
        reply = answer(message)
        if reply is not None:
            say(reply)


def answers_only_after():
    """Answers only after something that no client sends; its argument names it."""
    globals()["_" + ARGUMENT.replace(" ", "_")]()
