"""A gateway from stdio to stdio with one fault: ``faulty.py FAULT [WORDS] -- SERVER COMMAND``.

Without a fault it passes every line on.
"""

import functools
import json
import os
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

Json = dict[str, Any]

META = "io.modelcontextprotocol/"


class Gateway:
    """Passes lines on; a fault overrides what differs."""

    def __init__(self, words: list[str], command: list[str]) -> None:
        self.words, self.command = words, command
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
        threading.Thread(target=self._back, daemon=True).start()
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "id" in message and "method" in message:
                self.asked[json.dumps(message["id"])] = message
            for one in self.to_server(message):
                self.tell_server(one)
        self.finish()
        return 0

    def finish(self) -> None:
        """End the server, even if it goes on after the end of its input."""
        assert self.server.stdin is not None
        self.server.stdin.close()
        try:
            self.server.wait(0.5)
        except subprocess.TimeoutExpired:
            self.server.terminate()
            self.server.wait()

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
            if not line.startswith(b"{"):
                self.garbage()
                continue
            for one in self.to_client(json.loads(line)):
                self.tell_client(one)
        self.ended()

    def garbage(self) -> None:
        """Ignore a line that is no JSON."""

    def ended(self) -> None:
        """End, as the server has."""
        os._exit(3)


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


class Forgets(Members):
    """Drops members of the requests of a method: ``forgets METHOD PATH``."""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Change a request."""
        method, path = self.words
        if message.get("method") == method:
            for container, member in list(places(message, path.split("."))):
                self.change(container, member)
        yield message

    def to_client(self, message: Json) -> Iterator[Json]:
        """Pass it on."""
        yield message


class OnlyOnce(Members):
    """Drops members the first time that it is started: ``only-once FILE METHOD PATH``."""

    def __init__(self, words: list[str], command: list[str]) -> None:
        path, *words = words
        super().__init__(words, command)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            self.words = ["", ""]


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


def mark_of(message: Json) -> Any:
    """Return the mark of a call."""
    return message.get("params", {}).get("arguments", {}).get("mark")


class Loses(Gateway):
    """Does not pass the messages of a method on, in either direction."""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Drop a message."""
        if message.get("method") != self.words[0]:
            yield message

    to_client = to_server


class AnswersItself(Gateway):
    """Answers a method itself: ``answers METHOD``."""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Answer in place of the server."""
        if message.get("method") == self.words[0]:
            self.tell_client({"jsonrpc": "2.0", "id": message["id"], "result": {}})
        else:
            yield message


class LosesProgress(Gateway):
    """Loses the second report of progress."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Drop a report."""
        if message.get("params", {}).get("progress") != 1.5:
            yield message


class InventsToken(Gateway):
    """Sends each report of progress under a token of its own too."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Add a report."""
        yield message
        if message.get("method") == "notifications/progress":
            yield {**message, "params": {**message["params"], "progressToken": "of nobody"}}

    to_server = to_client


class LateProgress(Gateway):
    """Sends the last report of progress after the answer."""

    late: Json | None = None

    def to_client(self, message: Json) -> Iterator[Json]:
        """Hold a report back."""
        if message.get("params", {}).get("progress") == 2.5:
            self.late = message
            return
        yield message
        if self.late and "result" in message:
            yield self.late
            self.late = None


class HoldsProgress(Gateway):
    """Holds the progress of a call back until its answer."""

    held: ClassVar[list[Json]] = []

    def to_client(self, message: Json) -> Iterator[Json]:
        """Hold a report back."""
        if message.get("method") == "notifications/progress":
            self.held.append(message)
            return
        meta = self.request_of(message).get("params", {}).get("_meta", {})
        for one in [*self.held]:
            if one["params"]["progressToken"] == meta.get("progressToken"):
                self.held.remove(one)
                yield one
        yield message


