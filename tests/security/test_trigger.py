"""``security.trigger`` runs its action once, whatever the watched value does."""

import pytest

from mcp_touchstone.security.trigger import Trigger


def test_action_runs_when_the_value_changes() -> None:
    values, done = iter((1, 1, 2)), []
    trigger = Trigger(lambda: done.append(1), lambda: next(values))

    trigger.start()
    trigger.stop()

    assert done == [1]


def test_value_that_cannot_be_read_runs_the_action_and_is_raised_by_stop() -> None:
    done, looks = [], iter((False, True))

    def look() -> int:
        if next(looks):
            raise NotADirectoryError("a link is in place of a folder")
        return 1

    trigger = Trigger(lambda: done.append(1), look)
    trigger.start()

    with pytest.raises(NotADirectoryError, match="in place of a folder"):
        trigger.stop()
    assert done == [1]
