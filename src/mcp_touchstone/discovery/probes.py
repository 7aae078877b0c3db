"""Run the probes, and only those that a selected clause needs. Judges nothing.

All revisions are probed at once, each on the live process that `recon` opened; a lasting call is
searched on a separate process. The requests of a server to its client in a session are found on
one more process, opened by a client that declares all capabilities, in the newest legacy revision;
older revisions reuse these results, and the lasting call. Each result is available at once, before
the other probes end.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from operator import itemgetter
from typing import Final

from mcp_touchstone.catalog import needs
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.errors import our_fault
from mcp_touchstone.catalog.needs import WORDS, Probe
from mcp_touchstone.catalog.scenario import Share
from mcp_touchstone.connection.server_profile import (
    ServerProfile,
    Spoken,
    is_read_only,
    working_tools,
)
from mcp_touchstone.discovery.probe_features import (
    find_calls,
    find_completion,
    find_prompts,
    find_reads,
)
from mcp_touchstone.discovery.probe_server_requests import find_questions
from mcp_touchstone.discovery.probe_traffic import (
    find_slow,
    find_slow_task,
    find_subscription,
    find_task,
    find_traffic,
    may_last,
    note_traffic,
)
from mcp_touchstone.discovery.prober import Attempt, Prober, Processes
from mcp_touchstone.discovery.recon import read_lists
from mcp_touchstone.runtime.timeouts import SLICE
from mcp_touchstone.samples.from_schema import Places
from mcp_touchstone.target.target import Named
from mcp_touchstone.transport.process import LaunchError
from mcp_touchstone.wire.reply import Reply

FINDERS: Final[dict[Probe, Callable[[Prober], None]]] = {
    Probe.CALLS: find_calls,
    Probe.READS: find_reads,
    Probe.PROMPTS: find_prompts,
    Probe.COMPLETION: find_completion,
    Probe.TRAFFIC: find_traffic,
    Probe.TASKS: find_task,
    Probe.LISTEN: find_subscription,
}
"""Probes on the live process of a revision, in order. Server requests come last."""

ASIDE: Final = frozenset({Probe.SLOW, Probe.LASTING})
"""Probes on a separate process, since they mostly wait."""

QUESTIONS: Final = frozenset(
    word for word, known in WORDS.items() if Probe.QUESTIONS in known.probes
)

REPORTS: Final = frozenset(word for word, known in WORDS.items() if Probe.TRAFFIC in known.probes)
"""Words that a lasting call may meet too."""


@dataclass(frozen=True, slots=True)
class ProbeContext:
    """The processes and parameters of the probes.

    Attributes:
        places: the targets of generated paths.
        stop: set when the run ends.
    """

    processes: Processes
    kill: Callable[[], None]
    named: Named = field(default_factory=Named)
    places: Places = field(default_factory=Places)
    stop: threading.Event = field(default_factory=threading.Event)

    def scout(self, revision: str, spoken: Spoken, trusted: frozenset[str], share: Share) -> Prober:
        """Return a prober on one process."""
        return Prober(
            revision,
            spoken,
            self.processes,
            share,
            trusted=trusted,
            named=self.named,
            places=self.places,
            stop=self.stop,
        )


class Probing:
    """The results of the probes, added step by step; other threads may use them at once.

    Args:
        wanted: the words to decide in each revision. If a process cannot be started, its words
            have no example and are unmet.
    """

    def __init__(
        self, profile: ServerProfile, wanted: Mapping[str, set[str]], probe_context: ProbeContext
    ) -> None:
        self._profile = profile
        self._wanted = wanted
        self._context = probe_context
        self._plans = {
            revision: probes
            for revision, words in wanted.items()
            if revision in profile.spoken and (probes := needs.probes(words, revision))
        }
        self._asking = [
            revision
            for revision, probes in self._plans.items()
            if Probe.QUESTIONS in probes and not rev.is_modern(revision)
        ]
        hurried = profile.pace.hurried  # then only tools that the user named are called
        self._trusted = frozenset() if hurried else _read_only(*profile.spoken.values())
        self._done: dict[str, set[Probe]] = {revision: set() for revision in self._plans}
        self._busy = {(revision, Share.ORDINARY) for revision in self._plans}
        self._busy |= {(r, Share.DRAWN) for r, probes in self._plans.items() if probes & ASIDE}
        if self._asking:
            self._busy.add((profile.legacy[-1], Share.WILLING))
        self._lasted: dict[str, list[Attempt]] = {}
        self._news = True
        self._changed = threading.Condition()

    # --- results for other threads

    def decided(self, revision: str, word: str) -> bool:
        """Return whether a word is decided in a revision: no running probe can change it."""
        missing = _asked_by(revision, word) - self._done.get(revision, set())
        return not missing & self._plans.get(revision, set())

    def free(self, revision: str, share: Share) -> bool:
        """Return whether all probes of a shared process have ended."""
        return (revision, share) not in self._busy

    def settle(self, revision: str, word: str) -> None:
        """Wait until a word is decided, or the run ends."""
        self._wait_for(lambda: self.decided(revision, word))

    def _wait_for(self, known: Callable[[], bool]) -> None:
        """Wait until a condition is true, or the run ends."""
        with self._changed:
            while not known() and not self._context.stop.is_set():
                self._changed.wait_for(known, SLICE)

    # --- probing

    def steps(self) -> Iterator[None]:
        """Run all probes; yield after each result, after some time, and at the end."""
        # several threads would use several processes
        width = 1 if self._profile.is_single else 2 * len(self._plans) + 1
        with ThreadPoolExecutor(width, thread_name_prefix="learn") as threads:
            tried = [threads.submit(task, *words) for _, task, words in self._tasks()]
            for future in tried:
                future.add_done_callback(lambda _: self._stir())
            try:
                while not all(future.done() for future in tried):
                    self._await_news()
                    yield
            except BaseException:
                self._context.stop.set()
                self._context.kill()  # otherwise threads and we would wait for it
                raise
        for future in tried:
            future.result()
        _remark(self._profile, self._plans)
        yield

    def _tasks(self) -> list[tuple[int, Callable[..., None], tuple[str, ...]]]:
        """Return rank, function and arguments of each task: it waits for those of lower rank only.

        They are ordered by rank if one thread runs them all.
        """
        tasks: list[tuple[int, Callable[..., None], tuple[str, ...]]] = []
        if self._asking:
            tasks.append((3, self._ask_in_session, ()))
        for revision, probes in self._plans.items():
            tasks.append((0, self._try, (revision,)))
            if probes & ASIDE:
                rank = 1 if revision in self._profile.legacy[-1:] else 2
                tasks.append((rank, self._try_aside, (revision,)))
        return sorted(tasks, key=itemgetter(0)) if self._profile.is_single else tasks

    def _stir(self) -> None:
        with self._changed:
            self._news = True
            self._changed.notify_all()

    def _await_news(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._news, SLICE)
            self._news = False

    def _learnt(self, revision: str, *probes: Probe) -> None:
        self._done[revision] |= set(probes)
        self._decide(revision)
        self._stir()

    def _release(self, revision: str, share: Share, *probes: Probe) -> None:
        """Mark a process as free of probes, whatever their results."""
        self._busy.discard((revision, share))
        self._learnt(revision, *probes)

    def _await(self, revision: str, probe: Probe) -> None:
        self._wait_for(lambda: probe in self._done[revision])

    def _try(self, revision: str) -> None:
        probes = self._plans[revision]
        spoken = self._profile.spoken[revision]
        here = probes - ASIDE
        if not rev.is_modern(revision):
            here = here - {Probe.QUESTIONS}
        try:
            scout = self._context.scout(revision, spoken, self._trusted, Share.ORDINARY)
            for probe, find in FINDERS.items():
                if probe in here:
                    with self._faults(revision, probe):
                        scout.begin()
                        find(scout)
                    self._learnt(revision, probe)
            if Probe.QUESTIONS in here:
                with self._faults(revision, Probe.QUESTIONS):
                    scout.begin()
                    find_questions(scout, self._wanted[revision] & QUESTIONS)
        finally:
            self._release(revision, Share.ORDINARY, *here)

    def _try_aside(self, revision: str) -> None:
        probes = self._plans[revision]
        try:
            with self._faults(revision, *(probes & ASIDE)):
                self._find_slow(revision)
                scout = self._aside(revision)
                lasted = self._lasted[revision]
                if Probe.TRAFFIC in probes:
                    self._await(revision, Probe.TRAFFIC)
                for attempt in lasted:
                    note_traffic(scout, attempt)
                self._learnt(revision, Probe.SLOW)
                if Probe.LASTING in probes:
                    self._await(revision, Probe.TASKS)
                    find_slow_task(scout)
        finally:
            self._lasted.setdefault(revision, [])
            self._release(revision, Share.DRAWN, *(probes & ASIDE))

    @contextmanager
    def _faults(self, revision: str, *probes: Probe) -> Iterator[None]:
        """Limit a fault of ours to the words it leaves undecided: they are judged BROKEN."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  (the run must not end because of one probe)
            if self._context.stop.is_set():
                return
            words = (word for word, known in WORDS.items() if {*known.probes} & {*probes})
            self._profile.spoken[revision].decided.fail(words, our_fault(error))

    def _aside(self, revision: str) -> Prober:
        spoken = self._profile.spoken[revision]
        return self._context.scout(revision, spoken, self._trusted, Share.DRAWN)

    def _find_slow(self, revision: str) -> None:
        """Find a call that lasts, and store the attempts; older revisions reuse them."""
        if self._searches_slow(revision):
            if any(map(may_last, self._profile.spoken[revision].named("tools"))):
                self._aside(revision).connection()  # it starts while calls are still probed
            self._await(revision, Probe.CALLS)
            self._lasted[revision] = find_slow(self._aside(revision))
            self._stir()
            return
        if Probe.LASTING not in self._plans[revision]:
            self._busy.discard((revision, Share.DRAWN))
        self._await(revision, Probe.CALLS)
        newest = self._profile.legacy[-1]
        self._wait_for(lambda: newest in self._lasted)
        lasted = self._lasted.get(newest, [])
        self._lasted[revision] = list(_lasting_there_too(self._aside(revision), lasted))

    def _searches_slow(self, revision: str) -> bool:
        """Whether a call that lasts is searched for in a revision, not taken over from another."""
        if not self._plans[revision] & ASIDE:
            return False
        newest = self._profile.legacy[-1] if self._profile.legacy else revision
        alone = rev.is_modern(revision) or Probe.SLOW not in self._plans.get(newest, ())
        return alone or revision == newest

    def _ask_in_session(self) -> None:
        newest = self._profile.legacy[-1]
        try:
            with self._faults(newest, Probe.QUESTIONS):
                words = {word for revision in self._asking for word in self._wanted[revision]}
                self._ask(newest, words & QUESTIONS - {"mrtr"})
            for revision in self._asking:
                _take_over_questions(self._profile, revision)
        finally:
            self._busy.discard((newest, Share.WILLING))
            for revision in self._asking:
                self._learnt(revision, Probe.QUESTIONS)

    def _ask(self, newest: str, words: set[str]) -> None:
        try:
            connection = self._context.processes.get(newest, Share.WILLING)
        except LaunchError:
            return
        spoken = read_lists(Spoken(connection.opening or Reply(0)), connection)
        trusted = self._trusted | _read_only(spoken)
        find_questions(self._context.scout(newest, spoken, trusted, Share.WILLING), words)
        self._profile.spoken[newest].decided.take(spoken.decided, QUESTIONS)

    def _decide(self, revision: str) -> None:
        """Record the decided words, and the reasons for unmet words that need a callable tool."""
        spoken, probes = self._profile.spoken[revision], self._plans[revision]
        decided = {
            word
            for word, known in WORDS.items()
            if known.probes and probes >= {*known.probes} and self.decided(revision, word)
        }
        spoken.decided.settle(decided)
        if Probe.COMPLETION in self._done[revision] and not spoken.declares("completions"):
            spoken.decided.settle(["completions"])
        reason = spoken.notes.get("callable-tool")
        for word in decided if reason else ():
            known = word in spoken.notes or spoken.examples(word)
            if Probe.CALLS in WORDS[word].probes and not known:
                spoken.decided.note(word, reason or "")


