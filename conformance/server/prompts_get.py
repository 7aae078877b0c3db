"""server/prompts: the content of rendered prompts, and refused requests."""

import json
import re
from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    Record,
    Reply,
    Seen,
    Typed,
    ambient,
    arguments,
    base64_fault,
    brief,
    each,
    list_in,
    object_in,
    scenario,
)

GET = "prompts/get"
NOBODY = "x-touchstone-no-such-prompt"
MEDIA_TYPE = re.compile(r"[A-Za-z0-9][\w.+!#$&^-]*/[A-Za-z0-9][\w.+!#$&^-]*\s*(?:;.*)?", re.DOTALL)
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")
MOST = 4
"""Number of prompts that one scenario requests."""

MARK = "touchstone"
TEMPLATES = ("{{7*7}}", "${7*7}", "{7*7}", "<%= 7*7 %>")
LONG = 8_192
"""Length of a text that fits in common line buffers; the specification sets no line length."""
ODD = ("%s%n%d {0} {}", "a\x00b\x1b[31m\x07\u202e", "x" * LONG)


# --- content


@ambient("prompts-image-base64-mime", "prompts-audio-base64-mime")
def encodes_images_and_audio_of_prompts(record: Record) -> Iterator[Seen]:
    """Images and audio in prompts are base64 with a MIME type."""
    for kind in ("Image", "Audio"):
        clause = f"prompts-{kind.lower()}-base64-mime"
        for message, place, block in _blocks(record, f"{kind}Content"):
            if isinstance(data := block.get("data"), str):
                yield _encoded(clause, message, f"{place}.data", data)
            if isinstance(kind_of_data := block.get("mimeType"), str):
                passed = MEDIA_TYPE.fullmatch(kind_of_data) is not None
                actual = f"{place}.mimeType: {brief(kind_of_data, 60)}"
                yield Seen(clause, passed, message.entry.n, "type/subtype", actual)


@ambient("prompts-embedded-resource-fields")
def describes_embedded_resources_in_prompts(record: Record) -> Iterator[Seen]:
    """An embedded resource has a URI, a MIME type, and text or base64 data."""
    clause = "prompts-embedded-resource-fields"
    for message, place, block in _blocks(record, "EmbeddedResource"):
        resource = block.get("resource")
        if not isinstance(resource, dict):
            continue
        n = message.entry.n
        if isinstance(uri := resource.get("uri"), str):
            passed = SCHEME.match(uri) is not None
            actual = f"{place}.resource.uri: {brief(uri, 80)}"
            yield Seen(clause, passed, n, "a URI with a scheme", actual)
        if isinstance(blob := resource.get("blob"), str):
            yield _encoded(clause, message, f"{place}.resource.blob", blob)
        if "mimeType" not in resource:
            actual = f"{place}.resource without one"
            yield Seen(clause, False, n, "a MIME type", actual, mild=Breach.WARN)


def _blocks(record: Record, name: str) -> Iterator[tuple[Typed, str, dict[str, Any]]]:
    for message, place, block in each(record, name):
        if message.part == "results" and message.method == GET:
            yield message, place, block


def _encoded(clause: str, message: Typed, place: str, data: str) -> Seen:
    fault, slight = base64_fault(data)
    actual = f"{place}: {fault}: {brief(data, 60)}"
    mild = Breach.WARN if slight else None
    return Seen(clause, not fault, message.entry.n, "base64", actual, mild=mild)


@scenario("prompts-resource-link-readable")
def serves_resources_its_prompts_link_to(talk: Conversation) -> None:
    """A resource that a prompt links to can be read by its URI."""
    clause = "prompts-resource-link-readable"
    for example in talk.examples("rendered-prompt")[:MOST]:
        for uri in list(_links(talk.run(example, required=False)))[:MOST]:
            reply = talk.wire.request("resources/read", {"uri": uri}, required=False)
            if reply.answered:
                expected = f"the content of {brief(uri, 80)}, to which {example.name} links"
                passed = reply.code not in {-32002, -32602}
                talk.judge.expect(reply, clause, passed, expected)
    talk.judge.otherwise_unseen(clause, "no prompt has a link to a resource of the server")


