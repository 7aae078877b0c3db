"""A test that is alone has the machine for itself."""

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.crowd import Crowd

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no such locks there")


def enters(how: Callable[[], AbstractContextManager[None]]) -> threading.Event:
    """Begin something in a thread; the event says that it began."""
    began = threading.Event()

    def work() -> None:
        with how():
            began.set()

    threading.Thread(target=work, daemon=True).start()
    return began


def test_many_work_beside_each_other(tmp_path: Path) -> None:
    crowd = Crowd(tmp_path)
    with crowd.among():
        assert enters(crowd.among).wait(20)


def test_who_is_alone_waits_for_the_others_and_keeps_new_ones_out(tmp_path: Path) -> None:
    crowd = Crowd(tmp_path)
    with crowd.among():
        alone = enters(crowd.alone)
        assert not alone.wait(0.2)
        behind = enters(crowd.among)
        assert not behind.wait(0.2)
    assert alone.wait(20)
    assert behind.wait(20)


def test_nobody_comes_in_while_one_is_alone(tmp_path: Path) -> None:
    crowd = Crowd(tmp_path)
    with crowd.alone():
        others = [enters(crowd.among), enters(crowd.alone)]
        assert not any(other.wait(0.2) for other in others)
    assert all(other.wait(20) for other in others)
