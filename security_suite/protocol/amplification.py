"""Requests with many wrong elements: the length of the answer is the effect.

A validator that names every error writes a line for each of 200,000 elements of two bytes. The
length of such an answer shows the fault without a look at the memory of the server.
"""

import itertools
from collections.abc import Iterator
from typing import Any, Final

from mcp_touchstone.security.suite import (
    FILE,
    FOLDER,
    NOBODY,
    AttackSession,
    Places,
    Reply,
    ResourceUsage,
    Source,
    attack,
    candidates,
    containers,
    encode,
    extend,
    now,
)

SIZES: Final = (100_000, 400_000)
"""Bytes of the wrong elements of a request; 4 MB end a server of 512 MiB.

The smaller one shows a long answer of a server that fails otherwise at more elements, such as at
the depth of its stack.
"""

TIMES: Final = 10
"""An answer that is longer than so many times its request is a finding, if it has LEAST bytes."""

LEAST: Final = 1_000_000

FEW: Final = 8
MANY: Final = 100
"""An object with more members than MANY is cut to twice FEW, an array to FEW.

So we see whether a short request ends the server too.
"""

MEMORY: Final = 256 << 20
"""Bytes of memory that no such request may take."""

LONGEST: Final = 20.0
"""Seconds after which no more requests are sent."""

SOON: Final = 2.0
"""Seconds for an answer before a later request is sent."""

PATIENCE: Final = 20.0
"""Seconds for the answer to the later request, in which the server has a core."""

PLACES: Final = Places(FOLDER, FILE)

SAMPLES: Final[dict[str, Any]] = {
    "integer": 0,
    "array": [],
    "string": "",
    "boolean": True,
    "object": {},
}
"""A value of each type, the shortest first."""

NOWHERE: Final = f"file:///{NOBODY}"

COMPLETION: Final[dict[str, Any]] = {
    "ref": {"type": "ref/prompt", "name": NOBODY},
    "argument": {"name": "a", "value": ""},
}

Wrong = tuple[str, dict[str, Any]]
"""What is wrong with a request, in words, and the request."""


@attack(
    "amplification-arguments",
    "amplification-requests",
    fixtures=("base",),
    unwatched=True,
    lasts=True,
)
def refuses_many_errors_in_few_words(session: AttackSession) -> None:
    """A request with many wrong elements gets a short answer."""
    session.open()
    if session.judge.covers("amplification-arguments"):
        calls = list(_calls(session))
        if calls:
            _send(session, "amplification-arguments", calls, refused=True)
        else:
            why = "no tool that may be called takes arguments"
            session.judge.unseen("amplification-arguments", why)
    if session.judge.covers("amplification-requests"):
        wrong = [one for size in SIZES for one in _requests(session, size)]
        _send(session, "amplification-requests", wrong, refused=False)


def _calls(session: AttackSession) -> Iterator[Wrong]:
    """Yield calls with many wrong elements in one argument each."""
    for tool, size in itertools.product(session.spoken.named("tools"), SIZES):
        schema = tool.get("inputSchema")
        if not session.claims.may_guess(tool):
            continue
        good = (candidates(schema, PLACES) or [{}])[0]
        for pointer, plain in containers(schema):
            for what, value in _wrong(plain, size):
                given = extend(schema, good, {pointer: value}, PLACES) if pointer else value
                where = ".".join(map(str, pointer)) or "the arguments"
                params = {"name": tool["name"], "arguments": given}
                yield f"{what} in {where} of {tool['name']}", {"params": params}


def _wrong(schema: dict[str, Any], size: int) -> Iterator[tuple[str, Any]]:
    """Yield long values of an array or an object whose elements are of a wrong type."""
    if "items" in schema or "array" in _types(schema):
        for kind in _unfit(schema.get("items")):
            yield f"many elements that are {_named(kind)}", _many(SAMPLES[kind], size)
    else:
        kind = next(iter(_unfit(schema.get("additionalProperties"))), "integer")
        yield "many unknown members", _members(SAMPLES[kind], size)


def _unfit(schema: Any) -> list[str]:
    """Return the first types that a schema does not accept: a plain one, and a list."""
    known = _types(schema)
    unfit = [kind for kind in SAMPLES if kind not in known]
    lists = [kind for kind in unfit if kind == "array"]
    return list(dict.fromkeys([*unfit[:1], *lists])) if known else []


def _types(schema: Any) -> set[Any]:
    """Return the types that a schema names, in its branches too."""
    if not isinstance(schema, dict):
        return set()
    named = schema.get("type")
    found = {*named} if isinstance(named, list) else {named} - {None}
    found |= {"object"} if "$ref" in schema or "properties" in schema else set()
    found |= {"integer"} if "number" in found else set()
    branches = (one for key in ("anyOf", "oneOf", "allOf") for one in schema.get(key) or ())
    return found.union(*map(_types, branches))


def _named(kind: str) -> str:
    return "empty lists" if kind == "array" else f"of the type {kind}"