def _links(reply: Reply) -> Iterator[str]:
    """Yield the URIs of the links in a rendered prompt, except addresses of the web."""
    for message in list_in(reply.result, "messages"):
        block = object_in(message, "content")
        if block.get("type") == "resource_link":
            uri = block.get("uri")
            if isinstance(uri, str) and ":" in uri and not uri.startswith(("http://", "https://")):
                yield uri


# --- refused requests


@scenario("prompts-unknown-name-error")
def refuses_an_unknown_prompt(talk: Conversation) -> None:
    """An unknown prompt name gets error -32602."""
    reply = talk.wire.request(GET, {"name": NOBODY})
    talk.judge.expect_refusal(
        reply, "prompts-unknown-name-error", (-32602,), "error -32602 for an unknown prompt"
    )


@scenario("prompts-missing-argument-error")
def refuses_a_prompt_without_required_arguments(talk: Conversation) -> None:
    """prompts/get without a required argument gets error -32602."""
    clause = "prompts-missing-argument-error"
    for prompt in [p for p in talk.spoken.named("prompts") if _required(p)][:MOST]:
        name, missing = prompt["name"], ", ".join(_required(prompt))
        ways: tuple[dict[str, Any], ...] = ({"arguments": {}}, {})
        for given in ways:
            reply = talk.wire.request(GET, {"name": name, **given})
            if not reply.asks:
                expected = f"error -32602 for {name} without {missing}"
                talk.judge.expect_refusal(reply, clause, (-32602,), expected)
    talk.judge.otherwise_unseen(clause, "the server asks for missing arguments")


def _arguments(prompt: dict[str, Any]) -> list[dict[str, Any]]:
    listed = map(object_in, list_in(prompt, "arguments"))
    return [argument for argument in listed if isinstance(argument.get("name"), str)]


def _required(prompt: dict[str, Any]) -> list[str]:
    return [a["name"] for a in _arguments(prompt) if a.get("required") is True]


@scenario("prompts-get-omitted-arguments")
def renders_without_the_arguments_member(talk: Conversation) -> None:
    """A prompt without required arguments renders when arguments is left out."""
    clause = "prompts-get-omitted-arguments"
    free = [p for p in talk.spoken.named("prompts") if not _required(p)]
    for prompt in sorted(free, key=lambda p: not _arguments(p))[:MOST]:
        name = prompt["name"]
        if talk.wire.request(GET, {"name": name, "arguments": {}}, required=False).result is None:
            continue
        reply = talk.wire.request(GET, {"name": name})
        again = {"name": name, "arguments": {}}
        only = reply.is_error and talk.wire.request(GET, again, required=False).result is not None
        expected = f"{name} rendered, as with empty arguments"
        talk.judge.expect(reply, clause, not only, expected)
    talk.judge.otherwise_unseen(clause, "no prompt renders without arguments")


@scenario("prompts-listed-prompt-renders")
def renders_the_prompts_it_lists(talk: Conversation) -> None:
    """A listed prompt is not refused like an unknown one."""
    clause = "prompts-listed-prompt-renders"
    unknown = talk.wire.request(GET, {"name": NOBODY}, required=False)
    for prompt in talk.spoken.named("prompts")[: 3 * MOST]:
        chosen = _chosen(talk, prompt)
        if chosen is None:
            continue
        name = prompt["name"]
        params = {"name": name, **({"arguments": chosen} if chosen else {})}
        reply = talk.wire.request(GET, params, required=False)
        same = reply.is_error and _wording(reply, name) == _wording(unknown, NOBODY)
        expected = f"{name} rendered, because it is listed"
        talk.judge.expect(reply, clause, not same, expected)
    talk.judge.otherwise_unseen(
        clause, "every listed prompt requires an argument without known values"
    )


def _wording(reply: Reply, name: str) -> tuple[Any, str]:
    return reply.code, str((reply.error or {}).get("message")).replace(name, "")


