"""basic/patterns/mrtr: results that ask for input."""

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
    Place,
    Record,
    Round,
    Seen,
    Source,
    ambient,
    brief,
    each,
    input_requests,
    mrtr,
    scenario,
    shapes,
    willing,
)

ASKING = frozenset({"prompts/get", "resources/read", "tools/call"})
"""Requests that may be answered with an input request."""

OTHERS = frozenset(
    {"server/discover", "completion/complete", "subscriptions/listen", "tools/list"}
    | {"prompts/list", "resources/list", "resources/templates/list"}
)
"""The other requests of the core."""

INTERIM = "input_required"
FEW = 2
"""Number of tools or prompts that one scenario uses."""


def _results(record: Record) -> Iterator[tuple[Entry, Message, dict[str, Any]]]:
    for entry, message in record.answers(Kind.RESULT):
        result = message.value["result"]
        if isinstance(result, dict):
            yield entry, message, result


def _interim(record: Record) -> Iterator[tuple[Entry, Message, dict[str, Any]]]:
    for entry, message, result in _results(record):
        if result.get("resultType") == INTERIM and message.method in ASKING:
            yield entry, message, result


# --- results that ask for input


@ambient("mrtr-result-type", "mrtr-not-empty")
def marks_results_that_ask_for_input(record: Record) -> Iterator[Seen]:
    """A result that asks for input has the type input_required and is not empty."""
    for entry, message, result in _results(record):
        clause, expected = "mrtr-result-type", f"resultType {INTERIM} in a result that asks"
        asks, goes_on = "inputRequests" in result, "requestState" in result
        if result.get("resultType") == "complete" and (asks or goes_on):
            member = "inputRequests" if asks else "requestState"
            actual, mild = f"{member} in a complete result", None if asks else Breach.WARN
            yield Seen(clause, False, entry.n, expected, actual, mild=mild)
        elif result.get("resultType") == INTERIM and message.method in ASKING:
            yield Seen(clause, True)
            clause, expected = "mrtr-not-empty", "inputRequests, requestState or both"
            yield Seen(clause, asks or goes_on, entry.n, expected, "none of them")
            if result.get("inputRequests") == {} and not goes_on:
                actual = "empty inputRequests and no requestState"
                yield Seen(clause, False, entry.n, expected, actual, mild=Breach.WARN)


@ambient("mrtr-allowed-methods")
def asks_for_input_only_where_allowed(record: Record) -> Iterator[Seen]:
    """Only prompts/get, resources/read and tools/call ask for input."""
    for entry, message, result in _results(record):
        if message.method in OTHERS:
            passed = result.get("resultType") != INTERIM
            actual = f"{INTERIM} in answer to {message.method}"
            yield Seen("mrtr-allowed-methods", passed, entry.n, "a complete result", actual)


@scenario("mrtr-allowed-methods")
def lists_without_asking(talk: Conversation) -> None:
    """Lists and completions do not ask for input, whatever the client declares."""
    meta = talk.wire.meta(capabilities=willing(talk.revision).capabilities)
    wanted: list[tuple[str, dict[str, Any]]] = [(talk.wire.ping_method, {})]
    wanted += [(method, {}) for method in talk.spoken.list_methods]
    if talk.spoken.declares("completions"):
        wanted += [
            ("completion/complete", {"ref": reference, "argument": {"name": name, "value": ""}})
            for reference, name in talk.spoken.completable[:1]
        ]
    for method, params in wanted:
        reply = talk.wire.request(method, params, meta=meta)
        talk.judge.expect(
            reply,
            "mrtr-allowed-methods",
            not reply.asks,
            f"an answer to {method} that asks for no input",
        )


# --- the input requests


@ambient("mrtr-request-kinds", "mrtr-request-state-string")
def writes_input_requests_in_the_right_types(record: Record) -> Iterator[Seen]:
    """The inputRequests of a result contain client requests, and requestState is a string."""
    yield from shapes(record, "mrtr-request-kinds", "mrtr-request-state-string")
    for message, place, value in each(record, "InputRequest"):
        extra = {"jsonrpc", "id"} & value.keys()
        yield Seen(
            "mrtr-request-kinds",
            not extra,
            message.entry.n,
            "only method and params",
            f"{place} has {' and '.join(sorted(extra))}, like a message",
            mild=Breach.NOTE,
        )


@ambient("mrtr-request-keys-unique")
def gives_each_input_request_its_own_key(record: Record) -> Iterator[Seen]:
    """No key occurs twice in one inputRequests."""
    for entry, message, _ in _interim(record):
        if input_requests(message.value):
            twice = _named_twice(entry)
            actual = f"{', '.join(map(brief, twice))} twice"
            clause, expected = "mrtr-request-keys-unique", "each key of inputRequests once"
            yield Seen(clause, not twice, entry.n, expected, actual)


class _Members(list[tuple[str, Any]]):
    """The members of an object in the order of the text, duplicates included."""

    def get(self, name: str) -> Any:
        return dict(self).get(name)


def _named_twice(entry: Entry) -> list[str]:
    """Return the duplicate keys of inputRequests in a line; a parser keeps only the last."""
    if entry.reading is None or Fault.DUPLICATE_KEY not in entry.reading.faults:
        return []
    if Fault.TOO_DEEP in entry.reading.faults:
        return []
    try:
        found: Any = json.loads(entry.raw, object_pairs_hook=_Members)
    except ValueError:
        return []
    for name in ("result", "inputRequests"):
        found = found.get(name) if isinstance(found, _Members) else None
    keys = Counter(name for name, _ in found) if isinstance(found, _Members) else Counter()
    return [name for name, times in keys.items() if times > 1]


# --- the capabilities they need


@ambient("mrtr-undeclared-capability")
def asks_only_for_declared_capabilities(record: Record) -> Iterator[Seen]:
    """Input requests need only capabilities that their own request declared.

    meta-capabilities-per-request judges capabilities of earlier requests on the connection.
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
    """Yield (number, (its capabilities, capabilities of earlier lines)) for each line of ours."""
    before: frozenset[str] = frozenset()
    for entry in record.transcript:
        if entry.source is Source.US:
            own = frozenset(record.declared(entry.n))
            yield entry.n, (own, before)
            before |= own


@scenario("mrtr-undeclared-capability", place=Place.SEVERAL)
def asks_only_for_the_capabilities_of_the_request(talk: Conversation) -> None:
    """A client with one capability gets no input requests that need another."""
    clause = "mrtr-undeclared-capability"
    asking = talk.examples("mrtr")[:FEW]
    if not asking:
        talk.judge.unseen(clause, "no tool or prompt asks for input")
        return
    able = willing(talk.revision)
    names = list(ASKED.values())
    # meta-capabilities-per-request judges the use of capabilities that were declared earlier.
    for order in (names, names[::-1]):
        talk.server.restart().open()
        declared: set[str] = set()
        for name in ("", *order):
            declared |= {name}
            for example in asking:
                client = Client(capabilities={name: able.capabilities[name]} if name else {})
                asked = mrtr.begin(talk.wire, example, client)
                talk.judge.expect(
                    asked.reply,
                    clause,
                    _kinds(asked) <= declared,
                    "no input request that needs an undeclared capability",
                )


def _kinds(asked: Round) -> set[str]:
    """Return the capabilities that the input requests of a round need."""
    methods = [one.get("method") for one in asked.requests.values() if isinstance(one, dict)]
    return {ASKED[method] for method in methods if isinstance(method, str) and method in ASKED}
