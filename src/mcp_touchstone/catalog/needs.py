"""The words of ``needs``: the feature each requires, and the probes that detect it. Pure.

Besides these words a need may be the path of a capability: ``tools``, ``tools.listChanged``,
``tasks.requests.tools.call``. ``a or b`` requires one of two.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

CAPABILITIES: Final = (
    "tools",
    "resources",
    "prompts",
    "logging",
    "completions",
    "tasks",
    "extensions",
)
"""Capabilities a server may declare; a need may name one, or a member of one."""

FLAGS: Final = frozenset({"listChanged", "subscribe"})
"""Members that are declared by the value true; all others by their presence."""


class Probe(StrEnum):
    """A probe of a server; it runs only if a selected clause needs its result."""

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
class NeedWord:
    """One word of ``needs``.

    Attributes:
        text: name of the feature; completes "the server offers no ...".
        probes: probes that detect it; empty if the opening and the lists show it.
        since: the first revision that has it; empty for the oldest.
        until: the last revision that has it; empty for the newest.
    """

    text: str
    probes: tuple[Probe, ...] = ()
    since: str = ""
    until: str = ""

    def exists(self, revision: str) -> bool:
        """Return whether a revision has the feature of the word."""
        return self.since <= revision and (not self.until or revision <= self.until)


WORDS: Final[dict[str, NeedWord]] = {
    # the opening
    "modern-only": NeedWord("life without the initialize handshake"),
    "dual-era": NeedWord("handshake beside the stateless revision"),
    "server-requests": NeedWord("request to the client (shows only while the server is used)"),
    # the lists
    "pagination": NeedWord("list of more than one page"),
    "icons": NeedWord("icons"),
    "argument-schema": NeedWord("listed tool whose inputSchema names an argument"),
    "listed-resource": NeedWord("listed resource"),
    "listed-template": NeedWord("listed resource template"),
    "template-with-variable": NeedWord("listed resource template with a variable"),
    "file-resources": NeedWord("listed file: resource, or template with a path in it"),
    "listed-prompt": NeedWord("listed prompt"),
    "prompt-with-arguments": NeedWord("listed prompt that requires an argument"),
    # tools
    "callable-tool": NeedWord(
        "tool that may be called (annotated read-only, or named by --call) and then succeeds",
        (Probe.CALLS,),
    ),
    "unanswered-call": NeedWord(
        "tool that may be called and does not answer, while the server does", (Probe.CALLS,)
    ),
    "refused-call": NeedWord(
        "tool that may be called and answers each call with an error", (Probe.CALLS,)
    ),
    "argument-tool": NeedWord("callable tool that requires an argument", (Probe.CALLS,)),
    "structured-tool": NeedWord("callable tool with an outputSchema", (Probe.CALLS,), "2025-06-18"),
    "file-tool": NeedWord("callable tool that gave back a file of the world", (Probe.CALLS,)),
    "progress-call": NeedWord("call that reports progress", (Probe.CALLS, Probe.TRAFFIC)),
    "log-traffic": NeedWord(
        "request that makes it log to the client", (Probe.CALLS, Probe.TRAFFIC)
    ),
    "slow-call": NeedWord("callable tool that lasts a second or more", (Probe.CALLS, Probe.SLOW)),
    "task-tool": NeedWord(
        "callable tool that can be run as a task",
        (Probe.CALLS, Probe.TASKS),
        since="2025-11-25",
        until="2025-11-25",
    ),
    "slow-task": NeedWord(
        "task that lasts a second or more",
        (Probe.CALLS, Probe.SLOW, Probe.TASKS, Probe.LASTING),
        since="2025-11-25",
        until="2025-11-25",
    ),
    # resources, prompts, completion
    "readable-resource": NeedWord("resource that could be read", (Probe.READS,)),
    "world-resource": NeedWord("resource that gave back a file of the world", (Probe.READS,)),
    "readable-template": NeedWord("resource template that could be read, expanded", (Probe.READS,)),
    "rendered-prompt": NeedWord("prompt that could be rendered", (Probe.PROMPTS,)),
    # requests to a client that can answer
    "elicits": NeedWord("elicitation", (Probe.QUESTIONS,), "2025-06-18"),
    "elicits-url": NeedWord("elicitation by URL", (Probe.QUESTIONS,), "2025-11-25"),
    "samples": NeedWord("sampling", (Probe.QUESTIONS,)),
    "samples-tools": NeedWord("sampling with tools", (Probe.QUESTIONS,), "2025-11-25"),
    "lists-roots": NeedWord("question for the roots of the client", (Probe.QUESTIONS,)),
    "asking-task": NeedWord(
        "task that asks its client something",
        (Probe.QUESTIONS,),
        since="2025-11-25",
        until="2025-11-25",
    ),
    "tasks-extension": NeedWord("extension io.modelcontextprotocol/tasks", since="2026-07-28"),
    "skills-extension": NeedWord("extension io.modelcontextprotocol/skills", since="2026-07-28"),
    "apps": NeedWord("page of MCP Apps (ui://)", since="2025-06-18"),
    "mrtr": NeedWord("result that asks for input", (Probe.QUESTIONS,), "2026-07-28"),
    "subscriptions": NeedWord("subscription", (Probe.LISTEN,), "2026-07-28"),
}
"""Every word. The profile of a server decides them, with the results of probes."""

OPERATIONS: Final[dict[str, NeedWord]] = {
    "tries-tools": NeedWord("tool that may be called"),
    "reads-files": NeedWord("tool or resource that gave back a file of the throw-away root"),
    "handles-files": NeedWord(
        "tool or resource that read, wrote or moved a file of the throw-away root"
    ),
    "lists-folders": NeedWord("tool that listed a folder of the throw-away root"),
    "changes-files": NeedWord("tool that made or changed a file of the throw-away root"),
    "makes-files": NeedWord("tool that made a file or a folder of the throw-away root"),
    "writes-files": NeedWord("tool that wrote or made a file of the throw-away root as a whole"),
    "edits-files": NeedWord("tool that edited a file of the throw-away root"),
    "patches-files": NeedWord("tool that applied a unified diff to a file of the throw-away root"),
    "matches-names": NeedWord("tool that gave back names of the throw-away root for a pattern"),
    "searches-files": NeedWord(
        "tool that gave back lines of the throw-away root for a part of one"
    ),
    "completes-paths": NeedWord("completion that gave back names of the throw-away root"),
    "runs-scripts": NeedWord("tool that made a file of the throw-away root as a CEDARScript said"),
    "takes-hash": NeedWord("tool that changed a file, given the hash of its content"),
    "dry-run-switch": NeedWord("tool that changed a file and has an argument for a dry run"),
    "carries-files": NeedWord("tool that moved or copied a file of the throw-away root"),
    "undoes-edits": NeedWord("tool that took an edit of the throw-away root back"),
    "runs-programs": NeedWord("tool that ran a program in the throw-away root"),
    "base-argument": NeedWord("tool with an argument that its paths are relative to"),
    "resource-paths": NeedWord("resource that gave back a file of the throw-away root by its path"),
    "file-uris": NeedWord("resource that gave back a file of the throw-away root by a file: URI"),
}
"""The needs of threats: observed effects of tools on files. The bindings decide these."""

SHOWN_ONLY: Final = frozenset({"server-requests"})
"""Words that appear only in use: a clause that needs them is conditional, or unseen."""


def choices(need: str) -> list[str]:
    """Split a need such as ``a or b`` into its alternatives."""
    return [choice.strip() for choice in need.split(" or ")]


def probes(words: Iterable[str], revision: str) -> set[Probe]:
    """Return the probes of a revision that decide all these words."""
    wanted: set[Probe] = set()
    for word in words:
        known = WORDS.get(word)
        if known is not None and known.exists(revision):
            wanted.update(known.probes)
        if word == "completions" and revision == "2024-11-05":
            wanted.add(Probe.COMPLETION)  # that revision has the method, but no capability for it
    return wanted


def explain(need: str) -> str:
    """Return the missing features of an unmet need; completes "the server offers ..."."""
    words = WORDS | OPERATIONS
    known = [words[word].text for word in choices(need) if word in words]
    return f"no {' and no '.join(known or [need])}"
