"""A gateway from stdio to stdio with one fault: ``faulty.py FAULT [WORDS] -- SERVER COMMAND``.

Without a fault it passes every line on.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]


class Gateway:
    """Passes lines on; a fault overrides what differs."""

    def __init__(self, words: list[str], command: list[str]) -> None:
        self.words = words
        self.lock = threading.Lock()
        self.asked: dict[str, Json] = {}
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def to_server(self, message: Json) -> Iterator[Json]:
        """Yield what the server gets for a message of the client."""
        yield message

    def to_client(self, message: Json) -> Iterator[Json]:
        """Yield what the client gets for a message of the server."""
        yield message

    def request_of(self, answer: Json) -> Json:
        """Return the request that a message answers; empty for none."""
        return self.asked.get(json.dumps(answer.get("id")), {}) if "method" not in answer else {}

    def run(self) -> int:
        """Pass on until the client closes the input."""
        reader = threading.Thread(target=self._back, daemon=True)
        reader.start()
        assert self.server.stdin is not None
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "id" in message and "method" in message:
                self.asked[json.dumps(message["id"])] = message
            for one in self.to_server(message):
                self.tell_server(one)
        self.server.stdin.close()
        self.server.wait()
        reader.join(5)
        return 0

    def tell_server(self, message: Json) -> None:
        """Write a message to the server."""
        assert self.server.stdin is not None
        with self.lock:
            self.server.stdin.write(json.dumps(message).encode() + b"\n")
            self.server.stdin.flush()

    def tell_client(self, message: Json) -> None:
        """Write a message to the client."""
        with self.lock:
            sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
            sys.stdout.buffer.flush()

    def _back(self) -> None:
        assert self.server.stdout is not None
        for line in self.server.stdout:
            for one in self.to_client(json.loads(line)):
                self.tell_client(one)


def places(value: Any, path: list[str]) -> Iterator[tuple[Any, Any]]:
    """Yield the containers of the places at a path, with the member."""
    step, *rest = path
    inside: list[Any] = []
    if isinstance(value, dict):
        inside = [*value] if step == "*" else [step] if step in value else []
    elif isinstance(value, list) and (step == "*" or int(step) < len(value)):
        inside = [*range(len(value))] if step == "*" else [int(step)]
    for one in inside:
        if rest:
            yield from places(value[one], rest)
        else:
            yield value, one


class Members(Gateway):
    """Changes members: ``drop METHOD PATH`` or ``change METHOD PATH``."""

    def change(self, container: Any, member: Any) -> None:
        """Change one place."""
        del container[member]

    def to_client(self, message: Json) -> Iterator[Json]:
        """Change the answers to a method."""
        method, path = self.words
        if self.request_of(message).get("method") == method:
            for container, member in list(places(message, path.split(".")))[::-1]:
                self.change(container, member)
        yield message


class Changes(Members):
    """Changes the value of members."""

    def change(self, container: Any, member: Any) -> None:
        """Change one place."""
        old = container[member]
        if isinstance(old, str):
            container[member] = old.encode("ascii", "replace").decode() + "?"
        else:
            container[member] = old + 1 if isinstance(old, int) else "?"


class Silent(Gateway):
    """Does not pass the answers to a method on."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Drop an answer."""
        if self.request_of(message).get("method") != self.words[0]:
            yield message


class Refuses(Gateway):
    """Answers a method with an error of its own: ``refuses METHOD CODE``."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Replace an answer."""
        method, code = self.words
        if self.request_of(message).get("method") == method:
            error = {"code": int(code), "message": "not here"}
            yield {"jsonrpc": "2.0", "id": message["id"], "error": error}
        else:
            yield message


FAULTS: dict[str, Callable[[list[str], list[str]], Gateway]] = {
    "none": Gateway,
    "drop": Members,
    "change": Changes,
    "silent": Silent,
    "refuses": Refuses,
}


if __name__ == "__main__":
    at = sys.argv.index("--")
    fault, *words = sys.argv[1:at]
    sys.exit(FAULTS[fault](words, sys.argv[at + 1 :]).run())
