"""clients/results: what a client accepts, what it refuses, and what it keeps.

A client that takes its next step after a result has accepted it: a step that fails ends it.
"""

from collections.abc import Iterator

from mcp_touchstone.suite import (
    Happened,
    Record,
    Seen,
    ambient,
    brief,
    clients,
    is_modern,
    misfit,
    value_in,
)

MORE = "x-touchstone"
COMPLETE = "notifications/elicitation/complete"
CORE = frozenset({"complete", "input_required"})
EXTENDED = frozenset({"task"})
"""Types of results that extensions have."""

LISTS = 3
"""Lists that the scenario cache wants."""


def _goes_on(record: Record, line: int) -> bool | None:
    """Whether the client sent a request after a line in a scenario; None if that is not known."""
    if any(asked.line > line for asked in clients.peer(record).session.asked):
        return True
    return False if clients.event(record, Happened.FAILED) else None


@ambient("client-further-members", "client-elicitation-unknown")
def goes_on_after_what_it_must_accept(record: Record) -> Iterator[Seen]:
    """Unknown members and an unknown elicitation harm nothing."""
    accepts = []
    for asked in clients.requests(record):
        found = clients.answer(record, asked)
        result = clients.result(record, asked)
        if found is not None and MORE in result:
            accepts.append(("client-further-members", found[0].n))
    heard = ((entry.n, message) for entry in clients.peer(record) for message in entry.messages)
    accepts += [("client-elicitation-unknown", n) for n, m in heard if m.method == COMPLETE]
    for clause, line in accepts if record.scenario else ():
        if (passed := _goes_on(record, line)) is not None:
            yield Seen(clause, passed, line, "the next step", Happened.FAILED)


@ambient("client-output-validated", "client-result-type-unknown")
def refuses_what_it_must_not_accept(record: Record) -> Iterator[Seen]:
    """A structured result fits the outputSchema, and resultType has a known value."""
    schemas: dict[object, object] = {}
    for asked in clients.requests(record) if record.scenario else ():
        found, result = clients.answer(record, asked), clients.result(record, asked)
        schemas |= {
            one.get("name"): one.get("outputSchema") for one in clients.tools(record, asked)
        }
        if found is None or (on := _goes_on(record, found[0].n)) is None:
            continue
        schema = schemas.get(value_in(asked.value, "params", "name"))
        if asked.method == "tools/call" and isinstance(schema, dict):
            wrong = misfit(schema, result.get("structuredContent"))
            if wrong:
                actual = f"the client accepted it: {wrong}"
                clause = "client-output-validated"
                yield Seen(clause, not on, found[0].n, "an error for its user", actual)
        kind = result.get("resultType", "complete")
        if is_modern(record.revision) and kind not in CORE | EXTENDED:
            actual = f"the client accepted resultType {brief(kind)}"
            clause = "client-result-type-unknown"
            yield Seen(clause, not on, found[0].n, "an error for its user", actual)


@ambient("client-cache-stale")
def asks_again_for_a_stale_list(record: Record) -> Iterator[Seen]:
    """A list with ttlMs 0, or with a negative one, is stale at once."""
    if record.scenario == "cache" and clients.event(record, Happened.ENDED):
        lists = [one for one in clients.requests(record) if one.method == "tools/list"]
        actual = f"{len(lists)} requests"
        line = lists[-1].line if lists else None
        yield Seen("client-cache-stale", len(lists) >= LISTS, line, "a request for each", actual)
