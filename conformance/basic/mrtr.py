"""basic/patterns/mrtr: results that ask for input, as they stand on the wire."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    ASKED,
    Breach,
    Client,
    Conversation,
    Entry,
    Fault,
    Kind,
    Message,
    Record,
    Round,
    Seen,
    Source,
    ambient,
    brief,
    each,
    input_requests,
    scenario,
    shapes,
    willing,
)

ASKING = frozenset({"prompts/get", "resources/read", "tools/call"})
"""Requests that may be answered with a question."""

OTHERS = frozenset(
    {"server/discover", "completion/complete", "subscriptions/listen", "tools/list"}
    | {"prompts/list", "resources/list", "resources/templates/list"}
)
"""The other requests of the core."""

INTERIM = "input_required"
FEW = 2
"""Things that ask for input which are used to learn one thing."""


def _results(record: Record) -> Iterator[tuple[Entry, Message, dict[str, Any]]]:
    for entry, message in record.answers(Kind.RESULT):
        result = message.value["result"]
        if isinstance(result, dict):
            yield entry, message, result


def _interim(record: Record) -> Iterator[tuple[Entry, Message, dict[str, Any]]]:
    for entry, message, result in _results(record):
        if result.get("resultType") == INTERIM and message.method in ASKING:
            yield entry, message, result


# --- which results ask


@ambient("mrtr-result-type", "mrtr-not-empty")
def says_when_it_asks(record: Record) -> Iterator[Seen]:
    """What asks for input has the type input_required, and asks for something."""
    for entry, message, result in _results(record):
        clause, expected = "mrtr-result-type", f"resultType {INTERIM} for what asks for input"
        asks, goes_on = "inputRequests" in result, "requestState" in result
        if result.get("resultType") == "complete" and (asks or goes_on):
            member = "inputRequests" if asks else "requestState"
            actual, mild = f"{member} in a complete result", None if asks else Breach.WARN
            yield Seen(clause, False, entry.n, expected, actual, mild=mild)
        elif result.get("resultType") == INTERIM and message.method in ASKING:
            yield Seen(clause, True)
            clause, expected = "mrtr-not-empty", "inputRequests, requestState or both"
            yield Seen(clause, asks or goes_on, entry.n, expected, "neither")
            if result.get("inputRequests") == {} and not goes_on:
                actual = "empty inputRequests and no requestState"
                yield Seen(clause, False, entry.n, expected, actual, mild=Breach.WARN)


@ambient("mrtr-allowed-methods")
def asks_in_answer_to_few_methods(record: Record) -> Iterator[Seen]:
    """Only prompts/get, resources/read and tools/call are answered with a question."""
    for entry, message, result in _results(record):
        if message.method in OTHERS:
            held = result.get("resultType") != INTERIM
            actual = f"{INTERIM} in answer to {message.method}"
            yield Seen("mrtr-allowed-methods", held, entry.n, "a complete result", actual)


@scenario("mrtr-allowed-methods")
def lists_without_asking(talk: Conversation) -> None:
    """A client that could be asked anything gets lists and completions at once."""
    meta = talk.wire.meta(capabilities=willing(talk.revision).capabilities)
    wanted: list[tuple[str, dict[str, Any]]] = [("server/discover", {})]
    wanted += [(method, {}) for method in talk.spoken.listing]
    if talk.spoken.declares("completions"):
        wanted += [
            ("completion/complete", {"ref": reference, "argument": {"name": name, "value": ""}})
            for reference, name in talk.spoken.completable[:1]
        ]
    for method, params in wanted:
        reply = talk.request(method, params, meta=meta)
        talk.judge(
            "mrtr-allowed-methods",
            (reply.result or {}).get("resultType") != INTERIM,
            expected=f"an answer to {method} that asks for nothing",
            actual=reply,
            at=reply,
        )


# --- what they ask


@ambient("mrtr-request-kinds", "mrtr-request-state-string")
def asks_in_the_right_types(record: Record) -> Iterator[Seen]:
    """What inputRequests holds are requests of the client's features, requestState is a string."""
    yield from shapes(record, "mrtr-request-kinds", "mrtr-request-state-string")
    for message, place, value in each(record, "InputRequest"):
        extra = {"jsonrpc", "id"} & value.keys() if isinstance(value, dict) else set()
        yield Seen(
            "mrtr-request-kinds",
            not extra,
            message.entry.n,
            "method and params alone",
            f"{place} has {' and '.join(sorted(extra))}, as if it were a message",
            mild=Breach.NOTE,
        )