class Holds(Gateway):
    """Holds messages back, those of a method or with some data: until a late call, or the end."""

    def __init__(self, words: list[str], command: list[str]) -> None:
        super().__init__(words, command)
        self.held: list[Json] = []

    def to_client(self, message: Json) -> Iterator[Json]:
        """Hold a message back."""
        if self.words[0] in {message.get("method"), str(message.get("params", {}).get("data"))}:
            self.held.append(message)
        else:
            yield message

    def release(self) -> None:
        """Pass on what was held."""
        held, self.held = self.held, []
        for one in held:
            self.tell_client(one)

    def to_server(self, message: Json) -> Iterator[Json]:
        """Release before a late call."""
        if mark_of(message) == "beside":
            self.release()
        yield message

    def finish(self) -> None:
        """Release at the end."""
        self.release()
        super().finish()


class SwapsIds(Gateway):
    """Answers a number where the id is the same digits as a text, and the other way round."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Change the id of an answer."""
        if str(message.get("id")) == "7007" and "method" not in message:
            message["id"] = 7007 if isinstance(message["id"], str) else "7007"
        yield message


class KnowsResources(Gateway):
    """Answers by itself that a resource does not exist, which is no fault."""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Answer in place of the server."""
        uri = message.get("params", {}).get("uri")
        if uri == "test://upstream/none":
            error = {"code": -32002, "message": "Resource not found", "data": {"uri": uri}}
            self.tell_client({"jsonrpc": "2.0", "id": message["id"], "error": error})
        else:
            yield message


class AnswersTwice(Gateway):
    """Answers a call twice."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Repeat an answer."""
        yield message
        if mark_of(self.request_of(message)) == "beside":
            yield message


class CallsTwice(Gateway):
    """Makes a call again on its own."""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Repeat a call."""
        yield message
        if mark_of(message) == "id-text":
            yield {**message, "id": "again"}

    def to_client(self, message: Json) -> Iterator[Json]:
        """Keep the second answer."""
        if message.get("id") != "again":
            yield message


class RefusesLarge(Gateway):
    """Refuses a call of more than 1 MiB."""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Answer in place of the server."""
        if len(json.dumps(message)) > 1 << 20:
            error = {"code": -32600, "message": "too large"}
            self.tell_client({"jsonrpc": "2.0", "id": message["id"], "error": error})
        else:
            yield message


class HangsOnLarge(Gateway):
    """Passes nothing on after a message of more than 1 MiB."""

    hangs = False

    def to_client(self, message: Json) -> Iterator[Json]:
        """Hang."""
        self.hangs |= len(json.dumps(message)) > 1 << 20
        if not self.hangs:
            yield message


def _texts(change: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda value: change(value) if isinstance(value, str) else value


def _read_object(text: str) -> Any:
    """Read a text that looks like an object."""
    return json.loads(text) if text.startswith("{") else text


def _lower_uri(text: str) -> str:
    return text.lower().rstrip("/") if text.startswith("test:") else text


def _unpad_cursor(text: str) -> str:
    return text.rstrip("=") if text.startswith("page/") else text


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) else value


def _without_false(value: Any) -> Any:
    """Drop the members that are false, zero or empty texts."""
    if not isinstance(value, dict):
        return value
    return {key: one for key, one in value.items() if one or isinstance(one, (dict, list))}


def _joined(value: Any) -> Any:
    """Join the texts of a result."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        return value
    texts = [one for one in value if one.get("type") == "text"]
    if len(texts) < 2:
        return value
    first = {**texts[0], "text": "\n".join(one["text"] for one in texts)}
    return [first, *(one for one in value if one.get("type") != "text")]


def _null(value: Any) -> Any:
    """Write null for an empty result."""
    if isinstance(value, dict) and value.get("result") == {}:
        return {**value, "result": None}
    return value


FORMS: dict[str, Callable[[Any], Any]] = {
    "NFC": _texts(functools.partial(unicodedata.normalize, "NFC")),
    "NFD": _texts(functools.partial(unicodedata.normalize, "NFD")),
    "lines": _texts(lambda text: text.replace("\r\n", "\n")),
    "objects": _texts(_read_object),
    "uris": _texts(_lower_uri),
    "cursors": _texts(_unpad_cursor),
    "integers": _whole,
    "false": _without_false,
    "texts": _joined,
    "null": _null,
}
"""Name -> what it makes of each value, from the inside out."""


class Normalizes(Gateway):
    """Normalizes values in both directions: ``normalizes FORM``, of ``FORMS``."""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Change each value."""
        yield self.normal(message)

    def to_client(self, message: Json) -> Iterator[Json]:
        """Change each value."""
        yield self.normal(message)

    def normal(self, value: Any) -> Any:
        """Return a value in the form."""
        if isinstance(value, dict):
            value = {key: self.normal(one) for key, one in value.items()}
        elif isinstance(value, list):
            value = [self.normal(one) for one in value]
        return FORMS[self.words[0]](value)


