"""server/resources: URIs that are unknown, malformed, or lead out of the tree."""

import base64
import binascii
import contextlib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Broken,
    Conversation,
    Reply,
    SafePath,
    brief,
    list_in,
    scenario,
    uri_template,
    value_in,
)

NEVER = "touchstone-never"
"""An unused scheme."""

NOTHING = f"{NEVER}://9f3e6c1a77d04b58b2f0d1c6a4e85b3d/nothing"
"""An unknown URI; it is the same in each run, so that reports do not vary."""

METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL, RETIRED = -32601, -32602, -32603, -32002
UP = ("../", "..%2F", "%2e%2e/", "%2e%2e%2f", "%252e%252e%252f", "..\\", "..%5C")
"""Spellings of one step up: plain, percent-encoded once and twice, with backslashes."""
DEPTH = 12


def _unknown(talk: Conversation) -> Reply:
    return talk.wire.request("resources/read", {"uri": NOTHING})


def _contents(reply: Reply) -> Any:
    return value_in(reply.result, "contents")


@scenario("resources-not-found-code-legacy")
def reports_an_unknown_resource_in_a_session(talk: Conversation) -> None:
    """resources/read of an unknown resource gets error -32002."""
    reply = _unknown(talk)
    if not reply.answered or reply.unreadable:
        talk.judge.unseen("resources-not-found-code-legacy", f"no readable answer: {reply}")
        return
    talk.judge.expect_error(
        reply, "resources-not-found-code-legacy", RETIRED, "error -32002 for an unknown URI"
    )


@scenario("resources-not-found-code", "resources-not-found-no-empty-contents")
def reports_an_unknown_resource(talk: Conversation) -> None:
    """resources/read of an unknown resource gets error -32602, not empty contents."""
    code, empty = "resources-not-found-code", "resources-not-found-no-empty-contents"
    expected = "error -32602 for an unknown URI"
    reply = _unknown(talk)
    if not reply.answered or reply.asks:
        talk.judge.unseen((code, empty), f"there was no final answer: {reply}")
        return
    talk.judge(empty, _contents(reply) != [], expected=expected, actual="empty contents", at=reply)
    if reply.code in {METHOD_NOT_FOUND, RETIRED} or _contents(reply) == []:
        talk.judge.unseen(code, f"another clause judges {reply}")
        return
    mild = None
    if _contents(reply) or (reply.code == INTERNAL and not _reads(talk)):
        mild = Breach.WARN
    passed = reply.code == INVALID_PARAMS
    talk.judge.expect(reply, code, passed, expected, mild=mild)


def _reads(talk: Conversation) -> bool:
    """Whether a listed resource can be read, so that reading works in principle."""
    for item in talk.spoken.named("resources", "uri")[:3]:
        if talk.wire.request("resources/read", {"uri": item["uri"]}).result is not None:
            return True
    return False


@scenario("resources-validate-uris", hurts=True)
def validates_resource_uris(talk: Conversation) -> None:
    """A malformed URI is refused, and an unusual one does no harm."""
    clause = "resources-validate-uris"
    none: tuple[Any, ...] = (7, "", "not a uri")
    odd = (f"{NEVER}://{'a' * 8192}", f"{NEVER}://a\0b", f"{NEVER}://a\nb", f"{NEVER}://%zz%")
    for uri in (*none, *odd):
        reply = talk.wire.request("resources/read", {"uri": uri}, required=False)
        refused = reply.is_error or (reply.asks and uri not in none)
        mild = None
        if uri == odd[0] and _contents(reply) == []:
            refused = True  # resources-not-found-no-empty-contents judges this
        if reply.answered and (_contents(reply) == [] or uri not in none or reply.asks):
            mild = Breach.WARN
        talk.judge.expect(
            reply,
            clause,
            refused,
            f"an error for the uri {brief(uri, 40)}",
            mild=mild,
        )
        if talk.wire.gone:
            return
    subscribable = not talk.modern and talk.spoken.flag("resources", "subscribe")
    for uri in none if subscribable else ():
        reply = talk.wire.request("resources/subscribe", {"uri": uri}, required=False)
        talk.judge.expect(
            reply,
            clause,
            reply.is_error,
            f"an error for a subscription to {brief(uri, 40)}",
            mild=Breach.WARN if reply.answered else None,
        )
        if reply.result is not None:
            talk.wire.request("resources/unsubscribe", {"uri": uri}, required=False)
    if not _reads(talk):
        talk.judge.take_back(clause, "no listed resource can be read, so a refusal shows nothing")