def run_probes(
    profile: ServerProfile, wanted: Mapping[str, set[str]], probe_context: ProbeContext
) -> None:
    """Run the probes for the wanted words of each revision; store the results in the profile."""
    for _ in Probing(profile, wanted, probe_context).steps():
        pass


def _lasting_there_too(scout: Prober, lasted: Iterable[Attempt]) -> Iterator[Attempt]:
    """Yield the lasting calls of the newest legacy revision that also last in an older one."""
    calls = {call.name: call for call in scout.spoken.examples("callable-tool")}
    for attempt in lasted:
        call = calls.get(attempt.example().name)
        if call is not None:
            own = replace(attempt, item=call.item)
            scout.found("slow-call", own.example())
            yield own


def _take_over_questions(profile: ServerProfile, revision: str) -> None:
    """Reuse the server requests of the newest legacy revision in an older one."""
    newest = profile.spoken[profile.legacy[-1]].decided
    words = [word for word in QUESTIONS if WORDS[word].exists(revision)]
    profile.spoken[revision].decided.take(newest, words)


@cache
def _asked_by(revision: str, word: str) -> frozenset[Probe]:
    """Return the probes that decide a word of the catalogue."""
    probes = needs.probes([word], revision)
    return frozenset(probes | {Probe.SLOW} if word in REPORTS else probes)


def _read_only(*lists: Spoken) -> frozenset[str]:
    """Return the names of tools annotated read-only in any of these lists."""
    return frozenset(t["name"] for s in lists for t in s.named("tools") if is_read_only(t))


def _remark(profile: ServerProfile, revisions: Iterable[str]) -> None:
    """Add a remark for each name given by the user that works in no revision."""
    notes = [profile.spoken[revision].notes for revision in revisions]
    works = {f"--call {name}" for one in profile.spoken.values() for name in working_tools(one)}
    for option in dict.fromkeys(key for one in notes for key in one if key.startswith("--")):
        if option not in works and all(option in one for one in notes):
            profile.discovered.remark(f"{option}: {notes[-1][option]}")
