"""Servers with one fault in their HTTP side; and good ones. The tools are correct."""

# ruff: noqa: N801  (the classes of endpoints are attributes)

import itertools
import json
import os
import secrets
import socketserver
import sys
import threading
import time
from datetime import UTC, datetime
from functools import partial
from http.client import parse_headers
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from mcp_touchstone.bridge.child import Launch
from mcp_touchstone.bridge.endpoint import ClientConnection
from mcp_touchstone.bridge.exchanges import Exchanges, HttpExchange
from mcp_touchstone.bridge.listener import Listener, until_signal
from mcp_touchstone.bridge.sessions import BridgeSession
from mcp_touchstone.http_server.hosts import guard
from mcp_touchstone.http_server.reading import Body, request_line
from mcp_touchstone.http_server.refusals import INVALID_REQUEST, Refusal
from mcp_touchstone.http_server.streams import EventStream
from tests.fakes.server import Guard, fakes, has

ALL = ("rebinding", "callers", "requests")


class Behind(Guard, families=()):
    """The correct server behind the HTTP side of each fake."""


class RunsTasks(Guard, families=(), tools=("greet",)):
    """Runs a tool as a task; all its processes keep their tasks in one file."""

    lists_all = False
    knows_all = True
    capabilities = MappingProxyType(
        {"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}
    )

    def listed(self, tool: str) -> dict[str, Any]:
        hints = {"readOnlyHint": True}
        schema = {"type": "object", "properties": {}}
        support = {"taskSupport": "optional"}
        return {"name": tool, "inputSchema": schema, "annotations": hints, "execution": support}

    def greet(self) -> str:
        return "hello"

    def other(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method == "tools/call" and "task" in params:
            now = datetime.now(UTC).isoformat()
            times = {"createdAt": now, "lastUpdatedAt": now, "ttl": 60_000}
            task = {"taskId": secrets.token_hex(16), "status": "completed", **times}
            with self.store.open("a", encoding="utf-8") as store:
                store.write(json.dumps([os.getpid(), task]) + "\n")
            return {"result": {"task": task}}
        if method not in {"tasks/list", "tasks/get"}:
            return None
        kept = [json.loads(line) for line in self.store.read_text().splitlines()]
        found = [task for owner, task in kept if self.lists_all or owner == os.getpid()]
        result: Any = {"tasks": found}
        if "taskId" in params:
            mine = kept if self.knows_all else [one for one in kept if one[0] == os.getpid()]
            result = next((t for _, t in mine if t["taskId"] == params["taskId"]), None)
        if result is None:
            return {"error": {"code": -32602, "message": "no such task"}}
        return {"result": result}

    @property
    def store(self) -> Path:
        found = Path(self.root, "tasks.jsonl")
        found.touch()
        return found


class RunsOwnTasks(RunsTasks, knows_all=False):
    """Knows the tasks of its own process only."""


class ListsTasksOfAll(RunsTasks, lists_all=True):
    """Lists the tasks of all its processes."""


class ListsTasksOnly(RunsOwnTasks, lists_all=True):
    """Lists the tasks of all its processes, and knows those of its own only."""


class WatchesFiles(Guard, families=(), tools=("list_directory",)):
    """Gives files as resources, and tells its subscribers of changes."""

    capabilities = MappingProxyType({"resources": {"subscribe": True}})

    def other(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        uri = params.get("uri", "")
        path = Path(unquote(uri.removeprefix("file://")))
        results: dict[str, Any] = {}
        if path.is_relative_to(self.root) and path.is_file():
            content = {"uri": uri, "text": path.read_text(errors="replace")}
            results = {"resources/subscribe": {}, "resources/read": {"contents": [content]}}
        files = sorted(one for one in Path(self.root).iterdir() if one.is_file())
        listed = [{"uri": one.as_uri(), "name": one.name} for one in files]
        results["resources/list"] = {"resources": listed}
        results["resources/templates/list"] = {"resourceTemplates": []}
        if method == "resources/subscribe" and method in results:
            threading.Thread(target=self.watch, args=(path, uri), daemon=True).start()
        return {"result": results[method]} if method in results else None

    def watch(self, path: Path, uri: str) -> None:
        size = path.stat().st_size
        while True:
            time.sleep(0.05)
            if path.stat().st_size != size:
                size = path.stat().st_size
                update = {"method": "notifications/resources/updated", "params": {"uri": uri}}
                self.emit({"jsonrpc": "2.0", **update})


class SpeaksHttp(Guard, over_http=True, families=()):
    """The HTTP side of the bridge; a subclass breaks one rule of it.

    Its first option is its port.
    """

    endpoint: type[ClientConnection] = ClientConnection
    behind = "Behind"

    def arrange(self, listener: Listener) -> None:
        """Break the rule."""

    def serve(self) -> None:
        command = (sys.executable, sys.argv[0], self.behind, self.root)
        with Listener(
            Launch(command=command), port=int(self.options[0]), most=64, startup=30.0
        ) as listener:
            listener.RequestHandlerClass = self.endpoint
            self.arrange(listener)
            until_signal(listener.start)


class StreamsEveryAnswer(SpeaksHttp, families=ALL):
    """Answers on streams with event ids, and replays only what belongs to the session."""

    class endpoint(ClientConnection):
        def respond(self, exchange: HttpExchange, *words: Any, **more: Any) -> bool:
            if exchange.request["method"] == "initialize":
                return super().respond(exchange, *words, **more)
            self.begin_stream()
            return self.write_stream(exchange, 0, resumable=more.get("resumable"))


class AllowsAnyOrigin(SpeaksHttp, trips={"rebinding-origin"}):
    """Checks Host only."""

    class endpoint(ClientConnection):
        def _check(self) -> None:
            del self.headers["Origin"]
            super()._check()


class ComparesOriginWithHost(SpeaksHttp, trips={"rebinding-page"}):
    """Allows pages whose origin is the host that they name."""

    class endpoint(ClientConnection):
        def _check(self) -> None:
            origin = self.headers.get("Origin")
            if origin is not None and origin.partition("://")[2] == self.headers.get("Host"):
                del self.headers["Origin"]
                del self.headers["Host"]
                self.headers["Host"] = "localhost"
            super()._check()


class AllowsAnyHost(SpeaksHttp, trips={"rebinding-host"}):
    """Checks Origin only."""

    class endpoint(ClientConnection):
        def _check(self) -> None:
            del self.headers["Host"]
            self.headers["Host"] = "localhost"
            super()._check()


class CountsSessions(SpeaksHttp, trips={"callers-guessed"}):
    """Numbers its sessions."""

    def arrange(self, listener: Listener) -> None:
        numbers = itertools.count(123)
        begin = listener.sessions.begin

        def counted() -> BridgeSession:
            session = begin()
            session.id = f"session-{next(numbers):08x}"
            return session

        listener.sessions.begin = counted  # type: ignore[method-assign]


class TakesAnySession(SpeaksHttp, trips={"callers-made-up"}):
    """Makes a session for each id it is given."""

    def arrange(self, listener: Listener) -> None:
        find = listener.sessions.find

        def any_session(known: str | None) -> BridgeSession:
            try:
                return find(known)
            except Refusal as refusal:
                if not known or refusal.status != 404:
                    raise
                return next(iter(listener.sessions._all.values()))

        listener.sessions.find = any_session  # type: ignore[assignment,method-assign]


class SharesOneTable(SpeaksHttp, trips={"callers-crossed"}):
    """Keeps the waiting clients of all sessions in one table by the id of the request."""

    def arrange(self, listener: Listener) -> None:
        owners: dict[Any, Exchanges] = {}
        answered, opened = Exchanges.answered, Exchanges.open

        def answer_last(own: Exchanges, key: Any, data: bytes, answer: Any) -> HttpExchange | None:
            time.sleep(0.05)  # both requests have arrived
            return answered(owners.pop(key, own), key, data, answer)

        def note(own: Exchanges, messages: Any) -> HttpExchange | None:
            exchange = opened(own, messages)
            owners.update(dict.fromkeys(exchange.waiting if exchange is not None else (), own))
            return exchange

        Exchanges.answered = answer_last  # type: ignore[assignment,method-assign]
        Exchanges.open = note  # type: ignore[assignment,method-assign]


class ReportsProgress(Guard, families=(), tools=("greet",)):
    """Reports progress before each answer, which is the same for all."""

    def listed(self, tool: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {}}
        return {"name": tool, "inputSchema": schema, "annotations": {"readOnlyHint": True}}

    def other(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        token = params.get("_meta", {}).get("progressToken")
        if method == "tools/call" and token is not None:
            time.sleep(0.1)  # requests of both callers have arrived
            about = {"progressToken": token, "progress": 1}
            self.emit({"jsonrpc": "2.0", "method": "notifications/progress", "params": about})
        return None

    def greet(self) -> str:
        return "hello"


class KeepsProgressApart(SpeaksHttp, families=("callers",)):
    """Sends progress to the caller whose request it is about."""

    behind = "ReportsProgress"


class SendsProgressToTheNewest(KeepsProgressApart, trips={"callers-crossed"}):
    """Sends progress to the caller whose request came last."""

    def arrange(self, listener: Listener) -> None:
        opened: list[Exchanges] = []
        begin = Exchanges.__init__

        def note(own: Exchanges) -> None:
            begin(own)
            opened.append(own)

        def newest(_own: Exchanges, _token: Any) -> HttpExchange | None:
            return next(filter(None, (one.newest() for one in reversed(opened))), None)

        Exchanges.__init__ = note  # type: ignore[assignment,method-assign]
        Exchanges.with_token = newest  # type: ignore[assignment,method-assign]


class GivesNoSessionIds(SpeaksHttp, families=("callers",)):
    """Gives out no session id, and answers one request after the other."""

    answering = threading.Lock()

    class endpoint(ClientConnection):
        def answer(self, status: int, body: bytes = b"", extra: Any = None) -> None:
            super().answer(status, body)

        def _session(self) -> BridgeSession:
            return list(self.server.sessions._all.values())[-1]

        def _post(self, line: bytes, messages: list[dict[str, Any]]) -> None:
            with GivesNoSessionIds.answering:
                super()._post(line, messages)


class SharesOneTableWithoutSessions(SpeaksHttp, trips={"callers-crossed"}):
    """Gives out no session id, and answers to the last client that used the id of a request."""

    class endpoint(GivesNoSessionIds.endpoint):
        def _post(self, line: bytes, messages: list[dict[str, Any]]) -> None:
            ClientConnection._post(self, line, messages)

    def arrange(self, listener: Listener) -> None:
        answered, opened = Exchanges.answered, Exchanges.open
        opening = threading.Lock()

        def answer_last(own: Exchanges, *words: Any) -> HttpExchange | None:
            time.sleep(0.05)  # both requests have arrived
            return answered(own, *words)

        def add_first(own: Exchanges, messages: Any) -> HttpExchange | None:
            with opening:
                before, own._open = own._open, []
                exchange = opened(own, messages)
                own._open += before
            return exchange

        Exchanges.answered = answer_last  # type: ignore[assignment,method-assign]
        Exchanges.open = add_first  # type: ignore[assignment,method-assign]


class ReplaysAnyStream(StreamsEveryAnswer, trips={"callers-replayed"}, families=()):
    """Looks for the stream of an event id in all sessions."""

    class endpoint(StreamsEveryAnswer.endpoint):
        def _wanted(self, session: BridgeSession) -> tuple[EventStream, int]:
            number, _, after = (self.headers.get("Last-Event-ID") or "0-0").partition("-")
            for one in self.server.sessions._all.values():
                stream = one.stream(int(number))
                if one is not session and stream is not None and int(number):
                    return stream, int(after)
            return super()._wanted(session)


class ReplaysNothing(StreamsEveryAnswer, families=("callers",)):
    """Gives its events ids, and sends none of them again."""

    class endpoint(StreamsEveryAnswer.endpoint):
        def _wanted(self, session: BridgeSession) -> tuple[EventStream, int]:
            return session.listening, session.listening.delivered


def _broadcast_updates(listener: Listener) -> None:
    """Send each update to all sessions."""
    route = BridgeSession._route

    def broadcast(own: BridgeSession, data: bytes, message: Any) -> None:
        route(own, data, message)
        if message.get("method") == "notifications/resources/updated":
            for session in listener.sessions._all.values():
                if session is not own:
                    session.listening.put(data)

    BridgeSession._route = broadcast  # type: ignore[assignment,method-assign]


class NotifiesEverySession(SpeaksHttp, trips={"callers-overheard"}, behind="WatchesFiles"):
    """Sends every update to all sessions."""

    def arrange(self, listener: Listener) -> None:
        _broadcast_updates(listener)


class ChecksTokens(SpeaksHttp, env={"ISSUER": "{issuer}", "AUDIENCE": "{audience}"}):
    """Accepts the tokens of the issuer of the run, and binds sessions to their users."""

    families: tuple[str, ...] = ("users", "callers")

    def arrange(self, listener: Listener) -> None:
        from mcp_touchstone.bridge.access import Access  # noqa: PLC0415  (few fakes need it)

        listener.access = Access(os.environ["ISSUER"], os.environ["AUDIENCE"])


class NotifiesOtherUsers(
    ChecksTokens, trips={"callers-overheard"}, families=(), behind="WatchesFiles"
):
    """Sends every update to the sessions of all users."""

    def arrange(self, listener: Listener) -> None:
        super().arrange(listener)
        _broadcast_updates(listener)


class SharesSessions(ChecksTokens, trips={"users-session"}, families=()):
    """Serves a session for any user who knows its id."""

    class endpoint(ClientConnection):
        def _session(self) -> BridgeSession:
            session = self.server.sessions.find(self.headers.get("Mcp-Session-Id"))
            self.user = session.user
            return super()._session()


class IsBusyForOtherUsers(ChecksTokens, families=("users",)):
    """Answers another user by 409 without a body: it neither serves nor refuses him."""

    class endpoint(ClientConnection):
        def answer(self, status: int, body: bytes = b"", extra: Any = None) -> None:
            if status in {403, 404} and self.headers.get("Mcp-Session-Id"):
                status, body = 409, b""
            super().answer(status, body, extra or {})


class LogsHeaders(ChecksTokens, trips={"users-token-logged"}, families=()):
    """Logs the headers of each refused request."""

    class endpoint(ClientConnection):
        def answer(self, status: int, body: bytes = b"", extra: Any = None) -> None:
            if status >= 400:
                print("refused", dict(self.headers), file=sys.stderr, flush=True)
            super().answer(status, body, extra or {})


class TakesTheFirstLength(SpeaksHttp, trips={"requests-smuggled"}):
    """Takes the first of two lengths, and ignores chunks and malformed headers."""

    class endpoint(ClientConnection):
        def _read_head(self, raw: bytes) -> None:
            self.command, self.path, self.request_version = request_line(raw)
            self.headers = parse_headers(self.rfile)
            self.body = Body(self.rfile, int(self.headers.get("Content-Length") or 0))
            self.close_connection = False

        def _check(self) -> None:
            guard(self.headers, self.server.names)


class RepeatsTheMethod(SpeaksHttp, trips={"requests-injected"}):
    """Repeats the method of a request in a header of the response."""

    class endpoint(ClientConnection):
        method = ""

        def _post(self, line: bytes, messages: list[dict[str, Any]]) -> None:
            self.method = str(messages[0].get("method"))
            super()._post(line, messages)

        def end_headers(self) -> None:
            if self.method:
                self.send_header("X-Method", self.method)
            super().end_headers()


class ServesOneAtATime(SpeaksHttp, trips={"requests-endless"}):
    """Has one thread for all connections."""

    class endpoint(ClientConnection):
        def do_GET(self) -> None:  # noqa: N802  (the base class's name)
            with self.refusing():
                raise Refusal(405, INVALID_REQUEST, "no stream")

    def arrange(self, listener: Listener) -> None:
        serve = partial(socketserver.BaseServer.process_request, listener)
        listener.process_request = serve  # type: ignore[method-assign]


class KeepsConnections(SpeaksHttp, trips={"requests-abandoned"}):
    """Never closes a connection."""

    def arrange(self, listener: Listener) -> None:
        kept: list[Any] = []
        close = listener.shutdown_request

        def keep(request: Any) -> None:
            kept.append(request.dup())
            close(request)

        listener.shutdown_request = keep  # type: ignore[method-assign]


fakes(__name__)(
    SpeaksHttpWell=has(
        SpeaksHttp, "A correct server that is tested with all threats of HTTP.", families=ALL
    ),
    KeepsTasksApart=has(
        SpeaksHttp,
        "Lists to each session its own tasks.",
        families=("callers",),
        behind="RunsTasks",
    ),
    ListsTasksOfOthers=has(
        SpeaksHttp,
        "Lists the tasks of all sessions to everybody.",
        "callers-listed",
        behind="ListsTasksOfAll",
    ),
    NotifiesSubscribersOnly=has(
        SpeaksHttp,
        "Sends each session the updates to which it has subscribed.",
        families=("callers",),
        behind="WatchesFiles",
    ),
    NotifiesItsUserOnly=has(
        ChecksTokens,
        "Sends each session the updates to which it has subscribed, and serves users only.",
        families=("callers",),
        behind="WatchesFiles",
    ),
    BindsTasksToUsers=has(
        ChecksTokens,
        "Gives each session its own tasks.",
        families=("users",),
        behind="RunsOwnTasks",
    ),
    SharesTasks=has(
        ChecksTokens,
        "Gives a task to any user who knows its id.",
        "users-task",
        families=(),
        behind="RunsTasks",
    ),
    ListsTasksToUsers=has(
        ChecksTokens,
        "Lists the tasks of all users to each of them.",
        "users-task",
        families=(),
        behind="ListsTasksOnly",
    ),
)