@scenario("resources-path-traversal", "resources-path-traversal-legacy")
def serves_no_resource_outside_its_tree(talk: Conversation) -> None:
    """No spelling of a URI or a template variable leads to a file outside the tree."""
    clauses = ("resources-path-traversal", "resources-path-traversal-legacy")
    canary = talk.profile.canary
    if canary is None:
        raise Broken("no canary file was planted beside the tree")
    plain = PurePosixPath(canary.path).as_uri()
    reply = talk.wire.request("resources/read", {"uri": plain}, required=False)
    open_to_all = canary.text in _text(reply)
    talk.judge(
        clauses,
        not open_to_all,
        expected="an error for the plain address of a file outside the tree",
        actual=f"the content of {brief(plain, 80)}",
        at=reply,
        mild=Breach.WARN,
    )
    for uri in dict.fromkeys(_ways_out(talk, PurePosixPath(canary.path))):
        reply = talk.wire.request("resources/read", {"uri": uri}, required=False)
        talk.judge(
            clauses,
            canary.text not in _text(reply),
            expected="an error for a URI that leads outside the tree",
            actual=f"the content of {brief(uri, 120)}",
            at=reply,
            mild=Breach.WARN if open_to_all else None,
        )


def _text(reply: Reply) -> str:
    """Return an answer as text, with base64 blobs decoded."""
    found = [str(dict(reply.value or {}))]
    for item in list_in(reply.result, "contents"):
        if isinstance(blob := value_in(item, "blob"), str):
            with contextlib.suppress(binascii.Error, ValueError):
                found.append(base64.b64decode(blob).decode("utf-8", "replace"))
    return "\n".join(found)


def _ways_out(talk: Conversation, canary: PurePosixPath) -> Iterator[str]:
    """Yield URIs that lead to a file beside the tree if the server does not check them."""
    beside = f"{canary.parent.name}/{canary.name}"
    far = str(canary).lstrip("/")
    paths = [step + beside for step in UP]
    paths += [UP[0] * DEPTH + far, UP[2] * DEPTH + far, str(canary), f"notes/../../{beside}"]
    for base in _bases(talk):
        yield from (base.replace("{}", path, 1) for path in paths)


def _bases(talk: Conversation) -> list[str]:
    """Return the addresses below which files are served, with ``{}`` in place of the path."""
    found = []
    for template in talk.spoken.named("templates", "uriTemplate"):
        text = template["uriTemplate"]
        names = [n for n in uri_template.variables(text) if n.lower() in PATHS]
        parts = uri_template.parts(text) if names else []
        made = ""
        for part in parts:
            if isinstance(part, str):
                made += part
            elif part.variables[0][0] in names and "{}" not in made:
                made += ("/" if part.operator == "/" else "") + "{}"
        if "{}" in made and len(uri_template.variables(text)) == 1:
            found.append(made)
    for item in talk.spoken.named("resources", "uri"):
        uri = item["uri"]
        if uri.startswith("file:"):
            found.append(_base_of(talk.root, uri))
    return list(dict.fromkeys(found))[:2]


PATHS = frozenset({"path", "file", "filename", "filepath", "file_path", "dir", "directory", "name"})
"""Variables of templates that are likely to hold a path."""


def _base_of(root: SafePath, uri: str) -> str:
    """Return the address of the tree that contains a listed file, or else of its folder."""
    top = root.as_uri() + "/"
    if uri.startswith(top):
        return top + "{}"
    for file in root.below():
        below = str(file.relative_to(root))
        if file.is_file() and uri.endswith("/" + below):
            return uri.removesuffix(below) + "{}"
    return uri.rpartition("/")[0] + "/{}"
