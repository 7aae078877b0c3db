"""One mutant for each rule on clients."""

import json
from collections.abc import Callable
from typing import Any, Final

from mcp_touchstone.catalog.revision import META
from mcp_touchstone.wire.events import Happened
from tests.mutants.clients.client import ANSWERS, CAN, Json, Mutant, Out

LIST: Final = {"jsonrpc": "2.0", "id": 90, "method": "tools/list"}


def at(method: str, change: Callable[[Json], Out]) -> Callable[[Json], Out]:
    """Change the messages with a method only."""
    return lambda message: change(message) if message.get("method") == method else message


def with_params(**more: Any) -> Callable[[Json], Out]:
    """Add params to a message."""
    return lambda message: {**message, "params": {**message.get("params", {}), **more}}


def with_meta(**more: Any) -> Callable[[Json], Out]:
    """Add keys to ``_meta``."""
    return lambda m: with_params(_meta={**m["params"].get("_meta", {}), **more})(m)


def beside(*others: Json | bytes) -> Callable[[Json], Out]:
    """Write other messages after a message."""
    return lambda message: [message, *others]


def note(method: str, **params: Any) -> Json:
    """Return a notification."""
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


def without(name: str) -> Callable[[Json], Out]:
    """Leave a field out of ``_meta``."""

    def change(message: Json) -> Out:
        meta = {k: v for k, v in message["params"]["_meta"].items() if k != META + name}
        return {**message, "params": {**message["params"], "_meta": meta}}

    return at("tools/list", change)


def answer(**more: Json) -> dict[str, Json]:
    """Return the answers of a client with others in their place."""
    names = {"roots": "roots/list", "form": "elicitation/create"}
    return {**ANSWERS, **{names[name]: value for name, value in more.items()}}


def refuses(method: str, error: Json) -> Callable[[Json], Out]:
    """Write an error in place of the result that fits a method."""

    def change(message: Json) -> Out:
        if message.get("result") != ANSWERS[method]:
            return message
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}

    return change


def _state(change: Callable[[Json], Json]) -> Callable[[Json], Out]:
    """Change the params of retries."""

    def apply(message: Json) -> Out:
        params = message.get("params", {})
        if "inputResponses" not in params:
            return message
        return {**message, "params": change(params)}

    return apply


class _KeepsId:
    """Give each retry the id of the first call."""

    def __init__(self) -> None:
        self.first: Any = None

    def __call__(self, message: Json) -> Out:
        if message.get("method") != "tools/call":
            return message
        if self.first is None:
            self.first = message["id"]
        return {**message, "id": self.first}


TOOLS: Final = {**CAN, "sampling": {"tools": {}}}
NAMELESS: Final = {k: v for k, v in CAN.items() if k != "roots"}
VERSION: Final = {META + "protocolVersion": "2099-01-01", META + "clientCapabilities": {}}

