"""The parts of mutants: the reference server behind a wire that changes messages.

A mutant is a class with hooks and a docstring that describes its fault in one sentence, or a row
of ``mutants(...)(...)`` where it differs from its base in data only. It runs
the reference server in its own process, on two pipes, and passes lines through its hooks:

    client --line--> heard() --> reference server --line--> said() --> client

Run one by hand: ``python tests/mutants NAME [ROOT]``.
"""

import copy
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

# The tests start thousands of mutants, so no module is imported here that few mutants use.
ROOT: Final = os.path.abspath(f"{__file__}/../../..")  # noqa: PTH100

LEGACY: Final = "2025-11-25"
MODERN: Final = "2026-07-28"
META: Final = "io.modelcontextprotocol/"

LATE: Final = 3.2
"""More seconds than we listen to a silent server, and fewer than we wait for an answer."""

Json = dict[str, Any]
Class = TypeVar("Class")
Out = Json | list[Any] | bytes | None
"""The result of a hook: a message, a batch, raw bytes (with line feed), or nothing."""


class Fault:
    """A server with one fault; a subclass overrides hooks.

    Attributes:
        asked: requests of the client by id, as sent.
        done: whether the client has closed its end.
        settings: arguments of the reference server besides its root.
        folder: the path of the folder it serves.
    """

    settings: ClassVar[Json] = {}

    def __init_subclass__(cls, **members: Any) -> None:
        """Take members that are data from the line that names the base."""
        for name, value in members.items():
            setattr(cls, name, value)

    def __init__(self) -> None:
        self.asked: dict[Any, Json] = {}
        self.done = False
        self.folder = "."
        self._lock = threading.Lock()
        self._forward: Callable[[bytes], None] = lambda _line: None

    @property
    def root(self) -> "Path":
        """The folder it serves."""
        from pathlib import Path  # noqa: PLC0415  (few mutants use it)

        return Path(self.folder)

    def start(self) -> None:
        """Act before the first line of the client."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        """Take a line of the client (``message`` is its JSON, or None); return the line to pass on.

        None drops the line; ``emit`` can answer it instead.
        """
        return line

    def said(self, message: Any, request: Json) -> Out:
        """Take a message of the server (or a batch) and its request; return the message to write.

        ``request`` is empty for notifications and batches.
        """
        return message  # type: ignore[no-any-return]

    def end(self) -> None:
        """Act after the last line."""

    def terminated(self) -> None:
        """Act on SIGTERM."""

    def emit(self, message: Out) -> None:
        """Write something to the client now."""
        if message is None:
            return
        raw = message if isinstance(message, bytes) else encode(message)
        with self._lock:
            sys.stdout.buffer.write(raw)
            sys.stdout.buffer.flush()

    def answer(self, request: Json, result: Any) -> None:
        """Answer a request with a result, with the required members of 2026-07-28."""
        if isinstance(result, dict) and is_modern(request):
            info = {META + "serverInfo": {"name": "mutant", "version": "1"}}
            result = {"resultType": "complete", "_meta": info, **result}
        self.emit({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def refuse(self, request: Json, code: int, message: str, data: Any = None) -> None:
        """Answer a request with an error."""
        self.emit(refusal(request, code, message, data))

    def pass_on(self, message: Any) -> None:
        """Send the reference server a message of the mutant."""
        self._forward(encode(message).rstrip(b"\n"))

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something after a while, unless the client has gone."""

        def act() -> None:
            time.sleep(seconds)
            if not self.done:
                action()

        threading.Thread(target=act, daemon=True).start()


