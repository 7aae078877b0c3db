"""A client that does one thing a process takes the steps of a scenario: one command for each step.

It runs alone, by its path, with the standard library:
``python -I -S stepper.py --step METHOD WORD ... --step METHOD WORD ...``.
"""

import json
import os
import subprocess
import sys
import time
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

STEP = "--step"
"""Begins a command; the next word is the method that it sends, or ANY."""

ANY = "*"
"""Stands for each method that has no command of its own."""

BEYOND = {"results", "task", "loaded"}
"""Members of steps that one process cannot take: it knows no results of another one."""

EACH = "*"
"""The name in a step that calls every tool of the client's list; one process does not know it."""

PAIRS = "{pairs}"

KNOWN = ("client_id", "client_secret")
"""What an issuer gave a client that it knows. A word for one that there is not is left out."""

OWN = ("answer", "end", "load")
"""Steps that send no request, or several; their names stand in place of a method."""

URIS = ("read", "load", "subscribe", "unsubscribe")
"""Steps that name a URI."""

CONNECT: tuple[dict[str, Any], ...] = ({"list": "tools"},)
"""Taken where a scenario has no steps: a client that does one thing a process connects for it."""

LISTS = {"templates": "resources/templates/list"}
METHODS = {
    "list": "{}/list",
    "call": "tools/call",
    "read": "resources/read",
    "prompt": "prompts/get",
    "complete": "completion/complete",
    "level": "logging/setLevel",
    "subscribe": "resources/subscribe",
    "unsubscribe": "resources/unsubscribe",
}
"""Step -> the request that a client sends for it."""


def method(step: dict[str, Any]) -> str:
    """Return the method of a step; empty if it sends no request of its own."""
    known = next((name for name in METHODS if name in step), "")
    what = step[known] if known == "list" else ""
    return LISTS.get(what) or METHODS.get(known, "").format(what)


def key(step: dict[str, Any]) -> str:
    """Return the name for the command of a step; empty if no command takes it."""
    return method(step) or next((name for name in OWN if name in step), "")


def flat(steps: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the steps, and those that are taken at the same time."""
    for step in steps:
        yield from step.get("together") or (step,)


def arguments(step: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call, of a prompt or of a completion."""
    if "complete" in step:
        return {step["argument"]: step["value"]}
    given: dict[str, Any] = step.get("arguments") or {n: step[n] for n in ("a", "b") if n in step}
    return given


def filled(
    command: Sequence[str],
    step: dict[str, Any],
    reply: Mapping[str, Any],
    context: Mapping[str, Any] = types.MappingProxyType({}),
) -> Iterator[str]:
    """Yield the words of a command for a step.

    ``{tool}``, ``{prompt}``, ``{uri}`` and ``{level}`` are what the step names, ``{arguments}`` is
    a JSON object, and ``{method}`` is the request. A word with ``{pairs}`` is repeated for each
    argument, as ``name=value``. ``{action}`` and ``{content}``, a JSON object, are what ``reply``
    has: the step that says how to answer. ``{client_id}`` and ``{client_secret}`` are those of the
    context.
    """
    given = arguments(step)
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in given.items()}
    uri = next((step[name] for name in URIS if name in step), "")
    known = {
        "{tool}": step.get("call", ""),
        "{prompt}": step.get("prompt") or step.get("complete", ""),
        "{uri}": uri,
        "{level}": step.get("level", ""),
        "{arguments}": json.dumps(given),
        "{method}": method(step),
        "{action}": reply.get("answer", "cancel"),
        "{content}": json.dumps(reply.get("content", {})),
    }
    known |= {f"{{{name}}}": context[name] for name in KNOWN if name in context}
    lacking = [f"{{{name}}}" for name in KNOWN if name not in context]
    for word in command:
        if any(name in word for name in lacking):
            continue
        if PAIRS in word:
            yield from (word.replace(PAIRS, f"{name}={value}") for name, value in texts.items())
            continue
        for name, value in known.items():
            word = word.replace(name, value) if name in word else word  # noqa: PLW2901
        yield word


def identified(text: str) -> bool:
    """Whether a command takes the id of a client that an issuer knows."""
    return f"{{{KNOWN[0]}}}" in text


def commands(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the commands of a command line: method -> words."""
    found: dict[str, list[str]] = {}
    begins = [n for n, word in enumerate(words) if word == STEP]
    for begin, end in zip(begins, [*begins[1:], len(words)], strict=True):
        found[words[begin + 1]] = [*words[begin + 2 : end]]
    return found


def _end(status: int) -> str:
    """Return how a command ended."""
    return f"exit status {status}" if status > 0 else f"signal {-status}"


def main() -> int:
    """Take the steps; return the status of the first command that failed, and may not."""
    known, reply = commands(sys.argv[1:]), dict[str, Any]()
    context = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])
    for step in context["steps"] or CONNECT:
        if "wait" in step:
            time.sleep(step["wait"])
        reply = step if "answer" in step else reply
        running = []
        for one in flat([step]):
            command = known.get(key(one), known.get(ANY, []) if method(one) else [])
            if command and not one.keys() & BEYOND and one.get("call") != EACH:
                running.append((one, subprocess.Popen([*filled(command, one, reply, context)])))
        for one, process in running:
            status = process.wait()
            if status and not one.get("fails"):
                sys.stderr.write(f"the command of {key(one)} ended with {_end(status)}\n")
                return status if status > 0 else 128 - status
    return 0


if __name__ == "__main__":
    sys.exit(main())
