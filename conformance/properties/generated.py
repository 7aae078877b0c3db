"""properties/generated: one request in many forms, which must get the same answer."""

from collections.abc import Iterator, Sequence
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    BrokenClause,
    Conversation,
    Draw,
    Heard,
    Property,
    Say,
    brief,
    drawn,
    fits_header,
    outcome,
    same_outcome,
    scenario,
)

SURVIVED, SAME = "generated-survived", "generated-same-answer"
UNKNOWN = "x-touchstone/does-not-exist"
FOREIGN = "org.example.touchstone/"
NOTE = {f"{FOREIGN}note": '/é\u2028中😀\\"\t'}
"""A member of ``_meta`` that is written in different spellings."""

PLAIN_META: tuple[Any, ...] = (7, {"a": [1, None]})
"""Values of foreign keys in ``_meta`` that other scenarios send and judge."""

PLAIN_IDS: tuple[Any, ...] = (
    "touchstone",
    "plain",
    "7",
    "",
    0,
    1,
    7,
    -7,
    9007199254740991,
    "é-ü-ß",
    "編集-서버",
    "🪨-🥇",
)
"""Ids that other scenarios send and judge."""

METHODS = (
    "ping",
    "tools/list",
    "tools/call",
    "resources/read",
    "prompts/get",
    "completion/complete",
)
"""Names that are varied."""
SAFE = 2**53 - 1
HEADER_MISMATCH = -32020


def differences(heard: Heard, twin: Heard, mild: Breach | None = None) -> Iterator[BrokenClause]:
    """Yield the answers that differ from those of the plain lines."""
    for say, reply, plain in zip(heard.said, heard.replies, twin.replies, strict=True):
        served = plain.result is not None
        if say.owed and served and reply.answered and not same_outcome(reply, plain):
            yield BrokenClause(
                SAME,
                expected=f"the answer of the plain request: {brief(outcome(plain), 80)}",
                actual=f"{reply}, for {heard.quoted}",
                at=reply,
                mild=mild,
            )


@scenario(SURVIVED, SAME, drawn=True)
def answers_alike_under_any_id(talk: Conversation) -> None:
    """A request gets the same answer under any id."""

    def build(own: Any) -> Sequence[Say]:
        message = talk.wire.build(talk.wire.ping_method, id=own)
        kept = isinstance(own, str) or abs(own) <= SAFE
        return [Say(message, owed=kept, awaited=kept, malformed=not kept)]

    def check(_own: Any, heard: Heard, twin: Heard) -> Iterator[BrokenClause]:
        yield from differences(heard, twin)

    Property(talk, Draw("any_ids"), build, PLAIN_IDS, check, survival=SURVIVED).hold(
        SURVIVED, compared=SAME
    )


@scenario(SURVIVED, SAME, drawn=True)
def reads_json_in_any_spelling(talk: Conversation) -> None:
    """A request gets the same answer in any spelling of its JSON."""

    def build(spelling: drawn.Spelling) -> Sequence[Say]:
        meta = {**(talk.wire.meta() if talk.modern else {}), **NOTE}
        message = talk.wire.build(talk.wire.ping_method, meta=meta)
        return [Say(message, raw=spelling.write(message))]

    def check(_spelling: Any, heard: Heard, twin: Heard) -> Iterator[BrokenClause]:
        yield from differences(heard, twin)

    plain = (drawn.Spelling(), drawn.Spelling())
    Property(talk, Draw("spellings"), build, plain, check, survival=SURVIVED).hold(
        SURVIVED, compared=SAME
    )


@scenario(SURVIVED, SAME, drawn=True)
def ignores_undefined_members(talk: Conversation) -> None:
    """A request gets the same answer with one additional member."""

    def build(extra: drawn.Extra | None) -> Sequence[Say]:
        message = talk.wire.build(talk.wire.ping_method)
        beside = extra is not None and extra.place == "message"
        return [Say(_added(message, extra), owed=not beside, awaited=not beside, malformed=beside)]

    def check(extra: drawn.Extra | None, heard: Heard, twin: Heard) -> Iterator[BrokenClause]:
        inside = extra is not None and extra.place == "params"
        yield from differences(heard, twin, Breach.WARN if inside else None)

    plain = (None, *(drawn.Extra("_meta", f"{FOREIGN}plain", value) for value in PLAIN_META))
    Property(talk, Draw("extras"), build, plain, check, survival=SURVIVED).hold(
        SURVIVED, compared=SAME
    )


def _added(message: dict[str, Any], extra: drawn.Extra | None) -> dict[str, Any]:
    if extra is None:
        return message
    member = {extra.name: extra.value}
    if extra.place == "message":
        return message | member
    params = message.get("params", {})
    if extra.place == "params":
        return message | {"params": params | member}
    return message | {"params": params | {"_meta": params.get("_meta", {}) | member}}


@scenario(SURVIVED, "jsonrpc-method-not-found", drawn=True)
def refuses_any_unknown_method(talk: Conversation) -> None:
    """Any undefined method gets error -32601."""

    def build(name: str) -> Sequence[Say]:
        return [Say(talk.wire.build(name))]

    def check(name: str, heard: Heard, _twin: Heard) -> Iterator[BrokenClause]:
        reply = heard.replies[0]
        # A server may check the header before the method, and not every method can be a header.
        refuses_header = (talk.server.over_http and talk.modern) and (
            reply.code == HEADER_MISMATCH or not fits_header(name)
        )
        if reply.answered and reply.code != -32601 and not refuses_header:
            yield BrokenClause(
                "jsonrpc-method-not-found",
                expected=f"error -32601 for {brief(name, 60)}",
                actual=str(reply),
                at=reply,
            )

    Property(talk, Draw("methods", (METHODS,)), build, (UNKNOWN,), check, survival=SURVIVED).hold(
        SURVIVED, "jsonrpc-method-not-found"
    )
