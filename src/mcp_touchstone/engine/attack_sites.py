"""Processes and fixture trees that one attack leaves for the next. Starts nothing."""

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mcp_touchstone.results.verdict import Outcome

if TYPE_CHECKING:
    from mcp_touchstone.connection.connection import Connection
    from mcp_touchstone.judging.talk import Talk
    from mcp_touchstone.security.attack_session import AttackSession
    from mcp_touchstone.security.fixture_tree import FixtureTree, TreeState
    from mcp_touchstone.target.target import Target

_CLEAN: Final = frozenset({Outcome.PASS, Outcome.UNSEEN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A process of attacks and the trees around it.

    Attributes:
        fixtures: ids of the trees.
        target: the target as it was started.
        ground: the trees.
        state: the state of the trees before the process started.
    """

    fixtures: tuple[str, ...]
    target: "Target"
    revision: str
    ground: "FixtureTree"
    state: "TreeState"
    connection: "Connection"


class Sites:
    """The sites that attacks left as they were.

    Args:
        shared: whether an attack may use the site of another.
        most: greatest number of sites with a live process, if no more attacks run at a time.
    """

    def __init__(self, *, shared: bool = True, most: int = 1) -> None:
        self._shared = shared
        self._most = most
        self._free: list[Site] = []
        self._used: dict[int, Site] = {}
        self._lock = threading.Lock()

    def take(self, fixtures: tuple[str, ...], target: "Target", revision: str) -> Site | None:
        """Return a free site for an attack, and reserve it; None if there is none."""
        with self._lock:
            self._free = [site for site in self._free if not site.connection.gone]
            for site in self._free:
                if (site.fixtures, site.target, site.revision) == (fixtures, target, revision):
                    self._free.remove(site)
                    return site
        return None

    def surplus(self) -> list["Connection"]:
        """Return the processes to end before another is started for an attack."""
        with self._lock:
            many = max(0, len(self._free) + len(self._used) + 1 - self._most)
            ended, self._free = self._free[:many], self._free[many:]
        return [site.connection for site in ended]

    def use(self, attack: "AttackSession", site: Site) -> None:
        """Record the site of an attack."""
        if self._shared:
            with self._lock:
                self._used[id(attack)] = site

    def leave(self, attack: "AttackSession") -> bool:
        """Free the site of an attack that found nothing and left it intact; return whether."""
        with self._lock:
            site = self._used.pop(id(attack), None)
        if site is None or not is_clean(attack) or attack.server.connections != [site.connection]:
            return False
        opening = site.connection.opening
        if opening is None or opening.result is None or not site.connection.probe().answered:
            return False
        if not site.ground.restored(site.state):
            return False
        with self._lock:
            self._free.append(site)
        return True


def is_clean(talk: "Talk") -> bool:
    """Return whether a conversation judged something and found nothing."""
    found = {judgement.outcome for judgement in talk.judge.judgements}
    return bool(found) and found <= _CLEAN
