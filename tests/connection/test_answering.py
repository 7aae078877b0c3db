"""The answers of the client to the requests of a server."""

import json

from mcp_touchstone.connection.answering import MOST_ANSWERS, Answering
from mcp_touchstone.wire.framing import Line
from mcp_touchstone.wire.transcript import Source, Transcript


def test_requests_above_the_limit_are_not_answered_and_that_is_recorded_once() -> None:
    record = Transcript("2025-11-25", clock=lambda: 0.0)
    answers = Answering(record)
    for number in range(MOST_ANSWERS + 3):
        raw = json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}).encode()
        record.heard(Line(raw, len(raw)))

    assert answers.asked
    assert len(list(answers.replies())) == MOST_ANSWERS
    assert answers.exhausted
    assert len([entry for entry in record if entry.source is Source.EVENT]) == 1
