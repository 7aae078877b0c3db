"""basic/meta: the _meta object, its keys, and the members that stateless requests need."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcp_touchstone.suite import (
    FULL_CAPABILITIES,
    META,
    META_KEY,
    Breach,
    Conversation,
    Entry,
    Kind,
    Record,
    Reply,
    Seen,
    ambient,
    brief,
    covers,
    list_in,
    same_outcome,
    scenario,
    value_in,
)

OWN = frozenset({"modelcontextprotocol", "mcp"})
DEFINED = {
    META + name
    for name in (
        "protocolVersion",
        "clientInfo",
        "clientCapabilities",
        "serverInfo",
        "logLevel",
        "subscriptionId",
        "related-task",
        "model-immediate-response",
    )
}
TOP_LEVEL = frozenset({"com", "org", "net", "io", "dev", "ai", "app", "co", "me", "tech"})
_IDS = r"(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
TRACEPARENT = re.compile(rf"00-{_IDS}|(?!00|ff)[0-9a-f]{{2}}-{_IDS}(?:-.*)?")
TRACESTATE = re.compile(r"[ \t]*[a-z0-9][a-z0-9_\-*/@]*=[\x20-\x2b\x2d-\x3c\x3e-\x7e]*[ \t]*")
BAGGAGE = re.compile(
    r"[ \t]*[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*=[ \t]*[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*"
    r"[ \t]*(?:;[^,]*)?"
)
LISTED = ("tools", "prompts", "resources", "resourceTemplates", "contents", "content", "messages")
ITEMS_SINCE = "2025-06-18"
"""The first revision in which items have a ``_meta``; before, only results and params do."""

TRACE = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
OTHER_CLIENT = {"name": "claude-code", "version": "9.9"}
_SENT = frozenset({Kind.REQUEST, Kind.NOTIFICATION})


def _metas(record: Record) -> list[tuple[Entry, Any]]:
    """Return every ``_meta`` of the server in a place that the protocol defines."""
    return record.transcript.once(_metas, lambda: list(_found(record)))


def _found(record: Record) -> Iterator[tuple[Entry, Any]]:
    for entry, message in record.messages():
        if isinstance(message.value, dict):
            body = message.value.get("params" if message.kind in _SENT else "result")
            for place in _places(body, record.revision):
                if isinstance(place, dict) and "_meta" in place:
                    yield entry, place["_meta"]


def _places(body: Any, revision: str) -> Iterator[Any]:
    yield body
    if not isinstance(body, dict) or revision < ITEMS_SINCE:
        return
    for member in filter(body.__contains__, LISTED):
        for item in list_in(body, member):
            shown = item.get("content") if isinstance(item, dict) and member == "messages" else item
            yield shown
            if isinstance(shown, dict) and member in {"content", "messages"}:
                yield shown.get("resource")


def _keys(record: Record) -> Iterator[tuple[Entry, str, Any]]:
    for entry, meta in _metas(record):
        for key, value in meta.items() if isinstance(meta, dict) else ():
            yield entry, key, value


@ambient("meta-object")
def writes_meta_as_an_object(record: Record) -> Iterator[Seen]:
    """_meta is a JSON object wherever the server writes one."""
    for entry, meta in _metas(record):
        passed = isinstance(meta, dict)
        yield Seen("meta-object", passed, entry.n, "_meta as an object", brief(meta))


@ambient("meta-key-format", "meta-reverse-dns")
def writes_well_formed_meta_keys(record: Record) -> Iterator[Seen]:
    """Keys in _meta consist of an optional dotted prefix with a slash, and a name."""
    for entry, key, _ in _keys(record):
        found = META_KEY.fullmatch(key)
        actual = f"key {brief(key)}"
        yield Seen("meta-key-format", found is not None, entry.n, "prefix/name", actual)
        if found and found["prefix"]:
            labels = found["prefix"].split(".")
            backwards = labels[-1] in TOP_LEVEL and labels[0] not in TOP_LEVEL
            expected = "a prefix in reverse DNS order, such as com.example/"
            yield Seen("meta-reverse-dns", not backwards, entry.n, expected, actual)


@ambient("meta-reserved-prefix", "meta-reserved-prefix-2025-06-18")
def uses_no_reserved_meta_prefix(record: Record) -> Iterator[Seen]:
    """Keys with a reserved prefix are defined by the protocol or an extension."""
    spoken = record.profile.spoken.get(record.revision)
    extensions = [*spoken.extensions] if spoken else []
    extended = {key.rpartition("/")[0] for key in extensions}
    extended |= {key.replace("/", ".") for key in extensions}  # io.modelcontextprotocol.skills/
    for entry, key, _ in _keys(record):
        found = META_KEY.fullmatch(key)
        if not found or not found["prefix"]:
            continue
        labels = found["prefix"].split(".")
        passed = key in DEFINED or found["prefix"] in extended
        expected = "only defined keys under a reserved prefix"
        actual = f"key {brief(key)}, which the specification does not define"
        new = len(labels) > 1 and labels[1] in OWN
        old = any(label in OWN for label in labels[-2:-1])
        yield Seen("meta-reserved-prefix", passed or not new, entry.n, expected, actual)
        yield Seen("meta-reserved-prefix-2025-06-18", passed or not old, entry.n, expected, actual)


@ambient("meta-server-info", "meta-server-info-shape")
def identifies_itself_in_results(record: Record) -> Iterator[Seen]:
    """Every stateless result carries the name and version of the server."""
    for entry, message in record.answers(Kind.RESULT):
        result = message.value["result"]
        if not isinstance(result, dict) or record.asked_under(message) != record.revision:
            continue  # by the rules of another version, a result names no server
        meta = result.get("_meta", {})
        present = not isinstance(meta, dict) or META + "serverInfo" in meta
        expected = f"{META}serverInfo in _meta"
        actual = f"a result of {message.method} without it"
        yield Seen("meta-server-info", present, entry.n, expected, actual)
        if isinstance(meta, dict) and present:
            info = meta[META + "serverInfo"]
            passed = isinstance(info, dict) and all(
                isinstance(info.get(member), str) for member in ("name", "version")
            )
            expected = "string name and version"
            yield Seen("meta-server-info-shape", passed, entry.n, expected, brief(info))


@ambient("meta-trace-context")
def writes_trace_context_in_w3c_format(record: Record) -> Iterator[Seen]:
    """traceparent, tracestate and baggage have the formats of the W3C."""
    for entry, key, value in _keys(record):
        if key in {"traceparent", "tracestate", "baggage"}:
            passed = isinstance(value, str) and _in_form(key, value)
            expected = f"{key} as the W3C defines it"
            yield Seen("meta-trace-context", passed, entry.n, expected, brief(value))


def _in_form(key: str, value: str) -> bool:
    if key == "traceparent":
        return TRACEPARENT.fullmatch(value) is not None
    form = TRACESTATE if key == "tracestate" else BAGGAGE
    return all(form.fullmatch(member) or not member.strip() for member in value.split(","))


# --- the _meta of requests


def _alike(talk: Conversation, method: str, plain: Reply, reply: Reply) -> bool:
    """Whether a request had the outcome of the plain request; True if that outcome varies."""
    if same_outcome(plain, reply):
        return True
    return reply.result is not None and not same_outcome(plain, talk.wire.request(method))


@scenario("meta-no-assumptions", "meta-trace-context")
def ignores_unknown_meta(talk: Conversation) -> None:
    """Unknown keys and a trace context in the _meta of a request do not change its outcome."""
    reserved = "modelcontextprotocol.io/" if talk.revision == "2025-06-18" else META
    method = next(iter(talk.spoken.list_methods), talk.wire.ping_method)
    plain = talk.wire.request(method)
    talk.need(plain, f"an answer to {method}")
    own = talk.wire.meta() if talk.modern else {}
    odd = {**own, reserved + "touchstone-unknown": 7, "com.example/probe": {"a": [1, None]}}
    reply = talk.wire.request(method, meta=odd)
    talk.judge.expect(
        reply,
        "meta-no-assumptions",
        _alike(talk, method, plain, reply),
        f"the same outcome of {method} with unknown _meta keys",
    )
    if talk.modern:
        reply = talk.wire.request(method, meta={**own, "traceparent": TRACE})
        talk.judge.expect(
            reply,
            "meta-trace-context",
            _alike(talk, method, plain, reply),
            f"the same outcome of {method} with a traceparent",
        )


@scenario("meta-required-fields", eras=True)
def requires_version_and_capabilities(talk: Conversation) -> None:
    """A stateless request without its version or its capabilities gets error -32602."""
    talk.need(talk.wire.ping(), f"an answer to {talk.wire.ping_method}")
    modern_only = not talk.profile.lacks(("modern-only",), talk.revision)
    for missing in ("clientCapabilities", "protocolVersion"):
        meta = talk.wire.meta()
        del meta[META + missing]
        lenient = missing == "protocolVersion" and not modern_only
        message = talk.wire.build(talk.wire.ping_method, meta=meta)
        _judge_refusal(talk, message, missing, lenient=lenient)
    if modern_only:
        message = talk.wire.build(talk.wire.ping_method, meta={})
        del message["params"]["_meta"]
        _judge_refusal(talk, message, "_meta", lenient=False)
        del message["params"]
        message["id"] = next(talk.wire.ids)
        _judge_refusal(talk, message, "params", lenient=False)


def _judge_refusal(
    talk: Conversation, message: dict[str, Any], missing: str, *, lenient: bool
) -> None:
    reply = talk.wire.answer_to(talk.wire.say(message, required=False))
    talk.judge.expect_error(
        reply,
        "meta-required-fields",
        -32602,
        f"error -32602 for a request without {missing}",
        mild=Breach.WARN if lenient and reply.result is None else None,
    )


@scenario("meta-client-info-optional", "meta-client-info-not-behavioural")
def serves_all_clients_alike(talk: Conversation) -> None:
    """The result does not depend on clientInfo, and a request without it is served."""
    for method in (talk.wire.ping_method, *talk.spoken.list_methods):
        plain = talk.wire.request(method)
        nobody = talk.wire.meta()
        del nobody[META + "clientInfo"]
        nameless = talk.wire.request(method, meta=nobody)
        talk.judge.expect_result(
            nameless, "meta-client-info-optional", f"a result of {method} without clientInfo"
        )
        renamed = talk.wire.request(method, meta=talk.wire.meta(client=OTHER_CLIENT))
        for reply in (renamed, nameless) if nameless.result is not None else (renamed,):
            talk.judge.expect(
                reply,
                "meta-client-info-not-behavioural",
                _alike(talk, method, plain, reply),
                f"the same result of {method} for every client",
            )


# --- the capabilities of each request


def _call(talk: Conversation, capabilities: Mapping[str, Any]) -> Reply:
    meta = talk.wire.meta(capabilities=capabilities)
    return talk.run(talk.examples.best("mrtr"), meta=meta, required=False)


@scenario("meta-capabilities-per-request", "meta-missing-capability-error")
def asks_only_clients_that_declare_the_capability(talk: Conversation) -> None:
    """A request that declares no capability gets no input request, whatever came before."""
    able = _call(talk, FULL_CAPABILITIES)
    if not able.asks:
        talk.judge.unseen(
            ("meta-capabilities-per-request", "meta-missing-capability-error"),
            f"the tool did not ask for input again: {able}",
        )
        return
    unable = _call(talk, {})
    if (unable.result or {}).get("inputRequests") and _asks_anybody(talk):
        talk.judge.unseen(
            ("meta-capabilities-per-request", "meta-missing-capability-error"),
            "the tool asks for input without regard to capabilities",
        )
        return
    talk.judge.expect(
        unable,
        "meta-capabilities-per-request",
        not (unable.result or {}).get("inputRequests"),
        "no inputRequests for a client that declared nothing",
    )
    if not unable.is_error:
        talk.judge.unseen("meta-missing-capability-error", "the tool works without the capability")
        return
    _judge_missing(talk, unable)


def _asks_anybody(talk: Conversation) -> bool:
    """Whether a new process asks for input although no request declared a capability.

    mrtr-undeclared-capability judges such a server: it does not remember earlier requests.
    """
    talk.server.restart().open()
    return bool((_call(talk, {}).result or {}).get("inputRequests"))


def _judge_missing(talk: Conversation, refusal: Reply) -> None:
    clause = "meta-missing-capability-error"
    required = _required(refusal)
    talk.judge(
        clause,
        refusal.code == -32021 and bool(required),
        expected="error -32021 with data.requiredCapabilities",
        actual=f"{refusal}, data {brief((refusal.error or {}).get('data'))}",
        at=refusal,
    )
    if refusal.code == -32021 and required:
        again = _call(talk, required)
        repeated = bool(_required(again)) and covers(required, _required(again))
        talk.judge(
            clause,
            again.code != -32021 or repeated,
            expected="all missing capabilities in one error",
            actual=f"{again}, data {brief((again.error or {}).get('data'))}",
            at=again,
        )


def _required(refusal: Reply) -> dict[str, Any]:
    """Return the capabilities that an error asks for; empty if none can be read."""
    found = value_in(refusal.error, "data", "requiredCapabilities")
    objects = isinstance(found, dict) and all(isinstance(v, dict) for v in found.values())
    return found if isinstance(found, dict) and objects else {}
