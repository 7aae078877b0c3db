"""A scripted client in this process: it talks to a part of our server over two pipes.

A mutant changes what it writes: ``change`` gets each message and returns what is written instead.
"""

import contextlib
import hashlib
import json
import os
import select
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.parts import stepper
from mcp_touchstone.parts.scenarios import find
from mcp_touchstone.tap import recording
from mcp_touchstone.tap.recording import Recorder, Recording
from mcp_touchstone.tap.stdio import Descriptors
from mcp_touchstone.wire.events import Happened

Json = dict[str, Any]
Out = Json | bytes | list[Any]
"""A message, raw bytes, or several of them; a list in a list is a batch."""

INFO: Final = {"name": "small", "version": "1"}
CAN: Final[Json] = {
    "roots": {"listChanged": True},
    "sampling": {},
    "elicitation": {"form": {}, "url": {}},
}
SILENCE: Final = 10.0
"""Seconds after which a client that gets no response goes on."""

FORM: Final = {"name": "Ada", "count": 3}
ANSWERS: Final[Mapping[str, Json]] = {
    "ping": {},
    "roots/list": {"roots": [{"uri": "file:///work"}]},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "x"},
        "model": "m",
    },
    "elicitation/create": {"action": "accept", "content": FORM},
    "url": {"action": "accept"},
}
ERROR: Final = {"code": -32602, "message": "No."}


def invalid(message: Json) -> bool:
    """Whether a response is one that a client must refuse."""
    result = message.get("result", {})
    structured = result.get("structuredContent", {})
    known = result.get("resultType", "complete") in {"complete", "input_required"}
    return not known or not isinstance(structured.get("sum", 0), int)


@dataclass
class Mutant:
    """A client with one fault, or with none.

    Attributes:
        clause: the clause that it breaks; empty for the good client.
        scenario: the part of our server.
        change: what it writes in place of a message.
        revision: the revision that it offers.
        can: its capabilities.
        answers: its results to requests of the server, by method.
        habits: what it does otherwise, in one word each: it is "stubborn" and goes on after an
            unknown version; "fetches" what schemas and elicitations name, or "opens" files that
            schemas name; is "dual" and asks a legacy server for 2026-07-28 first; "keys" its
            fallback to the error -32601; "skips" an empty cursor; "stops" at the first page;
            "repeats" the last one; "caches" the first list; "crosses" the results of two calls;
            "hurries" with the second one of two calls;
            "stays" without a server that exited; is "deaf" to its standard error. With skills it
            "prefetches"; "installs" all files of what it loads; reads "directories"; is "listless"
            and loads listed ones only; and believes what is wrong in a "digest", a "size", a
            "frontmatter" or an entry that is "bare".
        last: bytes that it writes before the end.
        event: an event before the end of its input.
        fails: whether it fails at a message of the server.
        before: a scenario in which a good client of both eras talks before.
    """

    clause: str = ""
    scenario: str = "tools_call"
    change: Callable[[Json], Out] = lambda message: message
    revision: str = "2025-11-25"
    can: Json = field(default_factory=lambda: CAN)
    answers: Mapping[str, Json] = field(default_factory=lambda: ANSWERS)
    habits: str = ""
    last: bytes = b""
    event: str = ""
    fails: Callable[[Json], bool] = invalid
    before: str = ""


class FailureError(Exception):
    """The client ends with an error."""


