"""server/utilities/caching: the freshness hints on results."""

from collections.abc import Iterator

from mcp_touchstone.suite import (
    LISTS,
    Breach,
    Conversation,
    Kind,
    Record,
    Seen,
    ambient,
    brief,
    read_pages,
    scenario,
    shapes,
    typed,
)

CACHEABLE = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
"""Methods whose results have caching hints."""

HINTS = ("ttlMs", "cacheScope")


@ambient("caching-hints-present", "caching-ttl-non-negative", "caching-scope-value")
def writes_caching_hints(record: Record) -> Iterator[Seen]:
    """Cacheable results have a valid ttlMs and cacheScope."""
    yield from shapes(record)


@ambient("caching-ttl-non-negative")
def gives_ttl_in_whole_milliseconds(record: Record) -> Iterator[Seen]:
    """The ttlMs of a result is a whole number without a decimal point."""
    for message in typed(record):
        if message.method not in CACHEABLE:
            continue
        ttl = message.value.get("ttlMs") if isinstance(message.value, dict) else None
        if isinstance(ttl, int | float) and message.part == "results":
            written = not isinstance(ttl, float)
            clause, expected = "caching-ttl-non-negative", "a whole number of milliseconds"
            actual = f"ttlMs: {ttl}"
            yield Seen(clause, written, message.entry.n, expected, actual, mild=Breach.WARN)


@ambient("caching-interim-without-hints")
def writes_no_hints_on_input_requests(record: Record) -> Iterator[Seen]:
    """A result that asks for input has no caching hints."""
    for entry, message in record.answers(Kind.RESULT):
        result = message.value["result"]
        if isinstance(result, dict) and result.get("resultType") == "input_required":
            hints = [hint for hint in HINTS if hint in result]
            clause, expected = "caching-interim-without-hints", "neither ttlMs nor cacheScope"
            yield Seen(clause, not hints, entry.n, expected, ", ".join(hints))


@scenario("caching-scope-uniform-pages")
def gives_all_pages_the_same_scope(talk: Conversation) -> None:
    """All pages of a list have the same cacheScope."""
    clause = "caching-scope-uniform-pages"
    for method, _ in LISTS.values():
        if method not in talk.spoken.cursors:
            continue
        first = None
        for reply in read_pages(talk.wire, method):
            scope = (reply.result or {}).get("cacheScope")
            if reply.result is None or scope is None:
                break  # caching-hints-present and the chapter on pagination judge this
            first = first or scope
            talk.judge(
                clause,
                scope == first,
                expected=f"{first} on every page of {method}, the scope of the first page",
                actual=brief(scope),
                at=reply,
            )
    talk.judge.otherwise_unseen(clause, "no first page of several has a cacheScope")