def _chosen(talk: Conversation, prompt: dict[str, Any]) -> dict[str, str] | None:
    """Return required arguments of a prompt: known ones or completions; None if there are none."""
    for known in talk.examples("rendered-prompt"):
        if known.name == prompt["name"]:
            return {k: v for k, v in known.arguments.items() if isinstance(v, str)}
    chosen: dict[str, str] = {}
    for name in _required(prompt):
        ref = {"type": "ref/prompt", "name": prompt["name"]}
        params: dict[str, Any] = {"ref": ref, "argument": {"name": name, "value": ""}}
        if talk.revision >= "2025-06-18":
            params["context"] = {"arguments": chosen}
        reply = talk.wire.request("completion/complete", params, required=False)
        values = list_in(reply.result, "completion", "values")
        if not values or not isinstance(values[0], str):
            return None
        chosen[name] = values[0]
    return chosen


# --- arguments


@scenario("prompts-validate-arguments")
def validates_prompt_arguments(talk: Conversation) -> None:
    """A number or object as an argument, and a list as arguments, are refused."""
    clause = "prompts-validate-arguments"
    listing = [p for p in talk.spoken.named("prompts") if _arguments(p)]
    if not listing:
        talk.judge.unseen(clause, "no listed prompt takes an argument")
        return
    for prompt in listing[:2]:
        good = _chosen(talk, prompt) or {}
        name = (_required(prompt) or [_arguments(prompt)[0]["name"]])[0]
        for bad in ({**good, name: 42}, {**good, name: {"a": 1}}, ["touchstone"]):
            reply = talk.wire.request(GET, {"name": prompt["name"], "arguments": bad})
            talk.judge.expect(
                reply,
                clause,
                reply.result is None or reply.asks,
                f"an error for {prompt['name']} with {brief(bad, 80)}",
            )


@scenario("prompts-inputs-outputs-validated", hurts=True)
def treats_prompt_arguments_as_text(talk: Conversation) -> None:
    """Prompt arguments are neither evaluated nor opened as files, and do no harm.

    The templates evaluate to 49. The path leads to a file outside the root.
    """
    clause = "prompts-inputs-outputs-validated"
    taking = [p for p in talk.spoken.named("prompts") if _arguments(p)]
    if not taking:
        talk.judge.unseen(clause, "no listed prompt takes an argument")
    for prompt in taking[:2]:
        good = _chosen(talk, prompt) or {}
        for argument in _arguments(prompt)[:3]:
            for value in _payloads(talk):
                filled = {**good, argument["name"]: value}
                params = {"name": prompt["name"], "arguments": filled}
                reply = talk.wire.request(GET, params, required=False)
                passed = reply.answered and not _leaks(talk, reply)
                talk.judge.expect(
                    reply,
                    clause,
                    passed,
                    f"{argument['name']} = {brief(value, 60)} unchanged, or an error",
                    mild=_mild(argument) if _leaks(talk, reply) == "canary" else None,
                )
                if not reply.answered:
                    return


def _payloads(talk: Conversation) -> Iterator[str]:
    yield from (f"{MARK}{template}{MARK}" for template in TEMPLATES)
    yield from ODD
    if talk.profile.canary is not None:
        yield talk.profile.canary.path
        yield f"file://{talk.profile.canary.path}"


def _leaks(talk: Conversation, reply: Reply) -> str:
    text = json.dumps(reply.result)
    if f"{MARK}49{MARK}" in text:
        return "template"
    canary = talk.profile.canary
    return "canary" if canary is not None and canary.text in text else ""


def _mild(argument: dict[str, Any]) -> Breach | None:
    """Return a mild breach if the purpose of an argument is to include a file."""
    about = f"{argument['name']} {argument.get('description', '')}".lower()
    words = ("file", "path", "uri", "url", "folder", "directory", "document")
    takes = arguments.is_path(argument["name"]) or any(word in about for word in words)
    return Breach.NOTE if takes else None
