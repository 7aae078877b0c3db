"""Servers that end by themselves, or refuse to begin."""

import os, resource, signal, sys

from kit import ARGUMENT, ROOT, answer, messages, names, open_only, reference, say, serve


def exits_at_once():
    """Exits before it says anything."""
    sys.stderr.write("error: DATABASE_URL is not set\n")
    sys.exit(3)


def dies_at_a_message():
    """Dies when it has read so many lines: the number is an argument."""
    for number, message in enumerate(messages(), 1):
        if number == int(ARGUMENT):
            os._exit(9)
        reply = answer(message)
        if reply is not None:
            say(reply)


def leaves_after_each_answer():
    """Serves one request a process and leaves with status 0."""
    open_only()
    os._exit(0)


def crashes_on_the_third_request():
    """Dies by a signal in the middle of the conversation."""
    reference(3, signal.SIGSEGV)


def dumps_core():
    """Asks for core dumps, then aborts in its root; its name says what limit it found."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    os.chdir(ROOT)
    serve(initialize=names(f"a core of {hard} bytes"), ping=lambda reply: os.abort())


def refuses_every_initialize():
    """Answers every request with an error."""
    error = {"code": -32603, "message": "license expired"}
    serve(lambda reply: {"jsonrpc": "2.0", "id": reply["id"], "error": error})