class Client:
    """One conversation of a mutant.

    Args:
        source: the descriptor that it reads.
        sink: the descriptor that it writes.
        recorder: gets the event of a mutant.
    """

    def __init__(self, mutant: Mutant, source: int, sink: int, recorder: Recorder) -> None:
        self._mutant, self._habits = mutant, mutant.habits
        self._source = source
        self._rest = b""
        self._sink = sink
        self._recorder = recorder
        self._number = 0
        self._tools: list[str] = []
        self._results: list[str] = []
        self._schemas: Json = {}
        self._skills: dict[str, Json] = {}
        self._loaded: list[str] = []
        self._modern = find(mutant.scenario).modern

    def run(self) -> None:
        """Open, take the steps, and close."""
        self.failed = False
        try:
            if self._open():
                for step in find(self._mutant.scenario).steps:
                    self._step(step)
        except EOFError:
            pass
        except FailureError:
            self.failed = True
        if self._mutant.last:
            os.write(self._sink, self._mutant.last)
        if self._mutant.event:
            self._recorder.event(self._mutant.event)
        os.close(self._sink)
        os.close(self._source)

    def _open(self) -> bool:
        if self._modern:
            return "result" in self._request("server/discover", {}) or "stubborn" in self._habits
        if "dual" in self._habits:
            self._modern = True
            error = self._request("server/discover", {})["error"]
            self._modern = False
            if "keys" in self._habits and error["code"] != -32601:
                return False
        params = {
            "protocolVersion": self._mutant.revision,
            "capabilities": self._mutant.can,
            "clientInfo": INFO,
        }
        result = self._request("initialize", params).get("result", {})
        if result.get("protocolVersion") not in rev.ALL and "stubborn" not in self._habits:
            return False
        self._say({"method": "notifications/initialized"})
        return True

    def _step(self, step: Json) -> None:
        if "list" in step:
            self._list(step)
        elif "call" not in step:
            self._other(step)
        elif step["call"] == "*":
            for name in self._tools:
                self._step({**step, "call": name})
        else:
            self._call(step)

    def _list(self, step: Json) -> None:
        if "caches" in self._habits and self._tools:
            return
        what = step["list"]
        self._tools = [] if what == "tools" else self._tools
        cursor: Json = {}
        while True:
            result = self._request(stepper.method(step), cursor).get("result", {})
            self._fetch(json.dumps(result))
            self._tools += [tool["name"] for tool in result.get("tools", [])]
            self._skills |= {skill["uri"]: skill for skill in result.get("skills", [])}
            self._schemas |= {one["name"]: one["inputSchema"] for one in result.get("tools", [])}
            if "nextCursor" not in result and cursor and "repeats" in self._habits:
                self._request("tools/list", cursor)
            if (
                "nextCursor" not in result
                or "stops" in self._habits
                or ("skips" in self._habits and not result["nextCursor"])
            ):
                return
            cursor = {"cursor": result["nextCursor"]}

    def _call(self, step: Json) -> None:
        given = step.get("arguments") or {k: step[k] for k in ("a", "b") if k in step}
        if "results" in step:
            order = reversed if "crosses" in self._habits else list
            given = {"results": [*order(self._results)]}
        if "loaded" in step:
            given = {"texts": self._loaded}
        params: Json = {"name": step["call"], "arguments": given}
        if step.get("task"):
            params["task"] = {}
        if step.get("progress"):
            params["_meta"] = {"progressToken": self._number + 1}
        if "cancel" in step:
            params = self._described(params)
            self._say({"id": self._next(), "method": "tools/call", "params": params})
            about = {"requestId": self._number}
            self._say({"method": "notifications/cancelled", "params": about})
            return
        result = self._request("tools/call", params).get("result", {})
        while result.get("resultType") == "input_required":
            wanted = result.get("inputRequests", {})
            more: Json = {"inputResponses": {k: self._answer(v) for k, v in wanted.items()}}
            more |= {k: result[k] for k in ("requestState",) if k in result}
            result = self._request("tools/call", {**params, **more}).get("result", {})

    def _other(self, step: Json) -> None:
        """Take a step that is no call."""
        if "together" in step:
            self._together(step["together"])
        elif "load" in step:
            self._load(step["load"])
        elif "hand_on" in step:
            schema = self._schemas[step["hand_on"]]
            self._request("tools/call", {"name": step["to"], "arguments": {"schema": schema}})
        elif not stepper.method(step):
            return
        elif self._modern and {"subscribe", "unsubscribe"} & step.keys():
            if "subscribe" in step:
                wanted = {"notifications": {"resourceSubscriptions": [step["subscribe"]]}}
                params = self._described(wanted)
                self._say({"id": self._next(), "method": "subscriptions/listen", "params": params})
        else:
            self._request(stepper.method(step), _params(step))

    def _load(self, uri: str) -> None:
        """Load a skill, if it is as its entry says."""
        if "prefetches" in self._habits:
            for one in self._skills.values():
                self._request("resources/read", {"uri": one["uri"]})
        if "directories" in self._habits:
            self._request("resources/directory/read", {"uri": uri.removesuffix("/SKILL.md")})
        skill = self._skills.get(uri)
        if skill is None and "listless" not in self._habits:
            skill = self._request("skills/get", {"uri": uri})["result"]["skill"]
        if skill is None or ("resources" not in skill and "bare" not in self._habits):
            return
        (content,) = self._request("resources/read", {"uri": uri})["result"]["contents"]
        raw = content["text"].encode()
        of = next((one for one in skill.get("resources", ()) if one["uri"] == uri), None)
        digest = f"sha256:{hashlib.sha256(raw).hexdigest()}"
        wrong = {
            "digest": of is not None and of["digest"] != digest,
            "size": of is not None and of["size"] != len(raw),
            "frontmatter": f"description: {skill['frontmatter']['description']}\n".encode()
            not in raw,
        }
        if not any(found and name not in self._habits for name, found in wrong.items()):
            self._loaded.append(content["text"])
        for one in skill.get("resources", ())[1:] if "installs" in self._habits else ():
            self._request("resources/read", {"uri": one["uri"]})

    def _together(self, steps: list[Json]) -> None:
        """Call several tools, and read the answers by their ids."""
        sent = []
        hurries = "hurries" in self._habits
        for one in reversed(steps) if hurries else steps:
            given = {"name": one["call"], "arguments": {k: one[k] for k in ("a", "b")}}
            params = self._described(given)
            sent.append(self._say({"id": self._next(), "method": "tools/call", "params": params}))
        found: dict[int, str] = {}
        while len(found) < len(sent):
            message = json.loads(self._line())
            found[message["id"]] = message["result"]["content"][0]["text"]
        self._results = [found[one] for one in (reversed(sent) if hurries else sent)]

    def _answer(self, request: Json) -> Json:
        url = request.get("params", {}).get("mode") == "url"
        self._fetch(json.dumps(request))
        return self._mutant.answers["url" if url else request["method"]]

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _request(self, method: str, params: Json) -> Json:
        """Send a request and return its response; answer the server in the meantime."""
        params = self._described(params)
        sent = self._say({"id": self._next(), "method": method, "params": params})
        while True:
            line = self._line()
            if not line:
                raise EOFError
            message = json.loads(line)
            if self._mutant.fails(message):
                raise FailureError
            if "method" not in message and message.get("id") == sent:
                return message  # type: ignore[no-any-return]
            if "method" in message and "id" in message:
                tools = "tools" in message.get("params", {}) and "tools" not in self._mutant.answers
                reply = {"error": ERROR} if tools else {"result": self._answer(message)}
                self._say({"id": message["id"], **reply})

    def _described(self, params: Json) -> Json:
        """Add the _meta of the stateless era."""
        if not self._modern:
            return params
        about = {"protocolVersion": "2026-07-28", "clientInfo": INFO}
        meta = {rev.META + k: v for k, v in about.items()}
        can = {k: v for k, v in self._mutant.can.items() if k != "roots"}
        more: Json = {"extensions": {"org.example/x": {}}, **can, "roots": {}}
        meta[rev.META + "clientCapabilities"] = more
        return {**params, "_meta": {**params.get("_meta", {}), **meta}}

    def _line(self) -> bytes:
        """Read a line; empty at the end, or if none comes: a mutant may get no response."""
        while b"\n" not in self._rest:
            if not select.select([self._source], [], [], SILENCE)[0]:
                return b""
            chunk = os.read(self._source, 1 << 16)
            if not chunk:
                return b""
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _say(self, message: Json) -> Any:
        """Write a message as the mutant changes it; return its id."""
        changed = self._mutant.change({"jsonrpc": "2.0", **message})
        several = changed if isinstance(changed, list) else [changed]
        os.write(self._sink, b"".join(map(_raw, several)))
        own = [one for one in several if isinstance(one, dict) and one.get("method")]
        same = [one for one in own if one["method"] == message.get("method")]
        return (same[0] if same else message).get("id")

    def _fetch(self, text: str) -> None:
        import re  # noqa: PLC0415  (for one mutant)
        import urllib.request  # noqa: PLC0415

        schemes = {"fetches": "http", "opens": "file"}
        scheme = next((schemes[one] for one in schemes if one in self._habits), "none")
        for address in re.findall(rf'"(?:\$ref|url)": "({scheme}:[^"]+)"', text):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(address, timeout=10).close()  # noqa: S310  (ours)


