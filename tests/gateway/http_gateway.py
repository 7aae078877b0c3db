"""A gateway from HTTP to HTTP with one fault: ``http_gateway.py FAULT PORT URL``.

Without a fault it keeps tokens, issues sessions of its own, and passes everything else on.
"""

import http.client
import io
import json
import socket
import sys
import threading
from collections.abc import Iterable
from typing import Any, ClassVar
from urllib.parse import urlsplit

from mcp_touchstone.bridge.listener import until_signal
from mcp_touchstone.tap import proxy
from mcp_touchstone.tap.recording import Recorder
from mcp_touchstone.tap.tape import HeldBody
from mcp_touchstone.transport.http_endpoint import Endpoint
from mcp_touchstone.wire.exchange import Headers

SESSION, VERSION, MARK = "Mcp-Session-Id", "MCP-Protocol-Version", "Mcp-Param-Mark"
OWN, REDIRECTS = "own-", range(300, 400)


class Gateway(proxy.Passing):
    """Passes requests on; a fault overrides what differs."""

    asked: Any = None

    def leave(self, name: str) -> None:
        """Leave a header of the request out."""
        del self.headers[name]

    def put(self, name: str, value: str) -> None:
        """Replace a header of the request."""
        self.leave(name)
        self.headers[name] = value

    def change(self) -> None:
        """Change the headers of a request."""
        self.leave("Authorization")
        self.put("User-Agent", "gateway")
        session = self.headers[SESSION]
        if session:
            self.put(SESSION, session.removeprefix(OWN))

    def _exchange(self, *, ours: bool) -> None:
        self.change()
        super()._exchange(ours=ours)

    def _record(self, body: HeldBody, *, ours: bool) -> None:
        self.asked = json.loads(body.line().raw) if body.length else None
        super()._record(body, ours=ours)

    def body_of(self, body: bytes) -> bytes:
        """Return the body of a request as the server gets it."""
        return body

    def _send(self, connection: socket.socket, pieces: Iterable[bytes]) -> None:
        body = self.body_of(b"".join(pieces))
        if "Content-Length" in self.headers:
            self.put("Content-Length", str(len(body)))
        super()._send(connection, [body])

    def _begin(self, status: int, why: str, headers: Headers) -> None:
        super()._begin(status, why, tuple((k, self.shown(k, v)) for k, v in headers))

    def shown(self, name: str, value: str) -> str:
        """Return the value of a header of a response."""
        return OWN + value if name.lower() == SESSION.lower() else value


class Token(Gateway):
    """Passes the token of the client on."""

    def leave(self, name: str) -> None:
        """Keep the token."""
        if name != "Authorization":
            super().leave(name)


class TokenInUrl(Gateway):
    """Writes the token of the client into the URL."""

    def change(self) -> None:
        """Add it."""
        token = (self.headers["Authorization"] or "").removeprefix("Bearer ")
        super().change()
        self.path += f"?access_token={token}" if token else ""


class TokenInHeader(Gateway):
    """Writes the token of the client into another header."""

    def change(self) -> None:
        """Add it."""
        token = self.headers["Authorization"]
        super().change()
        if token:
            self.put("X-User-Token", token)


class TokenInBody(Gateway):
    """Writes the token of the client into the metadata of its requests."""

    token = ""

    def change(self) -> None:
        """Note it."""
        self.token = self.headers["Authorization"] or ""
        super().change()

    def body_of(self, body: bytes) -> bytes:
        """Add it."""
        if not self.token or "id" not in (self.asked or {}):
            return body
        params = self.asked.get("params", {})
        meta = {**params.get("_meta", {}), "com.example.gateway/user": self.token}
        return json.dumps({**self.asked, "params": {**params, "_meta": meta}}).encode()


class Session(Gateway):
    """Shows the session of the server."""

    def shown(self, name: str, value: str) -> str:
        """Return it."""
        del name
        return value


class Web(Gateway):
    """Serves foreign web pages."""

    def change(self) -> None:
        """Leave the header out before it is checked."""
        super().change()
        self.leave("Origin")


class Cache(Gateway):
    """Serves the first list of tools to everybody."""

    method = "tools/list"
    known: ClassVar[dict[str, Any]] = {}

    def _respond(self, answer: Any, *, ours: bool) -> None:
        method = (self.asked or {}).get("method")
        if method != self.method:
            super()._respond(answer, ours=ours)
            return
        found = json.loads(b"".join(answer.body))
        params = {k: v for k, v in self.asked["params"].items() if k != "_meta"}
        found = self.known.setdefault(json.dumps(params), found)
        self.answer(200, json.dumps({**found, "id": self.asked["id"]}).encode())


