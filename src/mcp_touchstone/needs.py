"""The words of ``needs``: what each asks of a server, and what has to be tried to know it. Pure.

Besides these words a need may be the path of a capability: ``tools``, ``tools.listChanged``,
``tasks.requests.tools.call``. ``a or b`` asks for one of two.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

CAPABILITIES: Final = (
    "tools", "resources", "prompts", "logging", "completions", "tasks", "extensions",
)  # fmt: skip
"""Capabilities a server may declare; a need may name one, or a member of one."""

FLAGS: Final = frozenset({"listChanged", "subscribe"})
"""Members that are declared by being true; all others by being there."""


class Probe(StrEnum):
    """What is tried on a server, and only if a selected clause needs to know."""

    CALLS = "calls the tools that may be called"
    READS = "reads resources"
    PROMPTS = "renders prompts"
    COMPLETION = "asks for a completion"
    TRAFFIC = "asks for progress and log messages"
    SLOW = "looks for a call that lasts"
    TASKS = "runs a tool as a task"
    LASTING = "looks for a task that lasts"
    QUESTIONS = "uses the server as a client that can answer everything"
    LISTEN = "opens a subscription"


@dataclass(frozen=True, slots=True)
class Word:
    """One word.

    Attributes:
        text: what a server that meets it offers; completes "the server offers no ...".
        probes: what has to be tried to know it; empty where the opening and the lists tell.
        since: the first revision that has it; empty for the oldest.
        until: the last one; empty for the newest.
    """

    text: str
    probes: tuple[Probe, ...] = ()
    since: str = ""
    until: str = ""

    def exists(self, revision: str) -> bool:
        """Whether a revision has what the word speaks of."""
        return self.since <= revision and (not self.until or revision <= self.until)


WORDS: Final[dict[str, Word]] = {
    # the opening
    "modern-only": Word("life without the initialize handshake"),
    "dual-era": Word("handshake beside the stateless revision"),
    "server-requests": Word("request to the client (shows only while the server is used)"),
    # the lists
    "pagination": Word("list of more than one page"),
    "icons": Word("icons"),
    "argument-schema": Word("listed tool whose inputSchema names an argument"),
    "listed-resource": Word("listed resource"),
    "listed-template": Word("listed resource template"),
    "template-with-variable": Word("listed resource template with a variable"),
    "file-resources": Word("listed file: resource, or template with a path in it"),
    "listed-prompt": Word("listed prompt"),
    "prompt-with-arguments": Word("listed prompt that requires an argument"),
    # tools
    "callable-tool": Word(
        "tool that may be called (annotated read-only, or named by --call) and then succeeds",
        (Probe.CALLS,),
    ),
    "argument-tool": Word("callable tool that requires an argument", (Probe.CALLS,)),
    "structured-tool": Word("callable tool with an outputSchema", (Probe.CALLS,), "2025-06-18"),
    "file-tool": Word("callable tool that gave back a file of the world", (Probe.CALLS,)),
    "progress-call": Word("call that reports progress", (Probe.CALLS, Probe.TRAFFIC)),
    "log-traffic": Word("request that makes it log to the client", (Probe.CALLS, Probe.TRAFFIC)),
    "slow-call": Word("callable tool that lasts a second or more", (Probe.CALLS, Probe.SLOW)),
    "task-tool": Word(
        "callable tool that can be run as a task",
        (Probe.CALLS, Probe.TASKS),
        since="2025-11-25",
        until="2025-11-25",
    ),
    "slow-task": Word(
        "task that lasts a second or more",
        (Probe.CALLS, Probe.SLOW, Probe.TASKS, Probe.LASTING),
        since="2025-11-25",
        until="2025-11-25",
    ),
    # resources, prompts, completion
    "readable-resource": Word("resource that could be read", (Probe.READS,)),
    "world-resource": Word("resource that gave back a file of the world", (Probe.READS,)),
    "readable-template": Word("resource template that could be read, expanded", (Probe.READS,)),
    "rendered-prompt": Word("prompt that could be rendered", (Probe.PROMPTS,)),
    # what it asks of a client that can answer
    "elicits": Word("elicitation", (Probe.QUESTIONS,), "2025-06-18"),
    "elicits-url": Word("elicitation by URL", (Probe.QUESTIONS,), "2025-11-25"),
    "samples": Word("sampling", (Probe.QUESTIONS,)),
    "samples-tools": Word("sampling with tools", (Probe.QUESTIONS,), "2025-11-25"),
    "lists-roots": Word("question for the roots of the client", (Probe.QUESTIONS,)),
    "asking-task": Word(
        "task that asks its client something",
        (Probe.QUESTIONS,),
        since="2025-11-25",
        until="2025-11-25",
    ),
    "mrtr": Word("result that asks for input", (Probe.QUESTIONS,), "2026-07-28"),
    "subscriptions": Word("subscription", (Probe.LISTEN,), "2026-07-28"),
}
"""Every word there is. ``dossier`` decides them, ``learning`` tries what they ask for."""

OPERATIONS: Final[dict[str, Word]] = {
    "tries-tools": Word("tool that takes a path and may be called in the throw-away root"),
    "reads-files": Word("tool or resource that gave back a file of the throw-away root"),
    "handles-files": Word(
        "tool or resource that read, wrote or moved a file of the throw-away root"
    ),
    "lists-folders": Word("tool that listed a folder of the throw-away root"),
    "changes-files": Word("tool that made or changed a file of the throw-away root"),
    "writes-files": Word("tool that wrote or made a file of the throw-away root as a whole"),
    "edits-files": Word("tool that edited a file of the throw-away root"),
    "patches-files": Word("tool that applied a unified diff to a file of the throw-away root"),
    "matches-names": Word("tool that gave back names of the throw-away root for a pattern"),
    "searches-files": Word("tool that gave back lines of the throw-away root for a part of one"),
    "completes-paths": Word("completion that gave back names of the throw-away root"),
    "runs-scripts": Word("tool that made a file of the throw-away root as a CEDARScript said"),
    "takes-hash": Word("tool that changed a file and was told the hash of what it held"),
    "dry-run-switch": Word("tool that changed a file and has an argument for a dry run"),
    "carries-files": Word("tool that moved or copied a file of the throw-away root"),
    "undoes-edits": Word("tool that took an edit of the throw-away root back"),
    "base-argument": Word("tool that is told by an argument what its paths are relative to"),
    "resource-paths": Word("resource that gave back a file of the throw-away root by its path"),
    "file-uris": Word("resource that gave back a file of the throw-away root by a file: URI"),
}
"""What a threat may need: what tools were seen to do to files. ``attack.binder`` decides these."""

SHOWN_ONLY: Final = frozenset({"server-requests"})
"""Words that only show while the server is used: what needs them is conditional, or unseen."""


def choices(need: str) -> list[str]:
    """Take a need apart: ``a or b``."""
    return [choice.strip() for choice in need.split(" or ")]


def is_known(word: str) -> bool:
    """Whether a word means something."""
    return word in WORDS or word in OPERATIONS or word.partition(".")[0] in CAPABILITIES


def probes(words: Iterable[str], revision: str) -> set[Probe]:
    """Give what has to be tried in a revision so that all these words can be decided."""
    wanted: set[Probe] = set()
    for word in words:
        known = WORDS.get(word)
        if known is not None and known.exists(revision):
            wanted.update(known.probes)
        if word == "completions" and revision == "2024-11-05":
            wanted.add(Probe.COMPLETION)  # that revision has the method and no capability for it
    return wanted


def explain(need: str) -> str:
    """Say what is missing where a need is not met; completes "the server offers no ..."."""
    words = WORDS | OPERATIONS
    known = [words[word].text for word in choices(need) if word in words]
    return f"{need}: no {' and no '.join(known)}" if known else need
