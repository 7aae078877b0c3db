"""server/resources: URIs that name nothing, that are none, or that lead out of the tree."""

import base64
import binascii
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_touchstone.suite import Breach, Broken, Conversation, Reply, brief, scenario, uri_template

NEVER = "touchstone-never"
"""A scheme nobody uses."""

NOTHING = f"{NEVER}://9f3e6c1a77d04b58b2f0d1c6a4e85b3d/nothing"
"""A URI that names nothing; the same in each run, so that reports are."""

METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL, RETIRED = -32601, -32602, -32603, -32002
UP = ("../", "..%2F", "%2e%2e/", "%2e%2e%2f", "%252e%252e%252f", "..\\", "..%5C")
"""One step up: as it is, percent-encoded once and twice, with backslashes."""
DEPTH = 12


def _unknown(talk: Conversation) -> Reply:
    return talk.request("resources/read", {"uri": NOTHING})


def _contents(reply: Reply) -> Any:
    result = reply.result
    return None if result is None else result.get("contents")


@scenario("resources-not-found-code-legacy")
def says_that_a_resource_is_not_found(talk: Conversation) -> None:
    """Reading a resource that does not exist gives the error -32002."""
    reply = _unknown(talk)
    if not reply.answered or reply.unreadable:
        talk.unseen("resources-not-found-code-legacy", f"no readable answer: {reply}")
        return
    talk.judge(
        "resources-not-found-code-legacy",
        reply.code == RETIRED,
        expected="error -32002 for a URI of a scheme nobody uses",
        actual=reply,
        at=reply,
    )


@scenario("resources-not-found-code", "resources-not-found-no-empty-contents")
def refuses_a_resource_that_does_not_exist(talk: Conversation) -> None:
    """Reading a resource that does not exist gives the error -32602, never empty contents."""
    code, empty = "resources-not-found-code", "resources-not-found-no-empty-contents"
    expected = "error -32602 for a URI of a scheme nobody uses"
    reply = _unknown(talk)
    asks = (reply.result or {}).get("resultType") == "input_required"
    if not reply.answered or asks:
        talk.unseen(code, f"it got no final answer: {reply}")
        talk.unseen(empty, f"it got no final answer: {reply}")
        return
    talk.judge(empty, _contents(reply) != [], expected=expected, actual="empty contents", at=reply)
    if reply.code in {METHOD_NOT_FOUND, RETIRED} or _contents(reply) == []:
        talk.unseen(code, f"another clause counts {reply}")
        return
    mild = None
    if _contents(reply) or (reply.code == INTERNAL and not _reads(talk)):
        mild = Breach.WARN
    held = reply.code == INVALID_PARAMS
    talk.judge(code, held, expected=expected, actual=reply, at=reply, mild=mild)


def _reads(talk: Conversation) -> bool:
    """Whether some listed resource can be read, so that an internal error is a choice."""
    for item in talk.spoken.named("resources", "uri")[:3]:
        if talk.request("resources/read", {"uri": item["uri"]}).result is not None:
            return True
    return False


@scenario("resources-validate-uris", hurts=True)
def looks_at_the_uri_it_is_given(talk: Conversation) -> None:
    """What is no URI is refused, and an odd one does no harm."""
    none: tuple[Any, ...] = (7, "", "not a uri")
    odd = (f"{NEVER}://{'a' * 8192}", f"{NEVER}://a\0b", f"{NEVER}://a\nb", f"{NEVER}://%zz%")
    for uri in (*none, *odd):
        reply = talk.request("resources/read", {"uri": uri}, required=False)
        asks = (reply.result or {}).get("resultType") == "input_required"
        refused = reply.is_error or (asks and uri not in none)
        mild = None
        if uri == odd[0] and _contents(reply) == []:
            refused = True  # resources-not-found-no-empty-contents counts that
        if reply.answered and (_contents(reply) == [] or uri not in none or asks):
            mild = Breach.WARN
        talk.judge(
            "resources-validate-uris",
            refused,
            expected=f"an error for the uri {brief(uri, 40)}",
            actual=reply,
            at=reply,
            mild=mild,
        )
        if talk.wire.gone:
            return
    if talk.modern or not talk.spoken.flag("resources", "subscribe"):
        return
    for uri in none:
        reply = talk.request("resources/subscribe", {"uri": uri}, required=False)
        talk.judge(
            "resources-validate-uris",
            reply.is_error,
            expected=f"an error for a subscription to {brief(uri, 40)}",
            actual=reply,
            at=reply,
            mild=Breach.WARN if reply.answered else None,
        )
        if reply.result is not None:
            talk.request("resources/unsubscribe", {"uri": uri}, required=False)


@scenario("resources-path-traversal", "resources-path-traversal-legacy")
def stays_in_the_tree_it_serves(talk: Conversation) -> None:
    """No spelling of a URI or a template variable reaches a file beside the tree."""
    clauses = ("resources-path-traversal", "resources-path-traversal-legacy")
    canary = talk.dossier.canary
    if canary is None:
        raise Broken("nothing was planted beside the tree")
    plain = Path(canary.path).as_uri()
    reply = talk.request("resources/read", {"uri": plain}, required=False)
    open_to_all = canary.text in _text(reply)
    talk.judge(
        clauses,
        not open_to_all,
        expected="no file outside the tree, by its plain address",
        actual=f"{brief(plain, 80)} was read",
        at=reply,
        mild=Breach.WARN,
    )
    for uri in dict.fromkeys(_ways_out(talk, Path(canary.path))):
        reply = talk.request("resources/read", {"uri": uri}, required=False)
        talk.judge(
            clauses,
            canary.text not in _text(reply),
            expected="no file outside the tree",
            actual=f"{brief(uri, 120)} was read",
            at=reply,
            mild=Breach.WARN if open_to_all else None,
        )


def _text(reply: Reply) -> str:
    """Give an answer as text, with what it holds in base64 decoded."""
    found = [str(dict(reply.value or {}))]
    contents = _contents(reply)
    for item in contents if isinstance(contents, list) else ():
        blob = item.get("blob") if isinstance(item, dict) else None
        if isinstance(blob, str):
            with contextlib.suppress(binascii.Error, ValueError):
                found.append(base64.b64decode(blob).decode("utf-8", "replace"))
    return "\n".join(found)


def _ways_out(talk: Conversation, canary: Path) -> Iterator[str]:
    """Give URIs that lead to a file beside the tree, if nobody looks where they lead."""
    beside = f"{canary.parent.name}/{canary.name}"
    far = str(canary).lstrip("/")
    paths = [step + beside for step in UP]
    paths += [UP[0] * DEPTH + far, UP[2] * DEPTH + far, str(canary), f"notes/../../{beside}"]
    for base in _bases(talk):
        yield from (base.replace("{}", path, 1) for path in paths)


def _bases(talk: Conversation) -> list[str]:
    """Give the addresses below which files are served, with braces where the path goes."""
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


def _base_of(root: Path, uri: str) -> str:
    """Give the address of the tree that a listed file lies in, or else of its folder."""
    top = root.as_uri() + "/"
    if uri.startswith(top):
        return top + "{}"
    for file in root.rglob("*"):
        below = file.relative_to(root).as_posix()
        if file.is_file() and uri.endswith("/" + below):
            return uri.removesuffix(below) + "{}"
    return uri.rpartition("/")[0] + "/{}"