class Wraps(Gateway):
    """Writes each simple value of an answer as a list, but for those of the opening."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Wrap the values of a result and of an error."""
        opens = self.request_of(message).get("method") in {"initialize", "server/discover"}
        if opens or "method" in message:
            yield message
        else:
            wrapped = {"result", "error"}
            yield {k: self.wrapped(one) if k in wrapped else one for k, one in message.items()}

    def wrapped(self, value: Any) -> Any:
        """Return a value with a list in place of each simple one."""
        if isinstance(value, dict):
            return {key: self.wrapped(one) for key, one in value.items()}
        return [self.wrapped(one) for one in value] if isinstance(value, list) else [value]


class LosesZero(Gateway):
    """Takes the id zero for none."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Lose the answer."""
        if "method" in message or message.get("id"):
            yield message


class Rewrites(Gateway):
    """Writes ``gw+`` before each URI, as it declares: ``rewrites all``; or ``rewrites answers``."""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Restore the URI of a request."""
        plain = self.words == ["all"]
        yield self.other(message, lambda uri: uri.removeprefix("gw+")) if plain else message

    def to_client(self, message: Json) -> Iterator[Json]:
        """Rewrite the URIs of an answer."""
        yield self.other(message, "gw+{}".format)

    def other(self, value: Any, change: Callable[[str], str]) -> Any:
        """Return a value with other URIs."""
        if isinstance(value, list):
            return [self.other(one, change) for one in value]
        if not isinstance(value, dict):
            return value
        of_text = {key for key in ("uri", "uriTemplate") if isinstance(value.get(key), str)}
        return {
            key: change(one) if key in of_text else self.other(one, change)
            for key, one in value.items()
        }


class CancelsTwice(Gateway):
    """Sends each cancellation twice."""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Repeat a cancellation."""
        yield message
        if message.get("method") == "notifications/cancelled":
            yield message


class CancelsAll(Gateway):
    """Answers nothing more after a cancellation."""

    cancelled = False

    def to_server(self, message: Json) -> Iterator[Json]:
        """Note a cancellation."""
        self.cancelled |= message.get("method") == "notifications/cancelled"
        yield message

    def to_client(self, message: Json) -> Iterator[Json]:
        """Drop answers."""
        if not self.cancelled or "method" in message:
            yield message


class UsesIdAgain(Gateway):
    """Sends a ping under the id of an answered request."""

    pinged: Any = None

    def to_server(self, message: Json) -> Iterator[Json]:
        """Ping before a request."""
        if mark_of(message) == "log":
            self.pinged = next(iter(self.asked.values()))["id"]
            yield {"jsonrpc": "2.0", "id": self.pinged, "method": "ping"}
        yield message

    def to_client(self, message: Json) -> Iterator[Json]:
        """Keep the answer to the ping."""
        if self.pinged is None or message.get("id") != self.pinged or "method" in message:
            yield message


class SharesToken(Gateway):
    """Gives one token to two calls."""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Replace a token."""
        if mark_of(message) == "open":
            message["params"]["_meta"]["progressToken"] = "token-k"
        yield message


class Asks(Members):
    """Drops members of requests of the server."""

    def request_of(self, answer: Json) -> Json:
        """Return a request itself."""
        return answer


class NamesItself(Gateway):
    """Names itself where a server of 2026-07-28 does, which is no fault."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Replace the name."""
        meta = message.get("result", {}).get("_meta", {})
        if f"{META}serverInfo" in meta:
            meta[f"{META}serverInfo"] = {"name": "gateway", "version": "2"}
        yield message


class CrossesSubscriptions(Gateway):
    """Sends what one subscription asked for to another one too."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Send it to the first one."""
        yield message
        if message.get("method") == "notifications/prompts/list_changed":
            first = next(m for m in self.asked.values() if m["method"] == "subscriptions/listen")
            params = {"_meta": {f"{META}subscriptionId": first["id"]}}
            yield {**message, "params": params}