MUTANTS: Final = [
    Mutant("client-initialize-first", change=at("initialize", lambda m: [LIST, m])),
    Mutant("client-waits-for-initialize", change=at("initialize", beside(LIST))),
    Mutant("client-initialized", change=at("notifications/initialized", lambda _m: [])),
    Mutant("client-leaves-unknown-version", "version", habits="stubborn"),
    Mutant(
        "client-initialize-alone",
        revision="2025-03-26",
        change=at("initialize", lambda m: [[m]]),
    ),
    Mutant("client-closes-input-first", event=Happened.SIGNALLED + "SIGTERM"),
    Mutant("client-answers-by-id", "order", habits="crosses"),
    Mutant("client-skills-no-prefetch", "skills", habits="prefetches"),
    Mutant("client-skills-digest", "skills", habits="digest"),
    Mutant("client-skills-size", "skills", habits="size"),
    Mutant("client-skills-frontmatter", "skills", habits="frontmatter"),
    Mutant("client-skills-invalid-entry", "skills", habits="bare"),
    Mutant("client-skills-by-uri", "skills", habits="listless"),
    Mutant("client-skills-directory", "skills", habits="directories"),
    Mutant("client-only-messages", change=at("tools/list", lambda m: [b"hello\n", m])),
    Mutant(
        "client-no-embedded-newlines",
        change=at(
            "tools/call",
            beside(json.dumps(note("cancelled", requestId=2), indent=1).encode() + b"\n"),
        ),
    ),
    Mutant(
        "client-utf8",
        change=at(
            "tools/call",
            lambda m: [
                json.dumps(m)[:-1].encode() + ', "x": "é"}\n'.encode("latin-1"),
            ],
        ),
    ),
    Mutant("client-line-feed", last=json.dumps(note("cancelled", requestId=2)).encode()),
    Mutant("client-no-batch", change=at("tools/list", lambda m: [[m]])),
    Mutant("client-jsonrpc-version", change=at("tools/list", lambda m: {**m, "jsonrpc": "1.0"})),
    Mutant(
        "client-message-kind",
        "questions",
        change=refuses("roots/list", {"code": "x", "message": "no"}),
    ),
    Mutant("client-params-object", change=at("tools/list", lambda m: {**m, "params": []})),
    Mutant("client-request-id", change=at("tools/list", lambda m: {**m, "id": 1.5})),
    Mutant("client-request-id-unique", change=at("tools/list", lambda m: {**m, "id": 1})),
    Mutant(
        "client-notification-no-id",
        change=at("tools/call", beside({**note("roots/list_changed"), "id": 91})),
    ),
    Mutant(
        "client-response-known",
        change=at("tools/call", beside({"jsonrpc": "2.0", "id": "zz", "result": {}})),
    ),
    Mutant(
        "client-ping-answered",
        "questions",
        change=refuses("ping", {"code": -32601, "message": "no"}),
    ),
    Mutant("client-message-shape", change=at("tools/call", with_params(name=5))),
    Mutant("client-result-shape", "questions", answers=answer(roots={"roots": {}})),
    Mutant(
        "client-server-capabilities",
        change=at("tools/call", beside({**LIST, "method": "prompts/list"})),
    ),
    Mutant(
        "client-server-capabilities-legacy",
        revision="2024-11-05",
        change=at("tools/call", beside({**LIST, "method": "prompts/list"})),
    ),
    Mutant(
        "client-task-support",
        "progress",
        change=at("tools/call", with_params(task={"ttl": 60_000})),
    ),
    Mutant("client-capability-declared", "questions", can=NAMELESS),
    Mutant("client-elicitation-mode", "questions", can={**CAN, "elicitation": {"form": {}}}),
    Mutant(
        "client-roots-file-uri",
        "questions",
        answers=answer(roots={"roots": [{"uri": "https://example.org/"}]}),
    ),
    Mutant(
        "client-roots-error",
        "questions",
        can=NAMELESS,
        change=refuses("roots/list", {"code": -32600, "message": "no roots"}),
    ),
    Mutant(
        "client-elicitation-content",
        "questions",
        answers=answer(form={"action": "accept", "content": {"name": "A"}}),
    ),
    Mutant("client-cancel-known", change=at("tools/call", beside(note("cancelled", requestId=99)))),
    Mutant(
        "client-cancel-initialize", change=at("initialize", beside(note("cancelled", requestId=1)))
    ),
    Mutant(
        "client-progress-token-unique",
        "progress",
        change=at("tools/call", lambda m: [m, {**m, "id": m["id"] + 90}]),
    ),
    Mutant(
        "client-progress-known",
        change=at("tools/call", beside(note("progress", progressToken="no", progress=1))),
    ),
    Mutant(
        "client-progress-stops",
        "questions",
        change=lambda m: (
            [m, note("progress", progressToken="p1", progress=2)]
            if m.get("result") == ANSWERS["sampling/createMessage"]
            else m
        ),
    ),
    Mutant(
        "client-progress-increases",
        "questions",
        change=lambda m: (
            [
                note("progress", progressToken="p1", progress=2),
                note("progress", progressToken="p1", progress=2),
                m,
            ]
            if m.get("result") == ANSWERS["sampling/createMessage"]
            else m
        ),
    ),
    Mutant(
        "client-cursor-opaque",
        "pagination",
        change=lambda m: (
            {**m, "params": {"cursor": m["params"]["cursor"].replace(" ", "+")}}
            if "cursor" in m.get("params", {})
            else m
        ),
    ),
    Mutant("client-pages", "pagination", habits="stops"),
    Mutant("client-pages-end", "pagination", habits="repeats"),
    Mutant("client-meta-version", "stateless", change=without("protocolVersion")),
    Mutant("client-meta-capabilities", "stateless", change=without("clientCapabilities")),
    Mutant("client-meta-client-info", "stateless", change=without("clientInfo")),
    Mutant(
        "client-selects-supported-version",
        "stateless",
        habits="stubborn",
        change=lambda m: {
            **m,
            "params": {
                **m["params"],
                "_meta": {**m["params"]["_meta"], **VERSION},
            },
        },
    ),
    Mutant(
        "client-no-responses",
        "stateless",
        change=at("tools/list", beside({"jsonrpc": "2.0", "id": "zz", "result": {}})),
    ),
    Mutant(
        "client-state-echoed",
        "state",
        change=_state(
            lambda p: {
                **p,
                **(
                    {"requestState": p["requestState"].replace(" ", "")}
                    if "requestState" in p
                    else {}
                ),
            }
        ),
    ),
    Mutant(
        "client-state-not-invented",
        "state",
        change=_state(lambda p: {"requestState": "mine", **p}),
    ),
    Mutant("client-retry-new-id", "state", change=_KeepsId()),
    Mutant(
        "client-retry-answers",
        "state",
        change=_state(
            lambda p: {
                **p,
                "inputResponses": dict(list(p["inputResponses"].items())[1:]),
            }
        ),
    ),
    Mutant("client-ref-not-fetched", "schema-ref", habits="fetches"),
    Mutant("client-falls-back", "old-errors", habits="dual, keys", before="tools_call"),
    Mutant(
        "client-probes-first",
        "old-errors",
        habits="dual",
        change=at("server/discover", lambda m: {**m, "method": "tools/list"}),
    ),
    Mutant("client-restarts-server", "restart", habits="stays"),
    Mutant(
        "client-cancel-sent",
        "cancel-stateless",
        change=at("notifications/cancelled", lambda _m: []),
    ),
    Mutant("client-cursor-empty", "pages", habits="skips"),
    Mutant(
        "client-elicitation-without-mode",
        "questions",
        change=refuses("elicitation/create", {"code": -32602, "message": "no mode"}),
    ),
    Mutant("client-sampling-tools", "questions", answers={**ANSWERS, "tools": {}}),
    Mutant("client-sampling-results", "questions", can=TOOLS, answers={**ANSWERS, "tools": {}}),
    Mutant(
        "client-url-not-fetched",
        "questions",
        habits="fetches",
        answers={**ANSWERS, "url": {"action": "decline"}},
    ),
    Mutant("client-meta-keys", change=at("tools/list", with_params(_meta={"a b/": 1}))),
    Mutant(
        "client-trace-context",
        "stateless",
        change=at("tools/list", with_meta(traceparent=f"00-{'0' * 32}-{'1' * 16}-01")),
    ),
    Mutant("client-extension-ids", "stateless", can={**CAN, "extensions": {"mine": {}}}),
    Mutant(
        "client-further-members", "content", fails=lambda m: "x-touchstone" in m.get("result", {})
    ),
    Mutant(
        "client-elicitation-unknown",
        "content",
        fails=lambda m: m.get("method") == "notifications/elicitation/complete",
    ),
    Mutant("client-result-type-unknown", "result-type", fails=lambda _m: False),
    Mutant("client-output-validated", "output", fails=lambda _m: False),
    Mutant("client-cache-stale", "cache", habits="caches"),
    Mutant(
        "client-schema-kept",
        "schema",
        change=at("tools/call", with_params(arguments={"schema": {"type": "object"}})),
    ),
    Mutant("client-reads-stderr", "stderr", habits="deaf"),
    Mutant(
        "client-era-kept",
        "stateless",
        change=at("tools/list", lambda m: [{**m, "id": 90, "method": "initialize"}, m]),
    ),
    Mutant(
        "client-removed-methods",
        "stateless",
        change=at("tools/list", lambda m: [{**m, "id": 90, "method": "ping"}, m]),
    ),
    Mutant(
        "client-sampling-max-tokens",
        "state",
        answers={
            **ANSWERS,
            "sampling/createMessage": {
                **ANSWERS["sampling/createMessage"],
                "content": {"type": "text", "text": "one more word " * 20},
            },
        },
    ),
]
