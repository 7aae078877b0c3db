"""clients/stateless: what requests of 2026-07-28 carry, retries, references in schemas."""

from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    LEGACY,
    META,
    Asked,
    Happened,
    Kind,
    Record,
    Seen,
    ambient,
    brief,
    clients,
    is_modern,
    object_in,
)

UNSUPPORTED = -32022
CANARY = "/canary"
"""Beginning of the path of what nobody may fetch."""


def _modern(record: Record) -> list[Asked]:
    """Return the requests of the stateless era; initialize is the way into the other one."""
    return [asked for asked in clients.requests(record) if asked.method != "initialize"]


@ambient("client-meta-version", "client-meta-capabilities", "client-meta-client-info")
def describes_itself_in_each_request(record: Record) -> Iterator[Seen]:
    """Each request has the version, the capabilities and the name of the client in _meta."""
    for asked in _modern(record):
        meta = object_in(asked.value, "params", "_meta")
        for clause, name in (
            ("client-meta-version", "protocolVersion"),
            ("client-meta-capabilities", "clientCapabilities"),
            ("client-meta-client-info", "clientInfo"),
        ):
            actual = f"{brief(asked.method)} without {META}{name}"
            yield Seen(clause, META + name in meta, asked.line, META + name, actual)


@ambient("client-selects-supported-version")
def selects_a_supported_version(record: Record) -> Iterator[Seen]:
    """After a version was refused, requests name one of the supported versions."""
    for asked in _modern(record):
        found = clients.answer(record, asked)
        if found is None or found[1].code != UNSUPPORTED:
            continue
        supported = object_in(found[1].value, "error", "data").get("supported")
        later = [one for one in clients.peer(record).session.asked if one.line > found[0].n]
        clause = "client-selects-supported-version"
        fell = clients.event(record, Happened.FELL_BACK)
        if fell and not later and isinstance(supported, list) and not set(supported) & {*LEGACY}:
            expected = f"one of {brief(supported)}, or none"
            yield Seen(clause, False, found[0].n, expected, fell.text)
        if not isinstance(supported, list) or not later:
            continue
        first = later[0]
        version = object_in(first.value, "params", "_meta").get(clients.VERSION)
        version = version or object_in(first.value, "params").get("protocolVersion")
        expected = f"one of {brief(supported)}"
        actual = f"{brief(first.method)} with {brief(version)}"
        yield Seen(clause, version in supported, first.line, expected, actual)


@ambient("client-no-responses")
def writes_no_responses(record: Record) -> Iterator[Seen]:
    """The client writes requests and notifications only."""
    for entry, message in record.messages():
        response = message.kind in {Kind.RESULT, Kind.ERROR}
        actual = "a response"
        yield Seen("client-no-responses", not response, entry.n, "no response", actual)


@ambient(
    "client-state-echoed",
    "client-state-not-invented",
    "client-retry-new-id",
    "client-retry-answers",
)
def retries_with_the_state_it_got(record: Record) -> Iterator[Seen]:
    """A retry has the requestState byte for byte, a new id, and all responses."""
    for asked in _modern(record):
        params = object_in(asked.value, "params")
        if not {"inputResponses", "requestState"} & set(params):
            continue
        rounds = clients.earlier(record, asked)
        results = [clients.result(record, before) for before in rounds]
        states = [r["requestState"] for r in results if "requestState" in r]
        own, line = params.get("requestState"), asked.line
        if states and (len(states) == len(results) or "requestState" in params):
            expected, actual = f"requestState {brief(states[0], 60)}", brief(own, 60)
            yield Seen("client-state-echoed", own in states, line, expected, actual)
        elif not states:
            clause, passed = "client-state-not-invented", "requestState" not in params
            elsewhere = " of another request" if _is_of_another(record, asked, own) else ""
            actual = f"requestState {brief(own, 60)}{elsewhere}"
            yield Seen(clause, passed, line, "no requestState", actual)
        ids = [before.value.get("id") for before in rounds]
        expected, actual = "an id of its own", f"id {brief(asked.value.get('id'))} again"
        yield Seen("client-retry-new-id", asked.value.get("id") not in ids, line, expected, actual)
        if results:
            wanted = [set(object_in(result, "inputRequests")) for result in results]
            given = set(object_in(params, "inputResponses"))
            expected = f"responses to {', '.join(sorted(wanted[0])) or 'nothing'}"
            actual = f"responses to {', '.join(sorted(given)) or 'nothing'}"
            yield Seen("client-retry-answers", given in wanted, line, expected, actual)


def _is_of_another(record: Record, asked: Asked, state: Any) -> bool:
    """Whether the server gave a state for a request with another target."""
    given = (clients.result(record, one) for one in _modern(record) if one.line < asked.line)
    return state is not None and any(result.get("requestState") == state for result in given)


@ambient("client-ref-not-fetched")
def fetches_no_reference_of_a_schema(record: Record) -> Iterator[Seen]:
    """A $ref to the network in a schema of a tool is not fetched."""
    clause, expected = "client-ref-not-fetched", "no request to the address in the schema"
    fetched = [
        entry
        for entry in record.transcript
        if entry.happened is Happened.FETCHED
        and entry.text.removeprefix(Happened.FETCHED).startswith(CANARY)
    ]
    for entry in fetched:
        yield Seen(clause, False, entry.n, expected, entry.text)
    if not fetched and is_modern(record.revision):
        for asked in clients.requests(record):
            listed = clients.result(record, asked).get("tools")
            if '"$ref": "http' in brief(listed, 10_000):
                yield Seen(clause, True)
