"""Find one working example of each feature: a call, a resource, a prompt, a completion."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_touchstone.connection.server_profile import (
    FAILED_CALL,
    Request,
    required_arguments,
    task_support,
)
from mcp_touchstone.discovery.prober import NOT_NAMED, Attempt, Prober
from mcp_touchstone.samples import uri_template
from mcp_touchstone.samples.from_schema import candidates
from mcp_touchstone.wire.framing import value_in
from mcp_touchstone.wire.matchers import refused_output

QUOTED: Final = 100
"""Characters of an error that are quoted."""

READS: Final = 5
PROMPTS: Final = 6
EXPANSIONS: Final = 3
"""Resources read, prompts rendered, expansions of one template tried."""

CONTEXT_SINCE: Final = "2025-06-18"
"""The first revision in which a completion may name values chosen before."""


def find_calls(scout: Prober) -> None:
    """Call each tool that may be called, with one candidate after another, until one succeeds."""
    tools = scout.tools()
    failed = ""
    for tool in tools:
        if needs_task(tool, scout.revision):
            continue
        refused: Attempt | None = None
        invalid = ""
        for request in scout.calls(tool):
            attempt = scout.attempt(request, tool)
            if attempt is None:
                break
            if attempt.reply.succeeded:
                refused = None
                scout.forget(FAILED_CALL + tool["name"])
                scout.found("callable-tool", attempt.example())
                scout.forget(f"--call {tool['name']}")
                if _holds(attempt.reply.result, scout.places.text.strip()):
                    scout.found("file-tool", attempt.example())
                break
            refused = refused or (attempt if _is_refusal(attempt) else None)
            if not attempt.reply.answered and scout.is_alive:
                scout.found("unanswered-call", attempt.example())
            invalid = invalid or refused_output(attempt.reply.result or {})
            why = _quoted(invalid) if invalid else _failure(attempt)
            failed = f"{tool['name']} answered {why}"
            if _is_refusal(attempt) or not attempt.reply.answered:
                scout.note(FAILED_CALL + tool["name"], why)
            if any(tool["name"] == name for name, _ in scout.named.call):
                scout.note(f"--call {tool['name']}", why)
        if refused is not None and isinstance(tool.get("inputSchema"), dict):
            scout.found("refused-call", refused.example())
    if not tools:
        failed = NOT_NAMED
    if failed and not scout.spoken.found.get("callable-tool"):
        scout.note("callable-tool", failed)


def needs_task(tool: Mapping[str, Any], revision: str) -> bool:
    """Return whether a tool must run as a task (possible in 2025-11-25 alone)."""
    return task_support(tool) == "required" and revision == "2025-11-25"


def _is_refusal(attempt: Attempt) -> bool:
    """Return whether the answer is an error, in either channel."""
    reply = attempt.reply
    return reply.is_error or (reply.result or {}).get("isError") is True


def _failure(attempt: Attempt) -> str:
    content = (attempt.reply.result or {}).get("content")
    first = content[0] if isinstance(content, list) and content else None
    text = value_in(first, "text")
    return _quoted(text) if isinstance(text, str) else str(attempt.reply)


def _quoted(text: str) -> str:
    return f"isError: {text if len(text) <= QUOTED else text[:QUOTED] + '…'}"


def _holds(value: Any, text: str) -> bool:
    """Return whether a string of a JSON value contains a text, plain or encoded as JSON."""
    if isinstance(value, str):
        return bool(text) and (text in value or json.dumps(text)[1:-1] in value)
    parts = value.values() if isinstance(value, dict) else value
    return isinstance(value, dict | list) and any(_holds(part, text) for part in parts)


# --- resources


def find_reads(scout: Prober) -> None:
    """Read the resources the user named, some listed ones, and an expansion or two."""
    listed = {item["uri"]: item for item in scout.spoken.named("resources", "uri")}
    fetched = [uri for uri in listed if not uri.startswith(("http://", "https://"))]
    for uri in dict.fromkeys([*scout.named.resource, *fetched[:READS]]):
        attempt = scout.attempt(Request("resources/read", {"uri": uri}), listed.get(uri))
        if attempt is not None and _was_read(attempt):
            scout.found("readable-resource", attempt.example())
            if uri in listed and _holds(attempt.reply.result, scout.places.text.strip()):
                scout.found("world-resource", attempt.example())
        elif attempt is not None and uri in scout.named.resource:
            scout.note(f"--resource {uri}", str(attempt.reply))
    for template in scout.spoken.named("templates", "uriTemplate")[:READS]:
        _read_template(scout, template)


def _was_read(attempt: Attempt) -> bool:
    return attempt.reply.succeeded and bool((attempt.reply.result or {}).get("contents"))


def _read_template(scout: Prober, template: Mapping[str, Any]) -> None:
    """Expand a template and read it; two expansions that work are enough."""
    pattern = template["uriTemplate"]
    if not uri_template.is_template(pattern):
        return
    names = uri_template.variables(pattern)
    worked = 0
    for values in _values(scout, pattern, names):
        request = Request("resources/read", {"uri": uri_template.expand(pattern, values)})
        attempt = scout.attempt(request, template)
        if attempt is not None and _was_read(attempt):
            scout.found("readable-template", attempt.example())
            scout.found("readable-resource", attempt.example())
            worked += 1
        if attempt is None or worked > 1:
            return


def _values(scout: Prober, pattern: str, names: list[str]) -> Iterator[dict[str, str]]:
    """Yield values for the variables: completions first, then guesses from the names."""
    reference = {"type": "ref/resource", "uri": pattern}
    offered = {name: completions(scout, reference, name) for name in names}
    if names and all(offered.values()):
        for turn in range(2):
            yield {name: values[turn % len(values)] for name, values in offered.items()}
    schema = {"properties": {name: {"type": "string"} for name in names}, "required": names}
    for made in candidates({"type": "object", **schema}, scout.places)[:EXPANSIONS]:
        yield {name: str(value).removeprefix("/") for name, value in made.items()}


# --- prompts


def find_prompts(scout: Prober) -> None:
    """Render the prompts the user named, and some listed ones."""
    listed = {item["name"]: item for item in scout.spoken.named("prompts")}
    named = {name: arguments for name, arguments in scout.named.prompt if arguments is not None}
    for name in list(dict.fromkeys([*(n for n, _ in scout.named.prompt), *listed]))[:PROMPTS]:
        item = listed.get(name, {"name": name})
        params: dict[str, Any] = {"name": name}
        arguments = named.get(name) or _prompt_arguments(scout, item)
        if arguments:
            params["arguments"] = dict(arguments)
        attempt = scout.attempt(Request("prompts/get", params), item)
        if attempt is not None and attempt.reply.succeeded:
            scout.found("rendered-prompt", attempt.example())
        elif attempt is not None:
            scout.note("rendered-prompt", f"{name} answered {attempt.reply}")
            if name in dict(scout.named.prompt):
                scout.note(f"--prompt {name}", str(attempt.reply))
    if scout.spoken.found.get("rendered-prompt"):
        scout.forget("rendered-prompt")


def _prompt_arguments(scout: Prober, prompt: Mapping[str, Any]) -> dict[str, str]:
    """Return values for the required arguments of a prompt: a completion, or a plain word."""
    names = required_arguments(prompt)
    properties = {name: {"type": "string"} for name in names}
    schema = {"type": "object", "properties": properties, "required": names}
    chosen = {name: str(value) for name, value in candidates(schema, scout.places)[0].items()}
    reference = {"type": "ref/prompt", "name": prompt["name"]}
    known: dict[str, str] = {}
    for name in names:
        offered = completions(scout, reference, name, known)
        chosen[name] = known[name] = offered[0] if offered else chosen[name]
    return chosen


# --- completion


def find_completion(scout: Prober) -> None:
    """Request completions: 2024-11-05 has the method, but no capability for it."""
    for reference, name in scout.spoken.completable:
        params = {"ref": reference, "argument": {"name": name, "value": ""}}
        attempt = scout.attempt(Request("completion/complete", params))
        if attempt is None or attempt.reply.succeeded:
            if attempt is not None:
                scout.found("completions", attempt.example())
            return


def completions(
    scout: Prober, reference: Mapping[str, Any], name: str, known: Mapping[str, str] | None = None
) -> list[str]:
    """Return the completions of an argument or a variable, if the server declares completions."""
    if not scout.spoken.declares("completions"):
        return []
    params: dict[str, Any] = {"ref": reference, "argument": {"name": name, "value": ""}}
    if known and scout.revision >= CONTEXT_SINCE:
        params["context"] = {"arguments": dict(known)}
    attempt = scout.attempt(Request("completion/complete", params))
    values = value_in(attempt.reply.result, "completion", "values") if attempt else None
    return [v for v in values if isinstance(v, str)] if isinstance(values, list) else []
