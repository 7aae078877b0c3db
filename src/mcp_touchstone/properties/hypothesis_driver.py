"""Draw examples and shrink a failing one. The only module that uses Hypothesis.

All examples of a property are drawn before the first is sent, which takes milliseconds. Hypothesis
runs again only to shrink an example that failed. So Hypothesis never waits for a server, and a
thread holds the lock of this module for a short time only. Equal settings draw equal examples with
the same version of Hypothesis, in every environment.

It is imported with the first property that runs.
"""

import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Final, TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.configuration import set_hypothesis_home_dir, storage_directory
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy

from mcp_touchstone.judging.run_settings import DrawSettings

try:
    from hypothesis.internal.conjecture import providers
except ImportError:  # an old version, which draws no constants either
    providers = None  # type: ignore[assignment]

T = TypeVar("T")

SPREAD: Final = 4
"""Examples that are drawn for each one that is wanted."""

_turns: Final = threading.RLock()


class _Failing(Exception):  # noqa: N818  (reports to Hypothesis that an example fails)
    """An example fails."""


def draw(
    strategy: SearchStrategy[T], terms: DrawSettings, over: Callable[[], bool] = lambda: False
) -> list[T]:
    """Return different examples, the simplest first.

    Consecutive examples of Hypothesis are often nearly the same. So more are drawn than are wanted,
    and the returned ones are spread over all of them.

    Args:
        terms: number, name and seed.
        over: returns whether to stop drawing; the examples drawn by then are used.
    """
    found: dict[str, T] = {}

    def note(value: T) -> None:
        if over():
            raise _Failing  # makes Hypothesis stop
        found.setdefault(repr(value), value)

    with suppress(_Failing, HypothesisException):
        _run(strategy, note, terms, (Phase.generate,))
    step = max(1, len(found) // terms.number)
    return list(found.values())[::step][: terms.number]


def shrink(
    strategy: SearchStrategy[T], failing: T, fails: Callable[[T], bool], terms: DrawSettings
) -> T:
    """Return the smallest example found that fails as a drawn one does.

    Args:
        failing: an example that ``draw`` returned.
        fails: returns whether an example fails; called once for each smaller example.

    Raises:
        Exception: an exception of ``fails``; it ends the search.
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
            try:
                known[key] = not trouble and fails(value)
            except Exception as error:  # noqa: BLE001  (Hypothesis would take it for a failure)
                known[key] = False
                trouble.append(error)
        if known[key]:
            smallest = value  # Hypothesis runs the smallest one last
            raise _Failing

    with suppress(_Failing, HypothesisException):
        _run(strategy, ask, terms, (Phase.generate, Phase.shrink))
    if trouble:
        raise trouble[0]
    return smallest


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

    test = seed(zlib.crc32(terms.name.encode()) ^ terms.seed)(quiet(given(strategy)(body)))
    with _turns, _at_home(terms.home), _without_local_constants():
        test()


_NO_CONSTANTS: Final = SimpleNamespace(set_for_type=lambda _type: ())
_known_constants: Final[dict[object, object]] = {}


@contextmanager
def _without_local_constants() -> Iterator[None]:
    """Keep Hypothesis from drawing constants of the modules of this process.

    Which of our modules it would read depends on the installation. It also parses each of them,
    which takes longer than drawing. There is no setting for it; a version without these names is
    left as it is. Tests of the user in this process keep their constants.
    """
    own = {"_get_local_constants": lambda: _NO_CONSTANTS, "CONSTANTS_CACHE": _known_constants}
    before = {name: getattr(providers, name, None) for name in own}
    if None in before.values():
        yield
        return
    vars(providers).update(own)
    try:
        yield
    finally:
        vars(providers).update(before)


@contextmanager
def _at_home(home: Path | None) -> Iterator[None]:
    """Make Hypothesis write its files to another folder than the user's."""
    if home is None:
        yield
        return
    before = storage_directory(intent_to_write=False).home_directory
    set_hypothesis_home_dir(home)
    try:
        yield
    finally:
        set_hypothesis_home_dir(before)