def _many(element: Any, size: int) -> list[Any]:
    return [element] * (size // len(encode([element]).strip()[1:]))


def _members(value: Any, size: int) -> dict[str, Any]:
    each = len(encode({"k10000": value}).strip()) - 1
    return {f"k{number}": value for number in range(10_000, 10_000 + size // each)}


def _requests(session: AttackSession, size: int) -> Iterator[Wrong]:
    """Yield requests with many unknown or wrong members."""
    ping, zeros, odd = session.wire.ping_method, _many(0, size), _members(0, size)
    meta = session.wire.meta() if session.modern else {}
    for method, least in _methods(session).items():
        yield f"many unknown members of params of {method}", _request(method, {**least, **odd})
    yield "many members of _meta", _request(ping, {"_meta": {**odd, **meta}})
    yield "an array for params", {"method": ping, "params": zeros}
    yield "many unknown members of the request", {"method": ping, **odd}
    can = {"experimental": odd}
    if session.modern:
        opened = _request(ping, {"_meta": session.wire.meta(capabilities=can)})
    else:
        opened = _request("initialize", {**_methods(session)["initialize"], "capabilities": can})
    yield "many wrong capabilities of a client", opened
    wrong: dict[str, dict[str, Any]] = {
        "tools/call": {"name": NOBODY, "arguments": zeros},
        "prompts/get": {"name": NOBODY, "arguments": odd},
        "completion/complete": {**COMPLETION, "context": {"arguments": odd}},
        "resources/read": {"uri": zeros},
    }
    if session.modern:
        wrong["subscriptions/listen"] = {"notifications": {"resourceSubscriptions": zeros}}
    for method, params in wrong.items():
        yield f"many wrong values in {method}", _request(method, params)


def _request(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"method": method, "params": params}


def _methods(session: AttackSession) -> dict[str, dict[str, Any]]:
    """Return the requests of a client, each with the least params that a server reads."""
    own: dict[str, dict[str, Any]] = {
        session.wire.ping_method: {},
        **{method: {} for method in session.spoken.list_methods},
        "tools/call": {"name": NOBODY, "arguments": {}},
        "prompts/get": {"name": NOBODY},
        "completion/complete": COMPLETION,
        "resources/read": {"uri": NOWHERE},
        "resources/subscribe": {"uri": NOWHERE},
        "logging/setLevel": {"level": "error"},
        "tasks/get": {"taskId": NOBODY},
    }
    if not session.modern:
        client = {"name": NOBODY, "version": "1"}
        opening = {"protocolVersion": session.revision, "capabilities": {}, "clientInfo": client}
        own["initialize"] = opening
    return own


def _send(session: AttackSession, threat: str, wrong: list[Wrong], *, refused: bool) -> None:
    """Send requests until one has the effect, and judge a threat.

    Args:
        refused: whether only a refusal counts; a tool that is served may answer at length.
    """
    if session.wire.gone or session.wire.transcript.overflow:
        session.renew()
    control = session.wire.ping(required=False)
    if not control.answered:
        session.judge.unseen(threat, f"a ping before it got no answer: {control.why}")
        return
    session.server.mark()
    found, until, sent, other = "", now() + LONGEST, 0, 0
    reply: Reply | None = None
    for what, members_of in wrong:
        if now() > until:
            break
        reply, found = _one(session, what, members_of, refused=refused)
        sent += 1
        if found and session.wire.gone and _ends_at_few(session, members_of):
            found, other = "", other + 1
        if found:
            break
    ended = f"; {other} of them end the server with few elements, too: lines-values judges that"
    session.judge.conclude(
        threat,
        found,
        expected="an answer that is not many times as long as its request",
        if_passed=f"{sent} of {len(wrong)} requests of up to 400 kB were sent{ended * bool(other)}",
        at=reply if found else None,
    )


def _ends_at_few(session: AttackSession, own: dict[str, Any]) -> bool:
    """Return whether a new process ends at the same request with a few of its elements, too."""
    session.renew()
    message = {**session.wire.build("tools/call"), **_few(own)}
    session.wire.say_raw(encode(message), message, required=False)
    ended = not session.wire.ping(required=False).answered
    if ended:
        session.renew()
    return ended


def _few(value: Any) -> Any:
    """Return a value without the middle of its long parts."""
    if isinstance(value, list):
        return value[:FEW]
    if not isinstance(value, dict):
        return value
    names = list(value)
    kept = names if len(names) <= MANY else [*names[:FEW], *names[-FEW:]]
    return {name: _few(value[name]) for name in kept}


def _one(
    session: AttackSession, what: str, own: dict[str, Any], *, refused: bool
) -> tuple[Reply, str]:
    """Send a request; return its reply and the effect in words, empty for none."""
    wire = session.wire
    started = session.scene.target.started
    usage = ResourceUsage(wire.process.pid) if started else None
    before = usage.peak() if usage else None
    message = {**wire.build("tools/call"), **own}
    if wire.modern and isinstance(message["params"], dict):
        message["params"] = {"_meta": wire.meta(), **message["params"]}
    raw = encode(message)
    line = wire.say_raw(raw, message, required=False)
    reply = wire.answer_to(line, SOON)
    after = wire.ping(seconds=max(PATIENCE, session.pace.reply), required=False)
    if not reply.answered:
        reply = wire.answer_to(line, session.pace.settle)
    theirs = (one.length for one in wire.transcript.since(line) if one.source is Source.THEM)
    longest = max(theirs, default=0)
    served = refused and reply.ran
    if longest > max(LEAST, TIMES * len(raw)) and not served:
        times = longest // len(raw)
        return reply, f"{longest:,} bytes for {len(raw):,}, {times} times as many: {what}"
    if not after.answered:
        return after, f"no answer any more, {after.why}: {what}"
    taken = (usage.peak() or 0) - before if usage and before is not None else 0
    return reply, f"{taken >> 20} MiB of memory for {len(raw):,} bytes: {what}" * (taken > MEMORY)
