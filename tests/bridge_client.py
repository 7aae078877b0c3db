"""A client of streamable HTTP that can also misbehave, on http.client."""

import http.client
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from tests.conftest import HERE

META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
TOY = (sys.executable, str(HERE / "toy_server.py"), ".")
SCRIBE = (sys.executable, str(HERE / "scribe_server.py"))
WAIT = 30.0
EVENTS = "text/event-stream"

JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@dataclass
class Event:
    """One event of a stream."""

    data: str
    id: str = ""
    retry: str = ""

    @property
    def message(self) -> Any:
        return json.loads(self.data)


class Reply:
    """A response whose body may be endless."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection
        self.response = connection.getresponse()
        self.status = self.response.status

    @property
    def kind(self) -> str:
        return self.header("Content-Type") or ""

    def header(self, name: str) -> str | None:
        return self.response.getheader(name)

    def json(self) -> Any:
        return json.loads(self.response.read())

    def events(self) -> Iterator[Event]:
        """Return the events up to the end of the stream."""
        fields: dict[str, str] = {}
        limit = time.monotonic() + WAIT
        for raw in self.response:
            assert time.monotonic() < limit, "nothing but signs of life"
            line = raw.decode().rstrip("\n")
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
            elif "data" in fields:
                yield Event(fields["data"], fields.get("id", ""), fields.get("retry", ""))
                fields = {}

    def messages(self) -> list[Any]:
        """Return all messages, from a stream or a plain body."""
        if self.kind == "text/event-stream":
            return [one.message for one in self.events() if one.data]
        return [self.json()]

    def close(self) -> None:
        self.response.close()
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass
class Http:
    """Requests to one bridge.

    Attributes:
        port: where it listens.
        headers: sent with each request, below those that are given.
    """

    port: int
    headers: dict[str, str] = field(default_factory=dict)
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def send(
        self, method: str, body: Any = None, *, path: str = "/mcp", **headers: str | None
    ) -> Reply:
        """Send a request; a header of None is left out, ``_`` in its name is a hyphen."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        base = JSON if method == "POST" else {"Accept": "text/event-stream"}
        low = {name.lower() for name in given}
        known = {k: v for k, v in {**base, **self.headers}.items() if k.lower() not in low}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {k: v for k, v in {**known, **given}.items() if v is not None}
        connection.request(method, path, data, sent)
        return Reply(connection)

    def post(self, body: Any, **headers: str | None) -> Reply:
        return self.send("POST", body, path="/mcp", **headers)

    def request(self, method: str, params: Any = None, **headers: str | None) -> Reply:
        """Send a request of a session."""
        return self.post(request(method, params, id=next(self.ids)), **headers)

    def ask(self, method: str, params: Any = None) -> Any:
        """Return the answer to a request of a session."""
        with self.request(method, params) as reply:
            return reply.messages()[-1]

    def modern(
        self,
        method: str,
        params: Any = None,
        *,
        id: Any = 1,  # noqa: A002  (the member's name)
        meta: Any = (),
        **more: str | None,
    ) -> Reply:
        """Send a request of 2026-07-28, with all headers it needs."""
        params = {**(params or {}), "_meta": {**modern_meta(), **dict(meta)}}
        name = params.get("name", params.get("uri"))
        named = {"Mcp_Name": name} if method in NAMED else {}
        headers: dict[str, str | None]
        headers = {"MCP_Protocol_Version": MODERN, "Mcp_Method": method, **named, **more}
        return self.post(request(method, params, id=id), **headers)


NAMED = ("tools/call", "prompts/get", "resources/read")


def modern_meta() -> dict[str, Any]:
    return {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}


def request(method: str, params: Any = None, *, id: Any = 1) -> dict[str, Any]:  # noqa: A002
    given = {} if params is None else {"params": params}
    return {"jsonrpc": "2.0", "id": id, "method": method, **given}


def notification(method: str, params: Any = None) -> dict[str, Any]:
    given = {} if params is None else {"params": params}
    return {"jsonrpc": "2.0", "method": method, **given}


def opening(revision: str = "2025-11-25", **capabilities: Any) -> dict[str, Any]:
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": info}
    return request("initialize", params, id="opening")


Bridge = Callable[..., Http]


def session(http: Http, revision: str = "2025-11-25", **capabilities: Any) -> Http:
    """Open a session."""
    with http.post(opening(revision, **capabilities)) as reply:
        assert reply.status == 200
        assert reply.json()["result"]["protocolVersion"] == revision
        name = reply.header("Mcp-Session-Id") or ""
    opened = Http(http.port, {"Mcp-Session-Id": name, "MCP-Protocol-Version": revision})
    with opened.post(notification("notifications/initialized")) as reply:
        assert reply.status == 202
        assert reply.response.read() == b""
    return opened


def refused(reply: Reply, status: int, *words: str) -> Any:
    """Check that a request was refused with a JSON-RPC error, and return the error."""
    body = reply.json()
    reply.close()
    assert reply.status == status, body
    assert body.get("id", 0) is not None, "an id that is not known is left out"
    for word in words:
        assert word in body["error"]["message"]
    return body["error"]
