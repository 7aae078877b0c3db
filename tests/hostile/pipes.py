"""Servers that close their pipes, or do not read them."""

import itertools, json, os, signal, sys, time

from kit import answer, ask, messages, open_only, say


def closes_stdout_and_lives():
    """Answers initialize, then closes its output and stays."""
    message = json.loads(sys.stdin.readline())
    if message["method"] == "initialize":
        say(answer(message))
    os.close(1)
    for _ in sys.stdin:
        pass


def closes_stdin_and_lives():
    """Opens, then closes its input and stays."""
    open_only()
    os.close(0)
    time.sleep(600)


def closes_every_pipe_and_lives():
    """Closes all its pipes at once and stays."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    time.sleep(600)


def leaves_while_a_child_holds_the_pipes():
    """Is gone after the opening; its child keeps the pipes."""
    open_only()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)


def asks_and_never_reads():
    """Opens, then asks its client thousands of times and reads no answer."""
    open_only()
    try:
        for count in range(3000):
            ask(count, params={"x": "y" * 1000})
    except OSError:
        pass
    time.sleep(600)


def asks_its_client_for_ever():
    """Asks its client again as soon as it has an answer, and before."""
    numbers = itertools.count(1)
    for message in messages():
        reply = answer(message)
        if reply is not None:
            say(reply)
        if reply is not None or "method" not in message:
            ask(f"q{next(numbers)}")


def asks_two_questions_for_each_answer():
    """Asks its client twice after each answer it gets: twice as often each time."""
    numbers = itertools.count(1)
    for message in messages():
        reply = answer(message)
        if reply is not None:
            say(reply)
        if "method" not in message or message["method"] == "notifications/initialized":
            ask(f"q{next(numbers)}")
            ask(f"q{next(numbers)}")
