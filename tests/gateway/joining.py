"""A gateway that joins two servers: ``joining.py FAULT [PREFIX PREFIX] -- COMMAND --and COMMAND``.

Its fault is ``none``, or what it does wrong with the second server; ``uris`` is none: it lists the
resources of that under other URIs.
"""

import itertools
import json
import queue
import subprocess
import sys
import threading
from typing import Any

Json = dict[str, Any]

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


OTHER = "second+"


class Server:
    """One of the servers; its answers come in their order."""

    def __init__(self, command: list[str], prefix: str) -> None:
        self.prefix, self.ended, self.numbers = prefix, False, itertools.count(100_000)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answers: queue.Queue[Json | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" not in message:
                self.answers.put(message)
        self.answers.put(None)

    def say(self, message: Json) -> None:
        """Send a message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, message: Json) -> Json:
        """Return the answer to a request; an error if the server ends."""
        answer = None
        if not self.ended:
            self.say(message)
            answer = self.answers.get()
        self.ended |= answer is None
        about = {"code": -32603, "message": "the server ended"}
        return answer or {"jsonrpc": "2.0", "id": message["id"], "error": about}

    def whole(self, message: Json) -> Json:
        """Return the first page of a list, with the items of all."""
        member = LISTS[message["method"]]
        params = message.get("params", {})
        first = page = self.ask(message)
        items = list(page["result"][member]) if "result" in page else []
        while further := page.get("result", {}).get("nextCursor"):
            asked = {**message, "id": next(self.numbers), "params": {**params, "cursor": further}}
            page = self.ask(asked)
            items += page["result"][member]
        first.get("result", {}).pop("nextCursor", None)
        named = [{**one, "name": self.prefix + one["name"]} for one in items]
        first.setdefault("result", {})[member] = named if member in {"tools", "prompts"} else items
        return first


def answered(servers: list[Server], fault: str, message: Json) -> Json:
    """Return the answer to a request."""
    first, second = servers
    method, params = message["method"], message.get("params", {})
    if method in LISTS and "cursor" not in params:
        answer, more = first.whole(message), second.whole(message)
        if fault == "uris" and method == "resources/list":
            for one in more["result"]["resources"]:
                one["uri"] = OTHER + one["uri"]
        if fault != "lists-one":
            answer["result"][LISTS[method]] += more["result"][LISTS[method]]
        return answer
    if fault == "uris" and str(params.get("uri", "")).startswith(OTHER):
        params = {**params, "uri": params["uri"].removeprefix(OTHER)}
        return second.ask({**message, "params": params})
    name = str(params.get("name", ""))
    ours = [one for one in servers if one.prefix and name.startswith(one.prefix)]
    is_second = name.startswith("second-") or str(params.get("uri", "")).startswith("test://second")
    server = ours[0] if ours else servers[is_second]
    if fault == "reaches-one" and method == "prompts/get":
        server = first
    if "name" in params:
        params = {**params, "name": name.removeprefix(server.prefix)}
    if fault == "ends-with-one" and second.ended:
        server = second
    return server.ask({**message, "params": params})


def run(fault: str, prefixes: list[str], commands: list[list[str]]) -> None:
    """Answer one request after the other until the client closes the input."""
    pairs = zip(commands, prefixes, strict=True)
    servers = [Server(command, prefix) for command, prefix in pairs]
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message.get("method") == "initialize":
            answer, _ = [one.ask(message) for one in servers]
        elif "id" in message:
            answer = answered(servers, fault, message)
        else:
            for one in servers:
                one.say(message)
            continue
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()
    for one in servers:
        one.process.terminate()


if __name__ == "__main__":
    start, middle = sys.argv.index("--"), sys.argv.index("--and")
    fault_, *prefixes_ = sys.argv[1:start]
    commands_ = [sys.argv[start + 1 : middle], sys.argv[middle + 1 :]]
    run(fault_, prefixes_ or ["", ""], commands_)
