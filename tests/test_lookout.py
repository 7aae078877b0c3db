"""Who sees what is opened in a folder."""

import contextlib
import os
import sys
from pathlib import Path

import pytest

from mcp_touchstone.attack import lookout as lookout_module
from mcp_touchstone.attack.lookout import Lookout
from mcp_touchstone.verdict import Outcome
from tests.fakes.matrix import attacked

needs_inotify = pytest.mark.skipif(
    sys.platform != "linux", reason="the system tells nobody what is opened"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("x")
    (tmp_path / "link").symlink_to("folder/file")
    return tmp_path / "folder"


@needs_inotify
def test_what_is_opened_is_told_once_and_by_whatever_name(place: Path) -> None:
    with contextlib.closing(Lookout([place])) as lookout:
        for _ in range(3):
            (place.parent / "link").read_text()

        assert lookout.seen() == [place / "file"]
        assert lookout.seen() == []


@needs_inotify
def test_a_folder_that_is_listed_is_told(place: Path) -> None:
    with contextlib.closing(Lookout([place])) as lookout:
        os.listdir(place)  # noqa: PTH208  (opens it, and nothing else)

        assert lookout.seen() == [place]


@needs_inotify
def test_who_looks_at_names_opens_nothing(place: Path) -> None:
    with contextlib.closing(Lookout([place])) as lookout:
        (place / "file").stat()
        (place.parent / "link").resolve()
        os.access(place / "file", os.R_OK)
        (place / "gone").exists()

        assert lookout.seen() == []


@needs_inotify
def test_it_keeps_no_descriptor(place: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(5):
        with contextlib.closing(Lookout([place])) as lookout:
            assert lookout.works

    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    assert lookout.seen() == []


def test_where_nothing_can_be_looked_at_it_says_so(tmp_path: Path) -> None:
    with contextlib.closing(Lookout([tmp_path / "gone"])) as lookout:
        assert not lookout.works
        assert lookout.seen() == []


@needs_inotify
def test_what_is_opened_and_refused_is_a_note_with_its_call() -> None:
    (found,) = attacked("OpensBeforeItChecks", ("traversal-opened",)).verdicts

    assert found.outcome is Outcome.NOTE
    assert "was opened: read_file" in found.gravest.actual
    assert found.gravest.wire


@needs_inotify
def test_what_comes_back_is_left_to_its_own_finding() -> None:
    (found,) = attacked("Joined", ("traversal-opened",)).verdicts

    assert found.outcome is Outcome.UNSEEN


def test_where_nobody_tells_nothing_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookout_module, "_begun", lambda: None)
    (found,) = attacked("OpensBeforeItChecks", ("traversal-opened",)).verdicts

    assert found.outcome is Outcome.UNSEEN
