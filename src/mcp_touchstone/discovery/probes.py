"""Find out what has to be tried, and only what a selected clause needs to know. Judges nothing.

Each revision is tried on the live process recon opened, all of them at once; a call that lasts is
looked for beside it, on a process of its own. What a server asks of its client in a session is
learnt on one more process, opened by a client that declares everything, in the newest handshake
revision; older revisions take it over, and so they do a call that lasts. What is known may be
used while the rest is still tried.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final

from mcp_touchstone import needs
from mcp_touchstone import revision as rev
from mcp_touchstone.arguments import Places
from mcp_touchstone.asking import find_questions
from mcp_touchstone.dossier import Dossier, Spoken, is_read_only
from mcp_touchstone.examples import find_calls, find_completion, find_prompts, find_reads
from mcp_touchstone.needs import WORDS, Probe
from mcp_touchstone.pace import SLICE
from mcp_touchstone.process import LaunchError
from mcp_touchstone.recon import read_lists
from mcp_touchstone.reply import Reply
from mcp_touchstone.scenario import Share
from mcp_touchstone.scout import Attempt, Line, Scout
from mcp_touchstone.target import Named
from mcp_touchstone.traffic import (
    find_slow,
    find_slow_task,
    find_subscription,
    find_task,
    find_traffic,
    may_last,
    note_traffic,
)

FINDERS: Final[dict[Probe, Callable[[Scout], None]]] = {
    Probe.CALLS: find_calls,
    Probe.READS: find_reads,
    Probe.PROMPTS: find_prompts,
    Probe.COMPLETION: find_completion,
    Probe.TRAFFIC: find_traffic,
    Probe.TASKS: find_task,
    Probe.LISTEN: find_subscription,
}
"""What is tried on the live process of a revision, in this order. Questions come last."""

ASIDE: Final = frozenset({Probe.SLOW, Probe.LASTING})
"""What is tried beside it, since it mostly waits."""

QUESTIONS: Final = frozenset(
    word for word, known in WORDS.items() if Probe.QUESTIONS in known.probes
)

REPORTS: Final = frozenset(word for word, known in WORDS.items() if Probe.TRAFFIC in known.probes)
"""Words that a call which lasts may meet too."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What things are tried on, and with.

    Attributes:
        line: (revision, share) -> a shared process of a revision.
        named: what the user named.
        places: where paths may point.
        stop: set when the run is over.
        abort: ends every process at once.
    """

    line: Callable[[str, Share], Line]
    named: Named = field(default_factory=Named)
    places: Places = field(default_factory=Places)
    stop: threading.Event = field(default_factory=threading.Event)
    abort: Callable[[], None] = lambda: None

    def scout(self, revision: str, spoken: Spoken, trusted: frozenset[str], share: Share) -> Scout:
        """Give somebody who tries things on one process."""
        return Scout(
            revision,
            spoken,
            self.line(revision, share),
            trusted=trusted,
            named=self.named,
            places=self.places,
            stop=self.stop,
        )


class Lessons:
    """What is learnt of a server, step by step; others may use at once what is known.

    Args:
        dossier: takes what is found.
        wanted: the words to decide in each revision. A process that cannot be had leaves its words
            without an example, thus unmet.
        ground: what things are tried on.
    """

    def __init__(self, dossier: Dossier, wanted: Mapping[str, set[str]], ground: Ground) -> None:
        self._dossier = dossier
        self._wanted = wanted
        self._ground = ground
        self._plans = {
            revision: probes
            for revision, words in wanted.items()
            if revision in dossier.spoken and (probes := needs.probes(words, revision))
        }
        self._asking = [
            revision
            for revision, probes in self._plans.items()
            if Probe.QUESTIONS in probes and not rev.is_modern(revision)
        ]
        self._trusted = _read_only(*dossier.spoken.values())
        self._done: dict[str, set[Probe]] = {revision: set() for revision in self._plans}
        self._busy = {(revision, Share.ORDINARY) for revision in self._plans}
        self._busy |= {(r, Share.DRAWN) for r, probes in self._plans.items() if probes & ASIDE}
        if self._asking:
            self._busy.add((dossier.legacy[-1], Share.WILLING))
        self._lasted: dict[str, list[Attempt]] = {}
        self._news = True
        self._changed = threading.Condition()

    # --- what others may know

    def decided(self, revision: str, word: str) -> bool:
        """Whether nothing that is still tried can change what a word comes to in a revision."""
        missing = self._asks(revision, word) - self._done.get(revision, set())
        return not missing & self._plans.get(revision, set())

    def free(self, revision: str, share: Share) -> bool:
        """Whether nothing is tried on a shared process any more."""
        return (revision, share) not in self._busy

    def settle(self, revision: str, word: str) -> None:
        """Wait until a word is decided, or everything is over."""
        self._wait_for(lambda: self.decided(revision, word))

    def _wait_for(self, known: Callable[[], bool]) -> None:
        """Wait until something is known, or everything is over."""
        with self._changed:
            while not known() and not self._ground.stop.is_set():
                self._changed.wait_for(known, SLICE)

    def _asks(self, revision: str, word: str) -> set[Probe]:
        probes = needs.probes([word], revision)
        return probes | {Probe.SLOW} if word in REPORTS else probes

    # --- learning

    def steps(self) -> Iterator[None]:
        """Try everything; give a turn whenever more is known or time passes, and at the end."""
        ground = self._ground
        with ThreadPoolExecutor(2 * len(self._plans) + 1, thread_name_prefix="learn") as threads:
            tried: list[Future[None]] = []
            if self._asking:
                tried.append(threads.submit(self._ask_in_session))
            for revision, probes in self._plans.items():
                tried.append(threads.submit(self._try, revision))
                if probes & ASIDE:
                    tried.append(threads.submit(self._try_aside, revision))
            for future in tried:
                future.add_done_callback(lambda _: self._stir())
            try:
                while not all(future.done() for future in tried):
                    self._await_news()
                    yield
            except BaseException:
                ground.stop.set()
                ground.abort()  # or the threads would wait for the server, and we for them
                raise
        for future in tried:
            future.result()
        _remark(self._dossier, self._plans)
        yield

    def _stir(self) -> None:
        with self._changed:
            self._news = True
            self._changed.notify_all()

    def _await_news(self) -> None:
        """Wait for news, for a moment."""
        with self._changed:
            self._changed.wait_for(lambda: self._news, SLICE)
            self._news = False

    def _learnt(self, revision: str, *probes: Probe) -> None:
        self._done[revision] |= set(probes)
        self._decide(revision)
        self._stir()

    def _release(self, revision: str, share: Share, *probes: Probe) -> None:
        """Nothing is tried on a process any more, whatever came of it."""
        self._busy.discard((revision, share))
        self._learnt(revision, *probes)

    def _await(self, revision: str, probe: Probe) -> None:
        self._wait_for(lambda: probe in self._done[revision])

    def _try(self, revision: str) -> None:
        probes = self._plans[revision]
        spoken = self._dossier.spoken[revision]
        here = probes - ASIDE
        if not rev.is_modern(revision):
            here = here - {Probe.QUESTIONS}
        try:
            scout = self._ground.scout(revision, spoken, self._trusted, Share.ORDINARY)
            for probe, find in FINDERS.items():
                if probe in here:
                    find(scout)
                    self._learnt(revision, probe)
            if Probe.QUESTIONS in here:
                find_questions(scout, self._wanted[revision] & QUESTIONS)
        finally:
            self._release(revision, Share.ORDINARY, *here)

    def _try_aside(self, revision: str) -> None:
        probes = self._plans[revision]
        try:
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

    def _aside(self, revision: str) -> Scout:
        spoken = self._dossier.spoken[revision]
        return self._ground.scout(revision, spoken, self._trusted, Share.DRAWN)

    def _find_slow(self, revision: str) -> None:
        """Find a call that lasts, and keep what was tried; older revisions take it over."""
        newest = self._dossier.legacy[-1] if self._dossier.legacy else revision
        alone = rev.is_modern(revision) or Probe.SLOW not in self._plans.get(newest, ())
        if alone or revision == newest:
            if any(map(may_last, self._dossier.spoken[revision].named("tools"))):
                self._aside(revision).connection()  # it starts while calls are still learnt
            self._await(revision, Probe.CALLS)
            self._lasted[revision] = find_slow(self._aside(revision))
            self._stir()
            return
        if Probe.LASTING not in self._plans[revision]:
            self._busy.discard((revision, Share.DRAWN))
        self._await(revision, Probe.CALLS)
        self._wait_for(lambda: newest in self._lasted)
        lasted = self._lasted.get(newest, [])
        self._lasted[revision] = list(_lasting_there_too(self._aside(revision), lasted))

    def _ask_in_session(self) -> None:
        newest = self._dossier.legacy[-1]
        try:
            words = {word for revision in self._asking for word in self._wanted[revision]}
            self._ask(newest, words & QUESTIONS - {"mrtr"})
            for revision in self._asking:
                self._take_over_questions(revision)
        finally:
            self._busy.discard((newest, Share.WILLING))
            for revision in self._asking:
                self._learnt(revision, Probe.QUESTIONS)

    def _ask(self, newest: str, words: set[str]) -> None:
        line = self._ground.line(newest, Share.WILLING)
        try:
            connection = line.get()
        except LaunchError:
            return
        spoken = Spoken(connection.opening or Reply(0))
        read_lists(spoken, connection)
        trusted = self._trusted | _read_only(spoken)
        find_questions(self._ground.scout(newest, spoken, trusted, Share.WILLING), words)
        known = self._dossier.spoken[newest]
        known.found.update({word: kept for word, kept in spoken.found.items() if word in QUESTIONS})
        known.notes.update({word: why for word, why in spoken.notes.items() if word in QUESTIONS})

    def _take_over_questions(self, revision: str) -> None:
        """Let an older revision have what the server asks in the newest handshake revision."""
        newest = self._dossier.spoken[self._dossier.legacy[-1]]
        older = self._dossier.spoken[revision]
        for word in QUESTIONS:
            if word in newest.found and WORDS[word].exists(revision):
                older.found[word] = newest.found[word]
            if word in newest.notes:
                older.notes[word] = newest.notes[word]

    def _decide(self, revision: str) -> None:
        """Note which words are decided now, and why those are not met that need a callable tool."""
        spoken, probes = self._dossier.spoken[revision], self._plans[revision]
        decided = {
            word
            for word, known in WORDS.items()
            if known.probes and probes >= {*known.probes} and self.decided(revision, word)
        }
        spoken.tried |= decided
        if Probe.COMPLETION in self._done[revision] and not spoken.declares("completions"):
            spoken.tried.add("completions")
        reason = spoken.notes.get("callable-tool")
        for word in decided if reason else ():
            if Probe.CALLS in WORDS[word].probes and not spoken.examples(word):
                spoken.notes.setdefault(word, reason or "")


def learn(dossier: Dossier, wanted: Mapping[str, set[str]], ground: Ground) -> None:
    """Try what decides the wanted words of each revision; the dossier takes what is found."""
    for _ in Lessons(dossier, wanted, ground).steps():
        pass


def _lasting_there_too(scout: Scout, lasted: Iterable[Attempt]) -> Iterator[Attempt]:
    """Let an older revision have what lasted in the newest handshake revision."""
    calls = {call.name: call for call in scout.spoken.examples("callable-tool")}
    for attempt in lasted:
        call = calls.get(attempt.example().name)
        if call is not None:
            own = replace(attempt, item=call.item)
            scout.found("slow-call", own.example())
            yield own


def _read_only(*lists: Spoken) -> frozenset[str]:
    """Name the tools annotated read-only in any of some revisions, or for any of some clients."""
    return frozenset(t["name"] for s in lists for t in s.named("tools") if is_read_only(t))


def _remark(dossier: Dossier, revisions: Iterable[str]) -> None:
    """Tell the user of what they named and what works in no revision, for no client."""
    notes = [dossier.spoken[revision].notes for revision in revisions]
    works = {
        f"--call {example.name}"
        for spoken in dossier.spoken.values()
        for examples in spoken.found.values()
        for example in examples
    }
    for option in dict.fromkeys(key for one in notes for key in one if key.startswith("--")):
        if option not in works and all(option in one for one in notes):
            dossier.remarks.append(f"{option}: {notes[-1][option]}")