class Cancels(Gateway):
    """Says that the user cancelled what he declined."""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Replace the action."""
        if message.get("result", {}).get("action") == "decline":
            message["result"]["action"] = "cancel"
        yield message


class ForgetsState(Gateway):
    """Leaves the state of a second round out."""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Drop it."""
        if str(message.get("params", {}).get("requestState")).count("/") > 1:
            del message["params"]["requestState"]
        yield message


class ForgetsLevel(Gateway):
    """Leaves the level of log messages out that a request of 2026-07-28 has."""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Drop it."""
        message.get("params", {}).get("_meta", {}).pop(f"{META}logLevel", None)
        yield message


class ForgetsRoots(Gateway):
    """Drops the names of the roots that the client has."""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Drop names."""
        for root in message.get("result", {}).get("roots", []):
            del root["name"]
        yield message


class Waits(Gateway):
    """Says nothing when its server ends, also if a server over HTTP says so itself."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Drop the answer."""
        if self.request_of(message).get("params", {}).get("name") != "leave":
            yield message

    def ended(self) -> None:
        """Do nothing."""

    def tell_server(self, message: Json) -> None:
        """Ignore a server that has ended."""
        if self.server.poll() is None:
            super().tell_server(message)


class CutsText(Gateway):
    """Replaces a character of three bytes."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Replace it."""
        yield json.loads(json.dumps(message).replace("\\u20ac", "?", 1))


class CutsLarge(Gateway):
    """Cuts a result off at 1 MiB."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Cut it."""
        for block in message.get("result", {}).get("content", []):
            if len(block.get("text", "")) > 1 << 20:
                block["text"] = block["text"][: 1 << 20]
        yield message


class LosesOne(Gateway):
    """Loses one of many tools."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Drop it."""
        tools = message.get("result", {}).get("tools", [])
        for tool in [one for one in tools if one["name"] == "tool-00005"]:
            tools.remove(tool)
        yield message


class WritesOut(Gateway):
    """Writes isError out where it is false, which is no fault."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Add the member."""
        if "content" in message.get("result", {}):
            message["result"].setdefault("isError", False)
        yield message


class LosesAfterwards(Gateway):
    """Does not pass log messages on that come after an answer."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Drop one."""
        if message.get("params", {}).get("data") != "after":
            yield message


class SwapsMessages(Gateway):
    """Passes a log message on after the one after it, as two streams may; that is no fault."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Hold the first one back."""
        data = message.get("params", {}).get("data")
        if data == "before":
            self.held = message
            return
        yield message
        if data == "after":
            yield self.held


class SlowStatus(Gateway):
    """Passes the status of a task on after two seconds; that is no fault."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Hold it back."""
        if message.get("method") == "notifications/tasks/status":
            threading.Timer(2.0, self.tell_client, [message]).start()
        else:
            yield message


class ForgetsWhy(Gateway):
    """Drops the data of errors with which the client answers."""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Drop it."""
        message.get("error", {}).pop("data", None)
        yield message


class RenamesQuestions(Gateway):
    """Has ids of its own for questions, except in a cancellation."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Rename a question."""
        yield (
            {**message, "id": f"of-{message['id']}"} if {"id", "method"} <= {*message} else message
        )

    def to_server(self, message: Json) -> Iterator[Json]:
        """Restore the id."""
        own = str(message.get("id")).removeprefix("of-")
        yield {**message, "id": own} if "method" not in message else message


class Halves(Gateway):
    """Treats half a pair of surrogates: ``halves replaces``, ``refuses``, ``loses``, ``ends``."""

    def to_client(self, message: Json) -> Iterator[Json]:
        """Do it."""
        text = json.dumps(message)
        if "\\ud83d" not in text:
            yield message
        elif self.words == ["replaces"]:
            yield json.loads(text.replace("\\ud83d", "\\ufffd"))
        elif self.words == ["ends"]:
            os._exit(5)
        elif self.words == ["refuses"]:
            error = {"code": -32700, "message": "no Unicode"}
            self.tell_client({"jsonrpc": "2.0", "id": message["id"], "error": error})

    to_server = to_client


