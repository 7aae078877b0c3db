"""The profile of a server from discovery, as text for a person and as JSON."""

import textwrap
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.needs import SHOWN_ONLY, WORDS
from mcp_touchstone.connection.server_profile import Example, ServerProfile, Spoken
from mcp_touchstone.report.text import NAMELESS, cut, last_lines, plural
from mcp_touchstone.results.tool_use import tool_use
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.wire.framing import brief

WIDTH: Final = 100
LABEL: Final = 27
SHOWN: Final = 3
"""Examples shown for a word; the JSON has them all."""

OPENING: Final = frozenset({"modern-only", "dual-era"})


def document(profile: ServerProfile, revisions: list[str], processes: int) -> dict[str, Any]:
    """Build the JSON."""
    return {
        "name": profile.name if profile.spoken else None,
        "sdk": [str(sdk) for sdk in profile.sdk.sdks],
        "trouble": profile.trouble,
        "stderr": profile.stderr,
        "refused": {r: str(reply) for r, reply in profile.refused.items()},
        "startup_seconds": round(profile.pace.started, 3),
        "processes": processes,
        "remarks": profile.remarks,
        "bindings": None if profile.bindings is None else profile.bindings.document(),
        "revisions": {r: _revision(profile, r) for r in revisions if r in profile.spoken},
    }


def _revision(profile: ServerProfile, revision: str) -> dict[str, Any]:
    spoken = profile.spoken[revision]
    return {
        "server": spoken.server_info,
        "capabilities": spoken.capabilities,
        "listed": {feature: len(items) for feature, items in spoken.lists.items()},
        "paged": list(spoken.cursors),
        "offers": {
            word: [_example(example) for example in spoken.examples(word)]
            for word in _words(revision)
            if not profile.lacks((word,), revision)
        },
        "lacks": {
            word: profile.why(word, revision)
            for word in _words(revision)
            if profile.lacks((word,), revision)
        },
    }


def _words(revision: str) -> list[str]:
    return [w for w, known in WORDS.items() if known.exists(revision) and w not in SHOWN_ONLY]


def _example(example: Example) -> dict[str, Any]:
    return {
        "method": example.method or None,
        "params": dict(example.params),
        "seconds": round(example.seconds, 3),
        **({"asked": [one["method"] for one in example.asked]} if example.asked else {}),
    }


def text(
    profile: ServerProfile,
    revisions: list[str],
    processes: int,
    *,
    shelter: str = "",
    variables: Iterable[str] = (),
) -> Iterator[str]:
    """Yield lines for a person: the newest revision of each era in full, then differences.

    Args:
        shelter: the sandbox that protects the user's files and processes from the server.
        variables: names of the user's environment variables that the server inherits.
    """
    if not profile.spoken:
        yield f"the server told nothing: {safe(profile.trouble)}"
        for number, line in enumerate(last_lines(profile.stderr)):
            yield f"  {'' if number else 'stderr':<{LABEL}}{cut(safe(line), WIDTH - LABEL - 2)}"
        return
    yield from _row("server", profile.name or NAMELESS)
    yield from _row("sdk", str(profile.sdk))
    yield from _row("speaks", ", ".join(profile.spoken))
    silent = [r for r in rev.ALL if r not in profile.spoken]
    if silent:
        yield from _row("does not", ", ".join(silent))
    yield from _row("started", f"in {profile.pace.started:.2f} s, {processes} times")
    for number, (label, words) in enumerate(tool_use(profile).rows()):
        yield from _row("" if number else "tools", f"{label}: {words}")
    if shelter:
        yield from _row("sandbox", shelter)
    if names := ", ".join(sorted(variables)):
        yield from _row("inherits", names)
    said = "" if profile.bindings is None else profile.bindings.why
    for remark in profile.remarks:
        if not said or said not in remark:
            yield from _row("remark", remark)
    yield from _bindings(profile)
    shown = [r for r in revisions if r in profile.spoken]
    before: dict[str, str] = {}
    for revision in reversed(shown):
        found = dict(_facts(profile, revision))
        changed = {label: words for label, words in found.items() if before.get(label) != words}
        gone = [label for label in before if label not in found]
        yield ""
        same = "" if not before else "   (where it differs from the revision above)"
        yield f"{revision}{same}"
        for label, words in changed.items():
            yield from _row(label, words)
        if gone:
            yield from _row("not here", ", ".join(gone))
        before = {} if rev.is_modern(revision) else found


def _bindings(profile: ServerProfile) -> Iterator[str]:
    """Yield lines about the effects of the tools on files."""
    bindings = profile.bindings
    if bindings is None:
        return
    yield ""
    yield "effects of its tools on files in a throw-away folder (for --suite security)"
    for binding in bindings.found:
        yield from _row(binding.operation, str(binding))
    for why in bindings.untrue:
        yield from _row("no effect", why)
    if bindings.unbound:
        yield from _row("no effect seen", ", ".join(bindings.unbound))
    if bindings.why:
        yield from _row("because", bindings.why)


def _facts(profile: ServerProfile, revision: str) -> Iterator[tuple[str, str]]:
    spoken = profile.spoken[revision]
    yield "declares", ", ".join(_declared(spoken.capabilities)) or "nothing"
    listed = [plural(len(items), name.removesuffix("s")) for name, items in spoken.lists.items()]
    yield "lists", ", ".join(listed) or "nothing"
    for word in _words(revision):
        if word not in OPENING and not profile.lacks((word,), revision):
            yield word, _examples(spoken, word)
    for word in _words(revision):
        if word not in OPENING and profile.lacks((word,), revision):
            yield f"no {word}", profile.why(word, revision)


def _declared(capabilities: dict[str, Any]) -> Iterator[str]:
    for name, value in capabilities.items():
        members = [m for m, v in value.items() if v] if isinstance(value, dict) else []
        yield f"{name} ({', '.join(members)})" if members else name


def _examples(spoken: Spoken, word: str) -> str:
    examples = spoken.examples(word)
    texts = [_shown(example) for example in examples[:SHOWN]]
    more = len(examples) - len(texts)
    return "; ".join([*texts, *([f"{more} more"] if more > 0 else [])]) or "yes"


def _shown(example: Example) -> str:
    took = f" ({example.seconds:.1f} s)" if example.seconds >= 1 else ""
    if not example.method:
        return "by itself, right after the handshake"
    words = [example.method, example.name or str(example.params.get("uri") or "")]
    if example.arguments:
        words.append(brief(example.arguments, 60))
    return " ".join(word for word in words if word) + took


def _row(label: str, words: str) -> Iterator[str]:
    lines = textwrap.wrap(safe(words), WIDTH - LABEL - 2, break_on_hyphens=False) or [""]
    for number, line in enumerate(lines[:3]):
        yield f"  {cut(label, LABEL - 1) if not number else '':<{LABEL}}{line}"
