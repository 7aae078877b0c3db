"""Faulty gateways on each pair of transports; ``python -m tests.gateway`` judges all of them."""

import pytest

from tests.gateway import pairs
from tests.gateway.__main__ import judge


@pytest.mark.slow
@pytest.mark.parametrize("pair", pairs.PAIRS[1:])
@pytest.mark.parametrize("clause", ["gateway-cancel-arrives", "gateway-end-answered"])
def test_a_fault_is_found_on_each_pair_of_transports(clause: str, pair: str) -> None:
    assert judge(clause, pairs.WORDS[clause], pair)


def test_each_exception_names_a_fault_and_a_pair() -> None:
    assert {clause for clause, _ in pairs.UNSEEN} <= {*pairs.WORDS}
    assert {pair for _, pair in pairs.UNSEEN} <= {*pairs.PAIRS}
