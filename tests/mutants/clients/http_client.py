"""A scripted client over HTTP, with a fault that its first argument names, or with none.

``python http_client.py FAULT URL``. A fault is a function that changes the requests in one place.
"""

import http.client
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

Json = dict[str, Any]
META: Final = "io.modelcontextprotocol/"
INFO: Final = {"name": "small", "version": "1"}
BOTH: Final = "application/json, text/event-stream"
NAMES: Final = {"tools/call": "name"}


@dataclass(frozen=True)
class Request:
    """A request before it is sent; ``headers`` has the headers that the protocol defines."""

    verb: str
    target: str
    message: Mapping[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """The method of its message."""
        return str(self.message.get("method", ""))


Fault = Callable[[Request], Request | None]


def without(name: str, method: str) -> Fault:
    """Leave a header out of requests with a method or verb."""
    return lambda r: (
        replace(r, headers={k: v for k, v in r.headers.items() if k != name})
        if method in {r.method, r.verb}
        else r
    )


def other(name: str, value: str, method: str) -> Fault:
    """Give a header of requests with a method or verb another value."""
    return lambda r: (
        replace(r, headers={**r.headers, name: value}) if method in {r.method, r.verb} else r
    )


FAULTS: Final[dict[str, tuple[str, Fault]]] = {
    "client-http-accept": ("tools_call", other("Accept", "application/json", "tools/list")),
    "client-http-get-accept": ("tools_call", other("Accept", "application/json", "GET")),
    "client-http-version": ("tools_call", without("MCP-Protocol-Version", "tools/list")),
    "client-http-session": ("tools_call", without("Mcp-Session-Id", "notifications/initialized")),
    "client-http-session-lost": ("session-lost", lambda r: r),
    "client-http-session-deleted": ("tools_call", lambda r: None if r.verb == "DELETE" else r),
    "client-http-resumes": ("resume", lambda r: None if "Last-Event-ID" in r.headers else r),
    "client-http-method": ("stateless", other("Mcp-Method", "tools/List", "tools/list")),
    "client-http-name": ("stateless", without("Mcp-Name", "tools/call")),
    "client-http-token-in-query": (
        "tools_call",
        lambda r: replace(r, target=f"{r.target}?access_token=x") if r.verb == "GET" else r,
    ),
}
"""Clause that is broken -> the scenario and the fault."""


class Client:
    """The client; it answers no questions and reads each response to its end."""

    def __init__(self, fault: str, url: str) -> None:
        self._fault = FAULTS.get(fault, ("", lambda r: r))[1]
        self._stays = fault == "client-http-session-lost"
        self._url = urlsplit(url)
        self._modern = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"] >= "2026"
        self._version = os.environ.get("REVISION", "2025-11-25")
        self._session: dict[str, str] = {}
        self._number = 0
        self._listener: http.client.HTTPConnection | None = None

    def run(self) -> None:
        """Open, take the steps, and close."""
        self._open()
        for step in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["steps"]:
            if "list" in step:
                self._ask("tools/list", {})
            else:
                arguments = {name: step[name] for name in ("a", "b")}
                self._ask("tools/call", {"name": step["call"], "arguments": arguments})
        if self._session:
            self._send("DELETE")
        if self._listener is not None:
            self._listener.close()

    def _open(self) -> None:
        if self._modern:
            self._ask("server/discover", {})
            return
        self._session = {}
        params = {"protocolVersion": self._version, "capabilities": {}, "clientInfo": INFO}
        self._ask("initialize", params)
        self._post({"method": "notifications/initialized"})
        self._listener = self._begin(Request("GET", self._url.path, {}, self._headers("GET")))

    def _ask(self, method: str, params: Json) -> None:
        self._number += 1
        if self._modern:
            about = {"protocolVersion": "2026-07-28", "clientInfo": INFO, "clientCapabilities": {}}
            params = {**params, "_meta": {META + name: value for name, value in about.items()}}
        self._post({"id": self._number, "method": method, "params": params})

    def _post(self, message: Json) -> None:
        message = {"jsonrpc": "2.0", **message}
        status, events = self._send("POST", message)
        if status == http.client.NOT_FOUND and "id" in message and not self._stays:
            self._open()
            self._post(message)
        last = ""
        while "id" in message and events and not any('"result"' in data for _, data in events):
            last = next((name for name, _ in events[::-1] if name), last)
            time.sleep(0.5)  # the server says so with retry
            _, events = self._send("GET", {}, **{"Last-Event-ID": last})

    def _headers(self, verb: str, message: Mapping[str, Any] = {}) -> dict[str, str]:
        method = str(message.get("method", ""))
        headers = {"Accept": BOTH if verb == "POST" else "text/event-stream", **self._session}
        if self._modern:
            headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
            if method in NAMES:
                headers["Mcp-Name"] = message["params"][NAMES[method]]
        elif method != "initialize" and self._version >= "2025-06-18":
            headers["MCP-Protocol-Version"] = self._version
        return headers

    def _send(
        self, verb: str, message: Mapping[str, Any] = {}, **more: str
    ) -> tuple[int, list[tuple[str, str]]]:
        """Send a request; return its status, and the ids and data of its events."""
        headers = {**self._headers(verb, message), **more}
        connection = self._begin(Request(verb, self._url.path, message, headers))
        if connection is None:
            return 0, []
        response = connection.getresponse()
        if message.get("method") == "initialize":
            self._session = {"Mcp-Session-Id": response.headers["Mcp-Session-Id"] or ""}
        body = response.read().decode()
        connection.close()
        if "event-stream" not in response.headers.get("Content-Type", ""):
            return response.status, []
        found = []
        for event in body.split("\n\n"):
            fields = dict(line.split(": ", 1) for line in event.splitlines() if ": " in line)
            found.append((fields.get("id", ""), fields.get("data", "")))
        return response.status, found

    def _begin(self, request: Request) -> http.client.HTTPConnection | None:
        changed = self._fault(request)
        if changed is None:
            return None
        connection = http.client.HTTPConnection(self._url.netloc, timeout=20)
        body = json.dumps(changed.message).encode() if changed.message else None
        kind = {"Content-Type": "application/json"} if body else {}
        connection.request(changed.verb, changed.target, body, {**kind, **changed.headers})
        return connection


if __name__ == "__main__":
    Client(*sys.argv[1:]).run()