@ambient("mrtr-request-keys-unique")
def names_each_request_once(record: Record) -> Iterator[Seen]:
    """No key stands twice in one inputRequests."""
    for entry, message, _ in _interim(record):
        if input_requests(message.value):
            twice = _named_twice(entry)
            actual = f"{', '.join(map(brief, twice))} named twice"
            clause, expected = "mrtr-request-keys-unique", "each key of inputRequests once"
            yield Seen(clause, not twice, entry.n, expected, actual)


class _Members(list[tuple[str, Any]]):
    """The members of an object in the order of the text, whatever their names."""

    def get(self, name: str) -> Any:
        return dict(self).get(name)


def _named_twice(entry: Entry) -> list[str]:
    """Name the keys of inputRequests that a line says twice; a parser keeps only the last."""
    if entry.reading is None or Fault.DUPLICATE_KEY not in entry.reading.faults:
        return []
    try:
        found: Any = json.loads(entry.raw, object_pairs_hook=_Members)
    except (ValueError, RecursionError):
        return []
    for name in ("result", "inputRequests"):
        found = found.get(name) if isinstance(found, _Members) else None
    keys = Counter(name for name, _ in found) if isinstance(found, _Members) else Counter()
    return [name for name, times in keys.items() if times > 1]


# --- whom they ask


@ambient("mrtr-undeclared-capability")
def asks_only_for_what_was_declared(record: Record) -> Iterator[Seen]:
    """Each request is asked only for what its own capabilities cover.

    What an earlier request on the connection declared is left to meta-capabilities-per-request.
    """
    declared = dict(_declared(record))
    for entry, message, _ in _results(record):
        if message.method not in ASKING or message.answers not in declared:
            continue
        own, before = declared[message.answers]
        for key, asked in input_requests(message.value).items():
            method = asked.get("method") if isinstance(asked, dict) else None
            needed = ASKED.get(method) if isinstance(method, str) else None
            if needed is not None and (needed in own or needed not in before):
                expected = f"no {method} without {needed} in the capabilities of the request"
                actual = f"inputRequests {brief(key)}: {method}"
                yield Seen("mrtr-undeclared-capability", needed in own, entry.n, expected, actual)
        if not {*ASKED.values()} <= own:
            yield Seen("mrtr-undeclared-capability", True)


def _declared(record: Record) -> Iterator[tuple[int, tuple[frozenset[str], frozenset[str]]]]:
    """Walk our requests: the line, what it declares, what those before it declared."""
    before: frozenset[str] = frozenset()
    for entry in record.transcript:
        if entry.source is Source.US:
            own = frozenset(record.declared(entry.n))
            yield entry.n, (own, before)
            before |= own


@scenario("mrtr-undeclared-capability", restarts=True)
def makes_do_with_one_capability(talk: Conversation) -> None:
    """What asks for input asks nothing that the request does not allow for."""
    clause = "mrtr-undeclared-capability"
    asking = talk.examples("mrtr")[:FEW]
    if not asking:
        talk.unseen(clause, "nothing asks for input")
        return
    able = willing(talk.revision)
    names = list(ASKED.values())
    for order in (names, names[::-1]):  # what was declared before is another clause's
        talk.restart().open()
        declared: set[str] = set()
        for name in ("", *order):
            declared |= {name}
            for example in asking:
                client = Client(capabilities={name: able.capabilities[name]} if name else {})
                told = talk.round(example, client)
                talk.judge(
                    clause,
                    _kinds(told) <= declared,
                    expected="nothing asked of a client that it does not declare",
                    actual=told.reply,
                    at=told.reply,
                )


def _kinds(told: Round) -> set[str]:
    """Give the capabilities that the answers to a question need."""
    methods = [one.get("method") for one in told.requests.values() if isinstance(one, dict)]
    return {ASKED[method] for method in methods if isinstance(method, str) and method in ASKED}
