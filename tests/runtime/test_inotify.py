"""Observation of files that are opened in a folder."""

import contextlib
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime import inotify
from mcp_touchstone.runtime.inotify import OpenWatcher
from mcp_touchstone.runtime.safe_path import SafePath, Tree
from tests.cases import cases
from tests.fakes.matrix import attack_file, attacked

needs_inotify = pytest.mark.skipif(sys.platform != "linux", reason="needs inotify")


@pytest.fixture
def place(tmp_path: Path) -> SafePath:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("x")
    (tmp_path / "link").symlink_to("folder/file")
    return Tree(tmp_path).top / "folder"


@needs_inotify
def test_opened_file_is_reported_once_even_through_a_link(place: SafePath) -> None:
    with contextlib.closing(OpenWatcher([place])) as lookout:
        for _ in range(3):
            Path(str(place.parent), "link").read_text()

        assert lookout.seen() == [place / "file"]
        assert lookout.seen() == []


@needs_inotify
def test_listed_folder_is_reported(place: SafePath) -> None:
    with contextlib.closing(OpenWatcher([place])) as lookout:
        place.opened().names()

        assert lookout.seen() == [place]


@needs_inotify
def test_reading_metadata_is_not_reported_as_opening(place: SafePath) -> None:
    with contextlib.closing(OpenWatcher([place])) as lookout:
        (place / "file").stat()
        Path(str(place.parent), "link").resolve()
        os.access(str(place / "file"), os.R_OK)
        (place / "gone").exists()

        assert lookout.seen() == []


@needs_inotify
def test_closed_watcher_leaks_no_descriptor(place: SafePath) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(5):
        with contextlib.closing(OpenWatcher([place])) as lookout:
            assert lookout.works

    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    assert lookout.seen() == []


def test_watcher_of_a_missing_folder_reports_that_it_does_not_work(tmp_path: Path) -> None:
    with contextlib.closing(OpenWatcher([Tree(tmp_path).top / "gone"])) as lookout:
        assert not lookout.works
        assert lookout.seen() == []


def test_nothing_is_judged_without_inotify(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify, "_begun", lambda: None)
    (found,) = attacked("OpensBeforeItChecks", ("traversal-opened",)).verdicts

    assert found.outcome is Outcome.UNSEEN


@cases(
    ([["a"]] * 4, True),
    ([["a"], [], ["a"], ["a"]], False),
    ([["b"], ["a"], ["a"], ["a"]], False),
    ([["b", "a"]] * 4, True),
)
def test_a_path_counts_only_if_each_repetition_opens_it(
    opened: list[list[str]], is_found: bool
) -> None:
    seen = iter([one for found in opened for one in ([], found)])  # our own opens come first
    session = SimpleNamespace(wire=SimpleNamespace(request=lambda *_words, **_more: None))
    lookout = SimpleNamespace(seen=lambda: next(seen))

    opens_again = attack_file("containment.traversal").opens_again
    assert opens_again(session, lookout, ("tools/call", {}), "a") is is_found
