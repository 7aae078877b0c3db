"""A server may write anything as the code of an error: it can always be compared with others."""

import pytest

from mcp_touchstone.wire.framing import code_in
from mcp_touchstone.wire.reply import Reply
from tests.odd_values import ODD


@pytest.mark.parametrize("odd", ODD)
def test_code_of_an_error_can_be_looked_up(odd: object) -> None:
    code = Reply(1, 2, {"error": {"code": odd}}).code

    assert code not in {-32601, -32602}
    assert code == (None if isinstance(odd, list | dict) else odd)


@pytest.mark.parametrize("error", [None, 5, [], [1], "text", {}])
def test_what_is_no_error_has_no_code(error: object) -> None:
    assert code_in(error) is None
