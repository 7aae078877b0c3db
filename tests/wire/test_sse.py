"""Event streams: fields, ends of lines, pieces and limits."""

from hypothesis import given
from hypothesis import strategies as st

from mcp_touchstone.wire.sse import EventReader, ServerEvent

TEXT = st.text(st.characters(blacklist_characters="\r\n\0", blacklist_categories=["Cs"]))
EVENTS = st.lists(
    st.builds(
        ServerEvent,
        data=st.lists(TEXT, min_size=1, max_size=3).map(lambda lines: "\n".join(lines).encode()),
        name=st.sampled_from(["message", "endpoint"]),
        id=st.none() | TEXT,
        retry=st.none() | st.integers(0, 10_000),
    ),
    max_size=4,
)


def encoded(event: ServerEvent, end: str) -> str:
    lines = [f"data: {line}" for line in (event.data or b"").decode().split("\n")]
    if event.name != "message":
        lines.insert(0, f"event: {event.name}")
    if event.id is not None:
        lines.append(f"id: {event.id}")
    if event.retry is not None:
        lines.append(f"retry: {event.retry}")
    return "".join(line + end for line in lines) + end


def read(*chunks: bytes) -> list[ServerEvent]:
    reader = EventReader()
    return [event for chunk in chunks for event in reader.feed(chunk)]


@given(EVENTS, st.sampled_from(["\n", "\r\n", "\r"]), st.data())
def test_events_are_read_however_the_bytes_are_cut(
    events: list[ServerEvent], end: str, data: st.DataObject
) -> None:
    raw = "".join(encoded(event, end) for event in events).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    chunks = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]

    assert read(*chunks) == events


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_any_bytes_are_read_alike_in_one_piece_and_in_many(chunks: list[bytes]) -> None:
    assert read(*chunks) == read(b"".join(chunks))


def test_comments_and_unknown_fields_are_no_events() -> None:
    reader = EventReader()

    assert reader.feed(b": ping\n\nother: 1\n\n:\r\n\r\n") == []
    assert reader.comments == 2


def test_event_without_data_is_returned_with_its_id() -> None:
    assert read(b"id: 7\ndata:\n\nid: 8\nretry: 10\n\n") == [
        ServerEvent(b"", id="7"),
        ServerEvent(None, id="8", retry=10),
    ]


def test_invalid_ids_and_retries_are_ignored() -> None:
    assert read(b"id: a\0b\nretry: soon\ndata: x\n\n") == [ServerEvent(b"x")]


def test_event_without_its_end_is_not_returned() -> None:
    reader = EventReader()

    assert reader.feed(b"data: x\n") == []


def test_endless_event_is_cut_off() -> None:
    for endless in (b"data: " + b"x" * 200, b"data: x\n" * 40):
        reader = EventReader(limit=100)

        assert reader.feed(endless) == []
        assert reader.overlong
        assert reader.feed(b"\n\ndata: y\n\n") == []
