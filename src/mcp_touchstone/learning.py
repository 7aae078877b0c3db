"""Find out what has to be tried, and only what a selected clause needs to know. Judges nothing.

Each revision is tried on the live process recon opened, all of them at once. What a server asks
of its client in a session is learnt on one more process, opened by a client that declares
everything, in the newest handshake revision; older revisions take it over.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Final

from mcp_touchstone import needs
from mcp_touchstone import revision as rev
from mcp_touchstone.arguments import Places
from mcp_touchstone.asking import find_questions
from mcp_touchstone.dossier import Dossier, Spoken, is_read_only
from mcp_touchstone.examples import find_calls, find_completion, find_prompts, find_reads
from mcp_touchstone.needs import WORDS, Probe
from mcp_touchstone.process import LaunchError
from mcp_touchstone.recon import read_lists
from mcp_touchstone.reply import Reply
from mcp_touchstone.scout import Line, Scout
from mcp_touchstone.target import Named
from mcp_touchstone.traffic import (
    find_slow,
    find_slow_task,
    find_subscription,
    find_task,
    find_traffic,
)

FINDERS: Final[dict[Probe, Callable[[Scout], None]]] = {
    Probe.CALLS: find_calls,
    Probe.READS: find_reads,
    Probe.PROMPTS: find_prompts,
    Probe.COMPLETION: find_completion,
    Probe.SLOW: find_slow,
    Probe.TRAFFIC: find_traffic,
    Probe.TASKS: find_task,
    Probe.LASTING: find_slow_task,
    Probe.LISTEN: find_subscription,
}
"""What is tried on the live process of a revision, in this order. Questions come last."""

SLICE: Final = 0.2
"""Seconds between two moments in which an interruption is noticed."""

QUESTIONS: Final = frozenset(
    word for word, known in WORDS.items() if Probe.QUESTIONS in known.probes
)


@dataclass(frozen=True, slots=True)
class Ground:
    """What things are tried on, and with.

    Attributes:
        line: (revision, willing) -> the shared process of a revision, opened by an ordinary
            client or by a willing one.
        named: what the user named.
        places: where paths may point.
        stop: set when the run is over.
        abort: ends every process at once.
    """

    line: Callable[[str, bool], Line]
    named: Named = field(default_factory=Named)
    places: Places = field(default_factory=Places)
    stop: threading.Event = field(default_factory=threading.Event)
    abort: Callable[[], None] = lambda: None

    def scout(self, revision: str, spoken: Spoken, trusted: frozenset[str], line: Line) -> Scout:
        """Give somebody who tries things on one process."""
        return Scout(
            revision,
            spoken,
            line,
            trusted=trusted,
            named=self.named,
            places=self.places,
            stop=self.stop,
        )


def learn(dossier: Dossier, wanted: Mapping[str, set[str]], ground: Ground) -> None:
    """Try what decides the wanted words of each revision; the dossier takes what is found.

    A process that cannot be had leaves its words without an example, thus unmet.
    """
    plans = {
        revision: probes
        for revision, words in wanted.items()
        if revision in dossier.spoken and (probes := needs.probes(words, revision))
    }
    if not plans:
        return
    trusted = _read_only(*dossier.spoken.values())
    asking = [r for r in plans if Probe.QUESTIONS in plans[r] and not rev.is_modern(r)]
    with ThreadPoolExecutor(max_workers=len(plans) + 1, thread_name_prefix="learn") as threads:
        tried: list[Future[None]] = []
        if asking:
            words = {word for revision in asking for word in wanted[revision]}
            tried.append(threads.submit(_ask_in_session, dossier, words, trusted, ground))
        for revision, probes in plans.items():
            spoken = dossier.spoken[revision]
            scout = ground.scout(revision, spoken, trusted, ground.line(revision, False))
            tried.append(threads.submit(_try, scout, probes, wanted[revision]))
        try:
            while wait(tried, timeout=SLICE).not_done:
                pass  # a lock without a limit would keep Ctrl-C waiting on some systems
        except BaseException:
            ground.stop.set()
            ground.abort()  # or the threads would wait for the server, and we for them
            raise
    for future in tried:
        future.result()
    _share_questions(dossier, asking)
    for revision, probes in plans.items():
        _decide(dossier.spoken[revision], probes)
    _remark(dossier, plans)


def _read_only(*lists: Spoken) -> frozenset[str]:
    """Name the tools annotated read-only in any of some revisions, or for any of some clients."""
    return frozenset(t["name"] for s in lists for t in s.named("tools") if is_read_only(t))


def _try(scout: Scout, probes: set[Probe], words: set[str]) -> None:
    for probe, find in FINDERS.items():
        if probe in probes:
            find(scout)
    if Probe.QUESTIONS in probes and rev.is_modern(scout.revision):
        find_questions(scout, words & QUESTIONS)


def _ask_in_session(
    dossier: Dossier, words: set[str], trusted: frozenset[str], ground: Ground
) -> None:
    newest = dossier.legacy[-1]
    line = ground.line(newest, True)
    try:
        connection = line.get()
    except LaunchError:
        return
    spoken = Spoken(connection.opening or Reply(0))
    read_lists(spoken, connection)
    scout = ground.scout(newest, spoken, trusted | _read_only(spoken), line)
    find_questions(scout, words & QUESTIONS - {"mrtr"})
    found, notes = dossier.spoken[newest].found, dossier.spoken[newest].notes
    found.update({word: kept for word, kept in spoken.found.items() if word in QUESTIONS})
    notes.update({word: why for word, why in spoken.notes.items() if word in QUESTIONS})


def _share_questions(dossier: Dossier, asking: Iterable[str]) -> None:
    """Let older revisions take over what a server asks in the newest handshake revision."""
    for revision in asking:
        newest, older = dossier.spoken[dossier.legacy[-1]], dossier.spoken[revision]
        for word in QUESTIONS:
            if word in newest.found and WORDS[word].exists(revision):
                older.found[word] = newest.found[word]
            if word in newest.notes:
                older.notes[word] = newest.notes[word]


def _decide(spoken: Spoken, probes: set[Probe]) -> None:
    """Note which words are decided now, and why those are not met that need a callable tool."""
    decided = {w for w, known in WORDS.items() if known.probes and probes >= {*known.probes}}
    spoken.tried |= decided
    if Probe.COMPLETION in probes and not spoken.declares("completions"):
        spoken.tried.add("completions")
    reason = spoken.notes.get("callable-tool")
    for word in decided if reason else ():
        if Probe.CALLS in WORDS[word].probes and not spoken.examples(word):
            spoken.notes.setdefault(word, reason or "")


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
