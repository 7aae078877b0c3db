"""What our server does beyond the protocol; the protocol is judged beside these tests."""

from mcp_touchstone import Session


def test_a_note_that_was_added_is_found(mcp_session: Session) -> None:
    assert mcp_session.call_tool("add", {"text": "buy a touchstone"}).success

    found = mcp_session.call_tool("search", {"text": "stone"})

    assert found.success, found.error
    assert found.structured == {"notes": ["buy a touchstone"]}


def test_an_empty_search_says_what_is_missing(mcp_session: Session) -> None:
    failed = mcp_session.call_tool("search", {"text": ""})

    assert not failed.success
    assert "text is missing" in str(failed.error)


def test_searching_is_declared_harmless_and_adding_is_not(mcp_session: Session) -> None:
    assert {tool.name: tool.read_only for tool in mcp_session.tools()} == {
        "search": True,
        "add": False,
    }


def test_nothing_is_said_unasked(mcp_session: Session) -> None:
    mcp_session.call_tool("search", {"text": "x"})

    assert len(mcp_session.received) == 1
    assert mcp_session.quiet(0.1) == []