class Crosses(Gateway):
    """Gives the second client something of the first: ``crosses answers``, lists, messages ..."""

    second = False

    def to_server(self, message: Json) -> Iterator[Json]:
        """Note which client it is."""
        self.second |= mark_of(message) == "of-1"
        yield message
        if self.words == ["cancels"] and mark_of(message) == "beside":
            params = {"requestId": message["id"]}
            yield {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}

    def to_client(self, message: Json) -> Iterator[Json]:
        """Cross."""
        what = self.words[0] if self.second else ""
        if what == "answers":
            message = json.loads(json.dumps(message).replace("later of-1", "later of-0"))
        listed = self.request_of(message).get("method") == "tools/list"
        if what == "lists" and listed:
            del message["result"]["tools"][-1]
        if self.words[0] == "sessions" and listed:
            message = json.loads(json.dumps(message).replace("own-", "own-of-nobody-"))
        if what == "messages" and listed:
            params = {"level": "info", "data": {"mark": "of-0"}}
            yield {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
        if what == "updates" and listed:
            params = {"uri": "test://upstream/watched"}
            yield {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params}
        yield message


class OpensForEach(Gateway):
    """Has no fault: it opens a session with the server for each call, as a gateway may."""

    def to_server(self, message: Json) -> Iterator[Json]:
        """Make a call in a session of its own."""
        if message.get("method") == "tools/call":
            threading.Thread(target=self._call, args=(message,), daemon=True).start()
        else:
            yield message

    def _call(self, message: Json) -> None:
        opening = {**next(iter(self.asked.values())), "id": "opening"}
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        said = b"".join(json.dumps(one).encode() + b"\n" for one in (opening, initialized, message))
        with subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as own:
            assert own.stdin is not None
            assert own.stdout is not None
            own.stdin.write(said)
            own.stdin.flush()
            answers = (one for one in map(json.loads, own.stdout) if one.get("id") == message["id"])
            error = {"code": -32000, "message": "the server ended"}
            refusal = {"jsonrpc": "2.0", "id": message["id"], "error": error}
            self.tell_client(next(answers, refusal))
            own.stdin.close()


FAULTS: dict[str, type[Gateway]] = {
    "none": Gateway,
    "opens-for-each": OpensForEach,
    "drop": Members,
    "change": Changes,
    "forgets": Forgets,
    "only-once": OnlyOnce,
    "silent": Silent,
    "refuses": Refuses,
    "loses": Loses,
    "answers": AnswersItself,
    "names-itself": NamesItself,
    "crosses-subscriptions": CrossesSubscriptions,
    "cancels": Cancels,
    "forgets-state": ForgetsState,
    "forgets-level": ForgetsLevel,
    "loses-progress": LosesProgress,
    "invents-token": InventsToken,
    "late-progress": LateProgress,
    "holds-progress": HoldsProgress,
    "holds": Holds,
    "swaps-ids": SwapsIds,
    "knows-resources": KnowsResources,
    "answers-twice": AnswersTwice,
    "calls-twice": CallsTwice,
    "refuses-large": RefusesLarge,
    "hangs-on-large": HangsOnLarge,
    "normalizes": Normalizes,
    "wraps": Wraps,
    "loses-zero": LosesZero,
    "swaps-messages": SwapsMessages,
    "slow-status": SlowStatus,
    "rewrites": Rewrites,
    "cancels-twice": CancelsTwice,
    "cancels-all": CancelsAll,
    "uses-id-again": UsesIdAgain,
    "shares-token": SharesToken,
    "asks": Asks,
    "forgets-roots": ForgetsRoots,
    "waits": Waits,
    "cuts-text": CutsText,
    "cuts-large": CutsLarge,
    "loses-one": LosesOne,
    "crosses": Crosses,
    "writes-out": WritesOut,
    "loses-afterwards": LosesAfterwards,
    "forgets-why": ForgetsWhy,
    "renames-questions": RenamesQuestions,
    "halves": Halves,
}


if __name__ == "__main__":
    at = sys.argv.index("--")
    fault, *words = sys.argv[1:at]
    sys.exit(FAULTS[fault](words, sys.argv[at + 1 :]).run())
