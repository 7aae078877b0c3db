"""Faults of a gateway whose server is in trouble, or whose client leaves; see ``faulty.py``."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from tests.gateway.faulty import FAULTS, Gateway, Json, mark_of  # noqa: E402  (by its path)


def error(request_id: Any) -> Json:
    """Return an error as an answer."""
    about = {"code": -32603, "message": "not now"}
    return {"jsonrpc": "2.0", "id": request_id, "error": about}


class Counts(Gateway):
    """Knows which requests are open."""

    def __init__(self, words: list[str], command: list[str]) -> None:
        super().__init__(words, command)
        self.open: list[Any] = []

    def to_server(self, message: Json) -> Iterator[Json]:
        """Note a request, or its cancellation."""
        if "id" in message and "method" in message:
            self.open.append(message["id"])
        elif message.get("method") == "notifications/cancelled":
            self.open.remove(message["params"]["requestId"])
        yield message

    def to_client(self, message: Json) -> Iterator[Json]:
        """Note an answer."""
        if "method" not in message and message["id"] in self.open:
            self.open.remove(message["id"])
        yield message


class OneByOne(Counts):
    """Sends a request only when no other one is open."""

    waiting: ClassVar[list[Json]] = []

    def to_server(self, message: Json) -> Iterator[Json]:
        """Hold a request back."""
        if self.open and "id" in message and "method" in message:
            self.waiting.append(message)
            return
        yield from super().to_server(message)
        yield from self.free()

    def to_client(self, message: Json) -> Iterator[Json]:
        """Send what waits."""
        yield from super().to_client(message)
        for one in self.free():
            self.tell_server(one)

    def free(self) -> Iterator[Json]:
        """Yield the request that may be sent now."""
        if self.waiting and not self.open:
            yield from super().to_server(self.waiting.pop(0))


class GivesUp(Gateway):
    """Answers a call with an error after half a second: ``gives-up MARK``."""

    given_up = False

    def to_server(self, message: Json) -> Iterator[Json]:
        """Start the clock."""
        if mark_of(message) == self.words[0]:
            threading.Timer(0.5, self.give_up, [message["id"]]).start()
        yield message

    def give_up(self, request_id: Any) -> None:
        """Answer."""
        self.given_up = True
        self.tell_client(error(request_id))

    def to_client(self, message: Json) -> Iterator[Json]:
        """Drop the late answer."""
        if not (self.given_up and mark_of(self.request_of(message)) == self.words[0]):
            yield message


class CrossesLate(Counts):
    """Gives an answer to no open request to the oldest one that is open."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Replace an id."""
        if "method" not in message and message["id"] not in self.open:
            if not self.open:
                return
            message = {**message, "id": self.open[0]}
        yield from super().to_client(message)


class KeepsList(Gateway):
    """Answers a list as it did before."""

    def __init__(self, words: list[str], command: list[str]) -> None:
        super().__init__(words, command)
        self.known: dict[str, Json] = {}

    def key(self, request: Json) -> str:
        """Return what tells requests for a list apart."""
        params = {k: v for k, v in request.get("params", {}).items() if k != "_meta"}
        return json.dumps(params) if request.get("method") == "tools/list" else ""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Answer in place of the server."""
        if known := self.known.get(self.key(message)):
            self.tell_client({**known, "id": message["id"]})
        else:
            yield message

    def to_client(self, message: Json) -> Iterator[Json]:
        """Keep an answer."""
        if key := self.key(self.request_of(message)):
            self.known[key] = message
        yield message


class KnowsNames(Gateway):
    """Refuses a tool that it does not know from its first lists."""

    names: ClassVar[set[str]] = set()
    frozen = False

    def to_server(self, message: Json) -> Iterator[Json]:
        """Refuse a call."""
        name = message.get("params", {}).get("name")
        self.frozen |= name == "grow"
        if message.get("method") == "tools/call" and self.frozen and name not in self.names:
            self.tell_client(error(message["id"]))
        else:
            yield message

    def to_client(self, message: Json) -> Iterator[Json]:
        """Learn names."""
        if not self.frozen:
            self.names.update({one["name"] for one in message.get("result", {}).get("tools", [])})
        yield message


class DiesOfGarbage(Gateway):
    """Ends at a line that is no JSON."""

    def garbage(self) -> None:
        """End."""
        os._exit(4)


class DropsGarbage(Gateway):
    """Does not pass an answer on whose result is no object."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Drop it."""
        if isinstance(message.get("result", {}), dict):
            yield message


class AnswersOnce(Counts):
    """Answers what is open when its server ends, and nothing later."""

    over = False

    def ended(self) -> None:
        """Answer."""
        self.over = True
        for one in [*self.open]:
            self.tell_client(error(one))

    def tell_server(self, message: Json) -> None:
        """Ignore messages from then on."""
        if not self.over:
            super().tell_server(message)


class Restarts(Counts):
    """Starts its server again when it ends; opens it only as ``restarts opened``."""

    opening: Json | None = None

    def to_server(self, message: Json) -> Iterator[Json]:
        """Keep the opening."""
        if message.get("method") == "initialize":
            self.opening = message
        yield from super().to_server(message)

    def ended(self) -> None:
        """Start again."""
        self.server = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.opening and self.words == ["opened"]:
            self.tell_server({**self.opening, "id": "again"})
            assert self.server.stdout is not None
            self.server.stdout.readline()
            self.tell_server({"jsonrpc": "2.0", "method": "notifications/initialized"})
        for one in [*self.open]:
            self.tell_client(error(one))
            self.open.remove(one)
        self._back()


class Leaves(Gateway):
    """Leaves its server behind: something holds the input of the server open."""

    def finish(self) -> None:
        """End without the server."""
        assert self.server.stdin is not None
        holds = [self.server.stdin.fileno()]
        subprocess.Popen(["sleep", "30"], pass_fds=holds, stdout=subprocess.DEVNULL)
        os._exit(0)


class Quits(Gateway):
    """Closes the input of its server, and does not look whether it ends."""

    def finish(self) -> None:
        """End without the server."""
        os._exit(0)


class EndsAll(Gateway):
    """Serves no client any more when one has left: ``ends-all FILE``."""

    def finish(self) -> None:
        """Tell all others."""
        Path(self.words[0]).touch()
        super().finish()

    def to_server(self, message: Json) -> Iterator[Json]:
        """Refuse."""
        if Path(self.words[0]).exists() and message.get("method") == "tools/call":
            self.tell_client(error(message["id"]))
        else:
            yield message


class MixesMany(Gateway):
    """Gives a call the answer of another one while many are open."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Replace it."""
        yield json.loads(json.dumps(message).replace("64-7", "64-8"))


FAULTS |= {
    "mixes-many": MixesMany,
    "one-by-one": OneByOne,
    "gives-up": GivesUp,
    "crosses-late": CrossesLate,
    "keeps-list": KeepsList,
    "knows-names": KnowsNames,
    "dies-of-garbage": DiesOfGarbage,
    "drops-garbage": DropsGarbage,
    "answers-once": AnswersOnce,
    "restarts": Restarts,
    "leaves": Leaves,
    "quits": Quits,
    "ends-all": EndsAll,
}


if __name__ == "__main__":
    at = sys.argv.index("--")
    fault, *words = sys.argv[1:at]
    sys.exit(FAULTS[fault](words, sys.argv[at + 1 :]).run())