class CacheOfReads(Cache):
    """Serves what one user read to everybody."""

    method = "resources/read"


class CacheOfPrompts(Cache):
    """Serves the prompt of one user to everybody."""

    method = "prompts/get"


class CacheOfTasks(Cache):
    """Serves the result of a task of one user to everybody."""

    method = "tasks/result"


class SharesSubscriptions(Gateway):
    """Opens one subscription for all of one id."""

    known: ClassVar[dict[str, bytes]] = {}

    def body_of(self, body: bytes) -> bytes:
        """Send the first one again."""
        if (self.asked or {}).get("method") != "subscriptions/listen":
            return body
        return self.known.setdefault(json.dumps(self.asked["id"]), body)


class Knows(Gateway):
    """Knows the sessions of the server."""

    known: ClassVar[list[str]] = []

    def shown(self, name: str, value: str) -> str:
        """Note the session."""
        if name.lower() == SESSION.lower() and value not in self.known:
            self.known.append(value)
        return super().shown(name, value)


class CrossesAnswers(Knows):
    """Sends what a client answers to the session that was opened last."""

    def _record(self, body: HeldBody, *, ours: bool) -> None:
        super()._record(body, ours=ours)
        if self.asked and "method" not in self.asked:
            self.put(SESSION, self.known[-1])


class CrossesStates(Gateway):
    """Keeps the state of a call by the name of its tool."""

    known: ClassVar[dict[str, str]] = {}

    def body_of(self, body: bytes) -> bytes:
        """Replace the state by the first one."""
        params = (self.asked or {}).get("params", {})
        if "requestState" not in params:
            return body
        params["requestState"] = self.known.setdefault(params["name"], params["requestState"])
        return json.dumps(self.asked).encode()


class Revives(Knows):
    """Serves a session that was deleted by another one of the server."""

    deleted: ClassVar[set[str]] = set()

    def change(self) -> None:
        """Replace the session."""
        super().change()
        if self.headers[SESSION] in self.deleted:
            self.put(SESSION, self.known[0])
        elif self.command == "DELETE":
            self.deleted.add(self.headers[SESSION])


class Follows(Gateway):
    """Follows redirects with its own token."""

    def change(self) -> None:
        """Add the token."""
        super().change()
        self.put("Authorization", "Bearer of-the-gateway")

    def _final(self, source: io.BufferedIOBase) -> Any:
        answer = super()._final(source)
        if answer.status in REDIRECTS:
            place = urlsplit(next(v for k, v in answer.headers if k == "Location"))
            connection = http.client.HTTPConnection(place.netloc, timeout=5)
            own = {"Authorization": self.headers["Authorization"]}
            connection.request("POST", place.path, b"{}", own)
            connection.getresponse()
            connection.close()
        return answer


class Header(Gateway):
    """Leaves a header out, or replaces it: ``leave-NAME`` or ``put-NAME=VALUE``."""

    @property
    def _listens(self) -> bool:
        """Whether it is the request for the stream of a session."""
        return self.command == "GET" and "Last-Event-ID" not in self.headers

    def change(self) -> None:
        """Change it: a session of the stream, and what repeats a body where an argument is too."""
        super().change()
        verb, _, word = sys.argv[1].partition("-")
        name, _, value = word.partition("=")
        own = name == VERSION or (self._listens if name == SESSION else MARK in self.headers)
        if name in self.headers and own:
            self.put(name, value) if verb == "put" else self.leave(name)


class Reader(Gateway):
    """Answers with an error where a stream has comments, or its answer is in another stream."""

    comment: ClassVar[bytes] = b"a comment"

    def _respond(self, answer: Any, *, ours: bool) -> None:
        if (self.asked or {}).get("method") != "tools/call":
            super()._respond(answer, ours=ours)
            return
        raw = b"".join(answer.body)
        answers = b'"result"' in raw or b'"error"' in raw
        wrong = self.comment in raw if self.comment else not answers
        error = {"code": -32603, "message": "no answer in the stream"}
        lines = [one[6:] for one in raw.splitlines() if one.startswith(b"data: ")] or [raw]
        found = json.dumps({"jsonrpc": "2.0", "id": self.asked["id"], "error": error}).encode()
        self.answer(200, found if wrong else lines[-1])