def _params(step: Json) -> Json:
    """Return the params of a step that is no call."""
    if "complete" in step:
        ref = {"type": "ref/prompt", "name": step["complete"]}
        return {"ref": ref, "argument": {"name": step["argument"], "value": step["value"]}}
    names = {"prompt": "name", "read": "uri", "subscribe": "uri", "unsubscribe": "uri"}
    more = {"arguments": step["arguments"]} if "arguments" in step else {}
    return {names.get(k, k): v for k, v in step.items() if k not in {"arguments", "fails"}} | more


def _raw(one: Json | bytes | Iterable[Json]) -> bytes:
    return one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n"


def talk(mutant: Mutant, folder: Path) -> Recording:
    """Let a mutant talk to its part, and return the recording."""
    path = folder / f"{mutant.scenario}.jsonl"
    recorder = Recorder(path, {"scenario": mutant.scenario}, {})
    to_server, from_client = os.pipe()
    to_client, from_server = os.pipe()
    os.set_inheritable(from_client, False)
    log, errors = os.pipe()
    server_side = Descriptors(recorder, to_server, from_server, errors)
    server_side.place = folder
    part = find(mutant.scenario)  # before two threads would load the suite at once

    def serve() -> None:
        server_side.converse(part)
        for own in (from_server, to_server, errors):
            os.close(own)

    def drain() -> None:
        while os.read(log, 1 << 16):
            pass

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    hearer = threading.Thread(target=drain, daemon=True)
    if "deaf" not in mutant.habits:
        hearer.start()
    client = Client(mutant, to_client, from_client, recorder)
    client.run()
    if "deaf" in mutant.habits:
        os.close(log)  # it lets the server go on, into nothing
    server.join(60)
    assert not server.is_alive()
    if "deaf" not in mutant.habits:
        hearer.join(60)
        os.close(log)
    if mutant.scenario in {"exit", "restart", "lost-stateless"} and "stays" not in mutant.habits:
        recorder.event(Happened.RESTARTED)
    recorder.event(Happened.FAILED if client.failed else Happened.ENDED)
    recorder.close()
    return recording.read(path)
