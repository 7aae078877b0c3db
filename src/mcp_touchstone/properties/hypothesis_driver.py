"""Draw examples and make a failing one small: all that is done with Hypothesis, and nothing else.

Drawing and asking are apart. Examples are drawn beforehand, all of them, which takes milliseconds;
Hypothesis is asked again only to shrink one that failed. So a slow server is no slow strategy, and
threads take turns for moments. The same seed and number draw the same, with the same version of
Hypothesis.

Imported with the first property that runs; nothing else imports Hypothesis.
"""

import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.configuration import set_hypothesis_home_dir, storage_directory
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy

from mcp_touchstone.judging.run_settings import DrawSettings

T = TypeVar("T")

SPREAD: Final = 4
"""Examples that are drawn for each one that is wanted."""

_turns: Final = threading.RLock()


class _Failing(Exception):  # noqa: N818  (reports to Hypothesis that an example fails)
    """An example fails."""


def draw(
    strategy: SearchStrategy[T], terms: DrawSettings, over: Callable[[], bool] = lambda: False
) -> list[T]:
    """Draw examples, the simplest first and none twice.

    Hypothesis likes to follow an example with others that are nearly the same. More are drawn than
    are wanted, and what is given is spread over all of them. Once it is ``over``, what was drawn
    by then has to do.
    """
    found: dict[str, T] = {}

    def note(value: T) -> None:
        if over():
            raise _Failing  # makes Hypothesis stop
        found.setdefault(repr(value), value)

    with _suppressed():
        _run(strategy, note, terms, (Phase.generate,))
    step = max(1, len(found) // terms.number)
    return list(found.values())[::step][: terms.number]


def shrink(
    strategy: SearchStrategy[T], failing: T, fails: Callable[[T], bool], terms: DrawSettings
) -> T:
    """Give the smallest example that fails as well as a drawn one does.

    Args:
        strategy: what it was drawn from.
        failing: an example that ``draw`` gave.
        fails: asked about each smaller one, each once; what it raises ends the search.
        terms: as for ``draw``.
    """
    known = {repr(failing): True}
    smallest = failing
    met = False
    trouble: list[Exception] = []

    def ask(value: T) -> None:
        nonlocal smallest, met
        key = repr(value)
        met = met or key in known
        if not met:
            return
        if key not in known:
            known[key] = not trouble and _asked(fails, value, trouble)
        if known[key]:
            smallest = value  # the last one is it: Hypothesis ends with what it found
            raise _Failing

    with _suppressed():
        _run(strategy, ask, terms, (Phase.generate, Phase.shrink))
    if trouble:
        raise trouble[0]
    return smallest


def _asked(fails: Callable[[T], bool], value: T, trouble: list[Exception]) -> bool:
    try:
        return fails(value)
    except Exception as error:  # noqa: BLE001  (Hypothesis would take it for one more failure)
        trouble.append(error)
        return False


@contextmanager
def _suppressed() -> Iterator[None]:
    try:
        yield
    except (_Failing, HypothesisException):
        return


def _run(
    strategy: SearchStrategy[T],
    body: Callable[[T], None],
    terms: DrawSettings,
    phases: tuple[Phase, ...],
) -> None:
    quiet = settings(
        max_examples=SPREAD * terms.number,
        phases=phases,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
    )

    def take(value: T) -> None:
        body(value)

    test = seed(zlib.crc32(terms.name.encode()) ^ terms.seed)(quiet(given(strategy)(take)))
    with _turns, _at_home(terms.home):
        test()


@contextmanager
def _at_home(home: Path | None) -> Iterator[None]:
    """Let Hypothesis keep its files elsewhere for a while, not in the user's folder."""
    if home is None:
        yield
        return
    before = storage_directory(intent_to_write=False).home_directory
    set_hypothesis_home_dir(home)
    try:
        yield
    finally:
        set_hypothesis_home_dir(before)