class AskingTool(Fault):
    """The reference server with one more tool, ``ask``, read-only and without arguments.

    A subclass handles the call in ``on_ask``, and the answer of the client in ``on_answer``.

    Attributes:
        waiting: calls of ``ask`` by the id of the request to the client they wait for.
    """

    TOOL: ClassVar[Json] = {
        "name": "ask",
        "description": "Asks the client something.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    }

    waiting: ClassVar[dict[str, Json]] = {}
    _asks = 0

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if not isinstance(message, dict):
            return line
        if message.get("method") == "tools/call" and params(message).get("name") == "ask":
            unfit = misfit(message, self.TOOL)
            if unfit is None:
                self.on_ask(message)
            else:
                self.refuse(message, *unfit)
            return None
        if "method" not in message and message.get("id") in self.waiting:
            self.on_answer(self.waiting.pop(message["id"]), message)
            return None
        return line

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "tools/list" and "result" in message:
            message["result"]["tools"].append(dict(self.TOOL))
        return message  # type: ignore[no-any-return]

    @property
    def client(self) -> Json:
        """What the client declared in its handshake."""
        handshakes = [r for r in self.asked.values() if r.get("method") == "initialize"]
        found = params(handshakes[-1]).get("capabilities") if handshakes else None
        return found if isinstance(found, dict) else {}

    def on_ask(self, request: Json) -> None:
        """Handle a call of ``ask``."""
        self.answer(request, {"content": [{"type": "text", "text": "nothing to ask"}]})

    def on_answer(self, request: Json, message: Json) -> None:
        """Handle the client's answer to the request of a call of ``ask``."""
        self.answer(request, {"content": [{"type": "text", "text": "asked and answered"}]})

    def ask(self, request: Json, method: str, params: Json | None = None) -> str:
        """Send the client a request on behalf of a call; return its id."""
        own = f"ask-{request['id']}-{self._asks}"
        self._asks += 1
        self.waiting[own] = request
        self.emit({"jsonrpc": "2.0", "id": own, "method": method, "params": params or {}})
        return own


class SaysMore(Fault):
    """Writes additional messages after each list of tools, counted in ``turn``."""

    turn = -1

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "tools/list" and "result" in message:
            self.emit(message)
            self.turn += 1
            self.more()
            return None
        return message  # type: ignore[no-any-return]

    def more(self) -> None:
        """Write the messages."""


class ModernOnly(Fault):
    """The reference server without its handshake revisions.

    A subclass refuses the handshake in ``on_initialize``.
    """

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "initialize":
            self.on_initialize(message)
            return None
        return line

    def on_initialize(self, request: Json) -> None:
        """Handle an ``initialize``."""
        self.refuse(request, -32601, f"Method not found: this server speaks {MODERN}")


def misfit(call: Json, tool: Json) -> tuple[int, str] | None:
    """Return code and message of the error for an invalid call; None if the call is valid."""
    if not isinstance(params(call).get("arguments", {}), dict):
        return -32602, "Invalid params: arguments must be an object"
    if "task" in params(call) and "execution" not in tool:
        return -32601, "This tool cannot be called as a task"
    return None


def refusal(request: Json, code: int, message: str, data: Any = None) -> Json:
    """Build the error that answers a request (or takes the place of its answer)."""
    error: Json = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": request["id"], "error": error}


def params(message: Json) -> Json:
    """Return the params of a message; empty if it has none."""
    found = message.get("params")
    return found if isinstance(found, dict) else {}


def is_modern(request: Json) -> bool:
    """Whether a request is a stateless one."""
    meta = params(request).get("_meta")
    return isinstance(meta, dict) and META + "protocolVersion" in meta


def notifies(message: Any) -> bool:
    """Whether a message of the client is a notification."""
    return isinstance(message, dict) and "method" in message and "id" not in message


def taken_back(message: Any) -> str | int | None:
    """Return the id in a cancellation of the client; None if there is no valid one."""
    cancels = notifies(message) and message["method"] == "notifications/cancelled"
    named = params(message).get("requestId") if cancels else None
    return named if isinstance(named, str | int) else None


def meta(request: Json) -> Json:
    """Return the ``_meta`` of a request; empty if it has none."""
    found = params(request).get("_meta")
    return found if isinstance(found, dict) else {}


def client_capabilities(request: Json) -> Json:
    """Return the client capabilities of a stateless request."""
    found = params(request).get("_meta", {}).get(META + "clientCapabilities")
    return found if isinstance(found, dict) else {}


def encode(message: Any) -> bytes:
    """Write a message as a line."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


class Mutant(NamedTuple):
    """One registered mutant. It is not a dataclass, because that import doubles its startup time.

    Attributes:
        name: the class's name.
        breaks: the clauses it breaks; it breaks no others.
        outcome: how the breach counts: fail, warn, note; empty for the clause's own weight.
        revision: the revision it is tested in.
        passes: clauses that must pass: those of a control, which does everything right, and those
            whose scenarios show the fault to a rule of another chapter.
        startup: the most seconds to wait for its first answer.
        moves: the clause that counts the breach instead, if its chapter judges it.
        moved: how it counts there; empty for the clause's own weight.
        examples: how many are drawn for each property; 0 if the plain lines find the fault.
        found_by: the property whose examples find the fault.
        outcomes: how the breach of single clauses counts, registered as ``clause=warn``.
        elsewhere: clauses of other chapters that the fault breaks too. They are expected only if
            all clauses are judged.
    """

    name: str
    fault: type[Any]
    breaks: tuple[str, ...]
    outcome: str
    revision: str
    passes: tuple[str, ...]
    startup: float = 20.0
    moves: str = ""
    moved: str = ""
    examples: int = 0
    found_by: str = ""
    outcomes: Json = {}  # noqa: RUF012  (a default of a named tuple, never changed)
    elsewhere: tuple[str, ...] = ()

    @property
    def over_http(self) -> bool:
        """Whether it breaks a rule of HTTP."""
        return bool(getattr(self.fault, "over_http", False))

    def weight(self, clause: str) -> str:
        """Return how the breach of a clause counts; empty for the clause's own weight."""
        return str(self.outcomes.get(clause, self.outcome))

    def due(self, judged: Callable[[str], bool]) -> "Mutant":
        """Return the mutant with its breach moved, if the other clause is judged."""
        if not self.moves or not judged(self.moves):
            return self
        return self._replace(breaks=(self.moves,), outcome=self.moved, moves="")


REGISTRY: Final[dict[str, Mutant]] = {}


def mutant(
    *breaks: str,
    revision: str = LEGACY,
    outcome: str = "",
    startup: float = 20.0,
    moves: str = "",
    moved: str = "",
    examples: int = 0,
    found_by: str = "",
    passes: tuple[str, ...] = (),
    elsewhere: tuple[str, ...] = (),
) -> Callable[[type[Class]], type[Class]]:
    """Register a server that breaks these clauses and no other."""
    more = {"startup": startup, "moves": moves, "moved": moved}
    drawn = {"examples": examples, "found_by": found_by}
    return _register(breaks, outcome, revision, passes, elsewhere=elsewhere, **more, **drawn)


def control(
    *passes: str,
    revision: str = LEGACY,
    breaks: tuple[str, ...] = (),
    examples: int = 0,
    found_by: str = "",
) -> Callable[[type[Class]], type[Class]]:
    """Register a server on which conditional clauses apply and hold.

    ``breaks`` are unavoidable findings, such as the note about a deprecated feature.
    """
    return _register(breaks, "", revision, passes, examples=examples, found_by=found_by)


Edit = Callable[..., Any]


def mutants(
    *breaks: str, of: type[Any] | tuple[type[Any], ...], **marks: Any
) -> Callable[..., None]:
    """Register subclasses of ``of`` that differ in data only, one for each keyword.

    A row is ``Name="its fault"``, or ``Name=has("its fault", REVISION, member=value)``. A hook
    whose first argument is edited in place has an edit as its value: ``spoil=puts("ttlMs", -1)``.
    """
    return _rows(mutant, breaks, of, marks)


def controls(
    *passes: str, of: type[Any] | tuple[type[Any], ...], **marks: Any
) -> Callable[..., None]:
    """Register controls that differ in data only, as ``mutants`` does."""
    return _rows(control, passes, of, marks)


def has(fault: str, revision: str = "", /, **members: Any) -> tuple[str, Json]:
    """Return a row: a revision, if it is not that of the group, and the members of the class."""
    return revision, {"__doc__": fault, **members}


def puts(*path_and_value: Any) -> Edit:
    """Return the edit that sets what a path of keys and indices leads to."""
    *path, key, value = path_and_value

    def edit(found: Any) -> None:
        found[key] = copy.deepcopy(value)

    return _edit(path, edit)


def drops(*path: Any) -> Edit:
    """Return the edit that removes a member."""
    return _edit(path[:-1], lambda found: found.__delitem__(path[-1]))


def adds(*path_and_item: Any) -> Edit:
    """Return the edit that appends an item to a list."""
    *path, item = path_and_item
    return _edit(path, lambda found: found.append(copy.deepcopy(item)))


def edits(*each: Edit) -> Edit:
    """Return the edit that makes several, one after the other."""

    def hook(fault: Fault, value: Any, *_more: Any) -> Any:
        for edit in each:
            edit(fault, value)
        return value

    return hook


def on(method: str, *each: Edit) -> Edit:
    """Return the hook ``said`` that makes edits of the results of a method."""

    def hook(fault: Fault, message: Any, request: Json) -> Any:
        if request.get("method") == method and "result" in message:
            edits(*each)(fault, message["result"])
        return message

    return hook


def _edit(path: Sequence[Any], change: Callable[[Any], None]) -> Edit:
    def hook(_fault: Fault, value: Any, *_more: Any) -> Any:
        found = value
        for key in path:
            found = found[key]
        change(found)
        return value

    return hook


def _rows(
    register: Callable[..., Callable[[type[Any]], type[Any]]],
    clauses: tuple[str, ...],
    of: type[Any] | tuple[type[Any], ...],
    marks: Json,
) -> Callable[..., None]:
    def add(**rows: str | tuple[str, Json]) -> None:
        for name, row in rows.items():
            revision, members = has(row) if isinstance(row, str) else row
            own = {**marks, "revision": revision} if revision else marks
            register(*clauses, **own)(type(name, of if isinstance(of, tuple) else (of,), members))

    return add


def _register(
    breaks: tuple[str, ...],
    outcome: str,
    revision: str,
    passes: tuple[str, ...],
    elsewhere: tuple[str, ...] = (),
    **more: Any,
) -> Callable[[type[Class]], type[Class]]:
    def add(fault: type[Class]) -> type[Class]:
        name = fault.__name__
        ids = tuple(clause.partition("=")[0] for clause in breaks)
        others = tuple(clause.partition("=")[0] for clause in elsewhere)
        own = {c: o for c, _, o in (each.partition("=") for each in breaks + elsewhere) if o}
        if name in REGISTRY:
            raise ValueError(f"two mutants are called {name}")
        REGISTRY[name] = Mutant(
            name, fault, ids, outcome, revision, passes, outcomes=own, elsewhere=others, **more
        )
        return fault

    return add


def run(fault: Fault, root: str) -> int:
    """Serve one client on standard input and output, with the fault in between."""
    sys.path.insert(0, ROOT)
    from reference_server.server import serve  # noqa: PLC0415  (after the path is set)
    from reference_server.settings import Settings  # noqa: PLC0415

    # Hide the library: its tool starts a second process, which no mutant needs.
    sys.modules["cedarscript_editor"] = None  # type: ignore[assignment]

    to_server, from_client = os.pipe()
    from_server, to_client = os.pipe()
    forwarding = threading.Lock()

    def forward(line: bytes) -> None:
        with forwarding:
            os.write(from_client, line + b"\n")

    fault._forward = forward
    fault.folder = root

    def listen() -> None:
        fault.start()
        for raw in sys.stdin.buffer:
            passed = _heard(fault, raw.rstrip(b"\n"))
            if passed is not None:
                forward(passed)
        if not fault.done:
            fault.done = True
            os.close(from_client)

    def speak() -> None:
        for line in lines(from_server):
            message = parse(line)
            request: Json = {}
            if isinstance(message, dict) and "method" not in message:
                request = fault.asked.get(message.get("id"), {})
            fault.emit(fault.said(message, request))

    def leave(_number: int, _frame: object) -> None:
        """End as the reference server does: as if the input had ended, with its last words."""
        if fault.done:
            os._exit(143)
        fault.done = True
        fault.terminated()
        os.close(from_client)

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, leave)
    listener = threading.Thread(target=listen, daemon=True)
    speaker = threading.Thread(target=speak, daemon=True)
    listener.start()
    speaker.start()
    status = serve(to_server, to_client, Settings(roots=(root,), **fault.settings))
    os.close(to_client)
    speaker.join(5)
    fault.end()
    return status


def _heard(fault: Fault, line: bytes) -> bytes | None:
    """Note the requests of a line of the client; return what is passed on."""
    message = parse(line)
    for one in message if isinstance(message, list) else [message]:
        if isinstance(one, dict) and isinstance(one.get("id"), str | int):
            fault.asked[one["id"]] = one
    return fault.heard(line, message)


def lines(descriptor: int) -> Iterator[bytes]:
    """Read lines from a descriptor until it ends."""
    with os.fdopen(descriptor, "rb") as stream:
        for raw in stream:
            yield raw.rstrip(b"\n")


def parse(line: bytes) -> Any:
    """Read a line as JSON; None if it is not JSON."""
    try:
        return json.loads(line)
    except ValueError:
        return None
