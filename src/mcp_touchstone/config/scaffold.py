"""Write a configuration for a server from the result of recon. Pure.

Only required settings are active; everything that recon can find by itself is a comment.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.connection.server_profile import Example, ServerProfile, is_read_only
from mcp_touchstone.gate.toml_text import key, quoted, value
from mcp_touchstone.runtime.scratch import NOTE
from mcp_touchstone.runtime.word_paths import names_folder
from mcp_touchstone.samples.from_schema import Places, candidates
from mcp_touchstone.target.server_settings import STARTUP
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.target.values import Arguments

SLOW: Final = 10.0
"""Seconds to the first answer above which a server gets a longer timeout than the default."""

PATIENCE: Final = 12
"""Timeout of a slow server, as a multiple of the seconds it took."""

WORKED: Final = "Annotated read-only: called without being named. This worked:"
FAILED: Final = "Annotated read-only, and nothing tried so far has worked. Arguments that do help:"
LEFT: Final = "Not annotated read-only, so never called. Take the # away where it may be:"
UNRENDERED: Final = "Could not be rendered so far. Arguments that work help:"

Use = tuple[str, Arguments]
"""A tool or prompt, with arguments."""


Source = tuple[str, str | None] | None
"""File of a client and name of the server in it; None if the command is not from such a file."""


def text(target: Target, profile: ServerProfile, source: Source = None) -> str:
    """Return the text of the configuration.

    Args:
        target: the server, as the user named it.
        profile: the result of recon; the server supports at least one revision.
        source: the client's file with its command and environment; they are not repeated. None if
            there is none.
    """
    blocks = [
        _heading(profile),
        _command(target) if source is None else _taken(*source),
        _running(target, profile, repeat=source is None),
        _judged(profile),
        _uses("call", target.call, _tools(target, profile)),
        _uses("prompt", target.prompt, _prompts(target, profile)),
    ]
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block))) + "\n"


def _heading(profile: ServerProfile) -> Iterator[str]:
    name = _plain(profile.name or "a server that reports no name")
    yield f"# How `mcp-touchstone check` judges {name}."
    missing = [r for r in rev.ALL if r not in profile.spoken]
    but = f"; not {', '.join(missing)}" if missing else ""
    yield f"# It speaks {', '.join(profile.spoken)}{but}."
    yield "# The keys are the options of `mcp-touchstone check --help`, without the dashes."


def _command(target: Target) -> Iterator[str]:
    if target.url:
        yield f"url = {quoted(target.url)}"
    if target.header:
        named = {name: f"env:{variable}" for name, variable in target.header.items()}
        yield f"header = {value(named)}"
    for name in ("issuer", "scope", "token_command", "other_token_command"):
        if given := getattr(target, name):
            shown = value(list(given) if name == "scope" else given)
            yield f"{name.replace('_', '-')} = {shown}"
    if target.ca_file is not None:
        yield f"ca-file = {quoted(str(target.ca_file))}"
    if not target.started:
        return
    folders = [word for word in target.command[1:] if ROOT not in word and names_folder(word)]
    if folders:
        yield f"# {_plain(folders[0])} is yours. With {ROOT} in its place the server is given a"
        yield "# throw-away folder, and its effects on files can be judged."
    elif not target.rooted:
        yield f"# {ROOT} is a throw-away folder; put it where your server takes its files."
    yield f"command = {value(list(target.command))}"


def _taken(file: str, name: str | None) -> Iterator[str]:
    yield "# Command and environment stay where they are."
    yield f"from = {quoted(file)}"
    if name is not None:
        yield f"server = {quoted(name)}"


def _running(target: Target, profile: ServerProfile, *, repeat: bool) -> Iterator[str]:
    if not repeat:
        pass
    elif target.env:
        yield f"env = {value(dict(target.env))}"
    else:
        yield '# env = { API_KEY = "test" }    # beside your own; HOME is a throw-away folder'
    if repeat and target.cwd is not None:
        yield f"cwd = {quoted(target.cwd)}"
    took = profile.pace.started
    wanted = target.timeout
    if wanted == STARTUP and took > SLOW:
        wanted = float(max(STARTUP, PATIENCE * round(took)))
    if wanted != STARTUP:
        yield f"timeout = {wanted:g}    # seconds to the first answer; it took {took:.1f}"


def _judged(profile: ServerProfile) -> Iterator[str]:
    yield '# revision = ["2025-11-25"]    # judge these only'
    yield '# fail-on = "should"           # warnings fail the gate too; see docs/guides/baseline.md'
    if profile.bindings is not None and profile.bindings.found:
        yield '# suite = "all"                # attacks on the tools that take paths too'


def _uses(
    word: str, named: tuple[tuple[str, Arguments], ...], rest: Mapping[str, list[Use]]
) -> Iterator[str]:
    if not named and not any(rest.values()):
        return
    yield f"[{word}]"
    for use in named:
        yield _line(*use)
    for heading, uses in rest.items():
        if uses:
            yield f"# {heading}"
            yield from (f"# {_line(*use)}" for use in uses)


def _line(name: str, arguments: Arguments) -> str:
    try:
        return f"{key(name)} = {'true' if arguments is None else value(arguments)}"
    except ValueError:
        return f"{key(name)} = true"


def _tools(target: Target, profile: ServerProfile) -> dict[str, list[Use]]:
    spoken = list(profile.spoken.values())
    named = {name for name, _ in target.call}
    called = {e.name: e for s in spoken for e in s.found.get("callable-tool", [])}
    listed = {tool["name"]: tool for s in spoken for tool in s.named("tools")}
    found: dict[str, list[Use]] = {WORKED: [], FAILED: [], LEFT: []}
    for name, tool in listed.items():
        if name in named:
            continue
        if name in called:
            found[WORKED].append((name, _shown(called[name], profile)))
        else:
            found[FAILED if is_read_only(tool) else LEFT].append((name, _guess(tool)))
    return found


def _prompts(target: Target, profile: ServerProfile) -> dict[str, list[Use]]:
    spoken = list(profile.spoken.values())
    known = {name for name, _ in target.prompt}
    known |= {e.name for s in spoken for e in s.found.get("rendered-prompt", [])}
    found = {}
    for prompt in (prompt for s in spoken for prompt in s.named("prompts")):
        if prompt["name"] not in known:
            wanted = [a for a in prompt.get("arguments") or [] if isinstance(a, dict)]
            guess = {str(a.get("name")): "example" for a in wanted if a.get("required")}
            found[prompt["name"]] = guess
    return {UNRENDERED: list(found.items())}


def _guess(tool: Mapping[str, Any]) -> Arguments:
    made = candidates(tool.get("inputSchema"), Places(folder=ROOT, file=NOTE))
    return made[0] if made else None


def _shown(example: Example, profile: ServerProfile) -> Arguments:
    """Return arguments that have worked, with the path of the root replaced by ``{root}``."""
    text = json.dumps(example.arguments)
    root = json.dumps(profile.root)[1:-1]
    found: dict[str, Any] = json.loads(text.replace(root, ROOT) if root else text)
    return found


def _plain(words: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in words).split())


def again(file: str, *, found: bool) -> list[str]:
    """Return the lines that explain how to use the file.

    Args:
        found: whether `check` finds the whole file by itself, without `--config`.
    """
    config = "" if found else f" --config {shlex.quote(file)}"
    return [
        f"wrote {file}; check the commented lines, then:",
        f"  mcp-touchstone check{config}",
        f"  mcp-touchstone check{config} --update-baseline    # accept what fails today",
    ]