class CutsStreams(Gateway):
    """Reads a stream in pieces, each as a text of its own."""

    def _respond(self, answer: Any, *, ours: bool) -> None:
        streams = any("event-stream" in value for _, value in answer.headers)
        if not streams or self.command == "GET":
            super()._respond(answer, ours=ours)
            return
        raw = b"".join(answer.body)
        pieces = (raw[at : at + 1000].decode(errors="replace") for at in range(0, len(raw), 1000))
        lines = [one[6:] for one in "".join(pieces).split("\n") if one.startswith("data: ")]
        self.answer(200, lines[-1].encode())


class OneStream(Gateway):
    """Has a stream for one session only."""

    known: ClassVar[set[str]] = set()

    def _exchange(self, *, ours: bool) -> None:
        if self.command == "GET":
            self.known.add(self.headers[SESSION])
            if len(self.known) > 1:
                self.known.remove(self.headers[SESSION])
                self.answer(405)
                return
        super()._exchange(ours=ours)


class Says(Gateway):
    """Gives some answers another status, or another header.

    Attributes:
        status: the status in place of those of ``of``.
        of: the statuses; any for none.
        kind: the messages: ``request``, ``notification`` or ``response``.
        revised: name and beginning of the value of a header -> its value; empty for none.
    """

    status = 0
    of: ClassVar[tuple[int, ...]] = ()
    kind = "request"
    revised: ClassVar[dict[tuple[str, str], str]] = {}

    def _begin(self, status: int, why: str, headers: Headers) -> None:
        asked = self.asked or {}
        kinds = "request" if "id" in asked else "notification"
        kind = kinds if "method" in asked else "response"
        if kind == self.kind and status in (self.of or (status,)):
            status = self.status or status
            shown = ((k, self.revised.get((k.lower(), v[:6]), v)) for k, v in headers)
            headers = tuple((k, v) for k, v in shown if v)
        super()._begin(status, why, headers)


class InventsResults(Gateway):
    """Answers with a result in place of a refusal."""

    def _respond(self, answer: Any, *, ours: bool) -> None:
        if answer.status not in {401, 403, 429, 500, 503}:
            super()._respond(answer, ours=ours)
            return
        result = {"content": [{"type": "text", "text": "done"}]}
        found = {"jsonrpc": "2.0", "id": self.asked["id"], "result": result}
        self.answer(200, json.dumps(found).encode())


class IgnoresHalves(Gateway):
    """Accepts a request with half a pair of surrogates as if it needed no answer."""

    def _respond(self, answer: Any, *, ours: bool) -> None:
        if "\\ud83d of" in json.dumps(self.asked):
            self.answer(202)
        else:
            super()._respond(answer, ours=ours)


class WaitsForTokens(Gateway):
    """Does not answer a call that the server refuses with 401."""

    def _respond(self, answer: Any, *, ours: bool) -> None:
        if answer.status == 401:
            threading.Event().wait(60)
        super()._respond(answer, ours=ours)


def says(**members: Any) -> type[Gateway]:
    """Return a gateway that gives other statuses or headers."""
    return type("Says", (Says,), members)


class Once(Reader):
    """The same if the answer is in another stream."""

    comment = b""


FAULTS: dict[str, type[Gateway]] = {
    "none": Gateway,
    "token": Token,
    "session": Session,
    "web": Web,
    "cache": Cache,
    "cache-of-reads": CacheOfReads,
    "cache-of-prompts": CacheOfPrompts,
    "cache-of-tasks": CacheOfTasks,
    "token-in-url": TokenInUrl,
    "token-in-body": TokenInBody,
    "token-in-header": TokenInHeader,
    "shares-subscriptions": SharesSubscriptions,
    "crosses-answers": CrossesAnswers,
    "crosses-states": CrossesStates,
    "follows": Follows,
    "revives": Revives,
    "no-comments": Reader,
    "no-resuming": Once,
    "cuts-streams": CutsStreams,
    "one-stream": OneStream,
    "invents-results": InventsResults,
    "waits-for-tokens": WaitsForTokens,
    "ignores-halves": IgnoresHalves,
    "accepts-notifications": says(status=200, of=(202,), kind="notification"),
    "accepts-responses": says(status=200, of=(202,), kind="response"),
    "writes-text": says(of=(200,), revised={("content-type", "applic"): "text/plain"}),
    "answers-errors-well": says(status=200, of=(404,)),
    "forgets-why": says(status=400, of=(404,)),
    "forgets-challenge": says(of=(401,), revised={("www-authenticate", "Bearer"): ""}),
}


if __name__ == "__main__":
    fault, port, url = sys.argv[1:]
    server = proxy.Proxy(Endpoint(url), Recorder(None, {}, {}), int(port))
    server.RequestHandlerClass = FAULTS.get(fault, Header)
    with server:
        sys.exit(until_signal(server.start))
