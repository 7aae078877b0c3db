"""What is read of a request and its response."""

from mcp_touchstone.wire.exchange import Exchange


def test_a_header_in_two_lines_is_one_list() -> None:
    sent = (("Accept", "application/json"), ("X", "1"), ("accept", "text/event-stream"))
    exchange = Exchange(1, "POST", 0, sent, 0.0)

    assert exchange.said("ACCEPT") == "application/json, text/event-stream"
    assert exchange.said("Mcp-Method") is None
