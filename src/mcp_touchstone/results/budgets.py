"""What the lists and results of a server cost a model, in estimated tokens. Pure.

A token is estimated as four bytes of the compact JSON, because tokenizers differ by client.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mcp_touchstone.wire.framing import Kind, object_in
from mcp_touchstone.wire.lifecycle import Role

if TYPE_CHECKING:
    from mcp_touchstone.connection.server_profile import ServerProfile
    from mcp_touchstone.wire.transcript import Transcript

TOKENIZER: Final = "bytes/4"
RESULT: Final = "result"
NAMES: Final = ("tools", "resources", "templates", "prompts", "instructions", RESULT)
"""What has a budget: the lists and instructions of the newest revision, the largest result."""


@dataclass(frozen=True, slots=True)
class Result:
    """The largest result of a tool, in bytes, and the number of its results."""

    bytes: int
    seen: int


@dataclass(frozen=True, slots=True)
class Budgets:
    """The costs of one run.

    Attributes:
        tokens: estimated tokens by name; see ``NAMES``.
        results: the results of each called tool.
        name: the file with the budgets; empty if none was named.
        over: a sentence for each budget that is exceeded.
    """

    tokens: dict[str, int] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)
    name: str = ""
    over: tuple[str, ...] = ()


def tokens(count: int) -> int:
    """Estimate the tokens of a number of bytes."""
    return -(-count // 4)


def measured(profile: "ServerProfile", transcripts: "Iterable[Transcript]") -> Budgets:
    """Measure the newest revision that the server speaks, and all results of tools."""
    if not profile.spoken:
        return Budgets()
    newest = profile.spoken[max(profile.spoken)]
    found = {name: _size(items) for name, items in newest.lists.items() if name in NAMES}
    if newest.result.get("instructions"):
        found["instructions"] = _size(newest.result["instructions"])
    results: dict[str, Result] = {}
    for transcript in transcripts:
        for name, size in _results(transcript):
            known = results.get(name, Result(0, 0))
            results[name] = Result(max(size, known.bytes), known.seen + 1)
    if results:
        found[RESULT] = max(one.bytes for one in results.values())
    return Budgets({name: tokens(size) for name, size in found.items()}, results)


def _size(value: Any) -> int:
    return len(
        json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
    )


def _results(transcript: "Transcript") -> Iterable[tuple[str, int]]:
    for entry in transcript:
        for message in entry.messages:
            if message.role is not Role.ANSWER or message.kind is not Kind.RESULT:
                continue
            if message.method == "tools/call" and message.answers is not None:
                asked = object_in(transcript[message.answers].value, "params")
                if isinstance(name := asked.get("name"), str):
                    yield name, _size(message.value["result"])
