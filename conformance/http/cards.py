"""http/cards: what a server says of itself in a card, before a client connects."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from mcp_touchstone.suite import (
    BODY_KEPT,
    Breach,
    Change,
    Conversation,
    HttpAnswer,
    brief,
    list_in,
    loads,
    misfit,
    scenario,
)

CARD = "application/mcp-server-card+json"
CATALOG = "application/ai-catalog+json"
OK, NOT_MODIFIED = 200, 304
ORIGIN = "https://touchstone.invalid"
RANGE = re.compile(r".*[\^~<>=|*].*|(\d+\.)*[xX](\.[xX])*", re.DOTALL)
ABOUT_CARDS = ("cards-document", "cards-media-type", "cards-cors", "cards-cache-control")
ABOUT = ("name", "version", "title")
HIDDEN = b"(hidden)"
"""Replaces the secrets of the user in what we keep of a document."""

SAME = ("cards-same-server", "cards-same-versions", "cards-same-transport")

TEXT: dict[str, Any] = {"type": "string"}
FLAG: dict[str, Any] = {"type": "boolean"}
SHORT: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 100}
INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("default", "description", "placeholder", "value"), TEXT),
        "choices": {"type": "array", "items": TEXT},
        "format": {"enum": ["boolean", "filepath", "number", "string"]},
        **dict.fromkeys(("isRequired", "isSecret"), FLAG),
    },
}
VARIABLES = {"type": "object", "additionalProperties": INPUT}
HEADER = {
    **INPUT,
    "required": ["name"],
    "properties": {**INPUT["properties"], "name": TEXT, "variables": VARIABLES},
}
REMOTE = {
    "type": "object",
    "required": ["type", "url"],
    "properties": {
        "type": {"enum": ["sse", "streamable-http"]},
        "url": TEXT,
        "headers": {"type": "array", "items": HEADER},
        "supportedProtocolVersions": {"type": "array", "items": TEXT},
        "variables": VARIABLES,
    },
}
ICON = {
    "type": "object",
    "required": ["src"],
    "properties": {
        **dict.fromkeys(("mimeType", "src"), TEXT),
        "sizes": {"type": "array", "items": TEXT},
        "theme": {"enum": ["dark", "light"]},
    },
}
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["$schema", "description", "name", "version"],
    "properties": {
        "$schema": {
            "const": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
        },
        "name": {"type": "string", "minLength": 3, "maxLength": 200},
        "version": {"type": "string", "maxLength": 255},
        **dict.fromkeys(("description", "title"), SHORT),
        "websiteUrl": TEXT,
        "icons": {"type": "array", "items": ICON},
        "remotes": {"type": "array", "items": REMOTE},
        "repository": {
            "type": "object",
            "required": ["source", "url"],
            "properties": dict.fromkeys(("id", "source", "subfolder", "url"), TEXT),
        },
        "_meta": {"type": "object"},
    },
}
"""The type ServerCard of the proposal, without its patterns."""

NAME = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
ADDRESS = re.compile(r"https?://[^\s]+|\{[a-zA-Z_][a-zA-Z0-9_]*\}[^\s]*")


def fetch(talk: Conversation, path: str, kind: str, **more: Change) -> HttpAnswer:
    """GET a document without a token."""
    names = ("Authorization", "Mcp-Session-Id", "MCP-Protocol-Version")
    return talk.http.get({**dict.fromkeys(names), "Accept": kind, **more}, path=path)


def read(answer: HttpAnswer) -> Any:
    """Return the JSON value of a document; None if it has none."""
    try:
        return loads(answer.exchange.body) if answer.status == OK else None
    except (ValueError, RecursionError):
        return None


def own_url(talk: Conversation) -> tuple[str, str]:
    """Return the host with the port, and the path, of the server."""
    return talk.http.authority, urlsplit(talk.http.path).path


def place(talk: Conversation) -> str:
    """Return the path that is reserved for the card."""
    return own_url(talk)[1].rstrip("/") + "/server-card"


def find(talk: Conversation, *clauses: str) -> tuple[HttpAnswer, Any] | None:
    """Return the card at the reserved place; note that there is none."""
    path = place(talk)
    answer = fetch(talk, path, CARD)
    card = read(answer)
    if isinstance(card, dict) or (answer.status == OK and answer.exchange.kind == CARD):
        if card is not None or len(answer.exchange.body) < BODY_KEPT:
            return answer, card
        talk.judge.unseen(clauses, f"the card has more than {BODY_KEPT >> 10} KiB")
    else:
        talk.judge.unseen(clauses, f"there is no card at {path}: {answer}")
    return None


@scenario(*ABOUT_CARDS, "cards-version-exact", "cards-etag", "cards-not-modified")
def publishes_a_card(talk: Conversation) -> None:
    """A card is a document of its type, which web pages may read and keep."""
    clauses = (*ABOUT_CARDS, "cards-version-exact", "cards-etag", "cards-not-modified")
    found = find(talk, *clauses)
    if found is None:
        return
    answer, card = found

    def judge(clause: str, kept: bool, expected: str, actual: object = answer) -> None:
        talk.judge(clause, kept, expected=expected, actual=actual, at=answer.line)

    judge("cards-media-type", answer.exchange.kind == CARD, CARD)
    wrong = _misfit(card)
    if wrong is None:
        talk.judge.unseen("cards-document", "the card is too large")
    else:
        judge("cards-document", not wrong, "a ServerCard", wrong)
    version = card.get("version") if isinstance(card, dict) else None
    if isinstance(version, str):
        judge("cards-version-exact", not RANGE.fullmatch(version), "one version", brief(version))
    else:
        talk.judge.unseen("cards-version-exact", "there is no version")
    _judge_cors(talk, answer)
    stored = answer.header("Cache-Control")
    judge("cards-cache-control", bool(stored), "Cache-Control", stored or "none")
    tag = answer.header("ETag")
    judge("cards-etag", bool(tag), "an ETag", tag or "none")
    if not tag:
        talk.judge.unseen("cards-not-modified", "the card has no ETag")
        return
    again = fetch(talk, place(talk), CARD, **{"If-None-Match": tag})
    if again.status == OK and again.header("ETag") != tag:
        talk.judge.unseen("cards-not-modified", "the card has changed")
    else:
        expected = f"304 Not Modified for If-None-Match: {tag}"
        talk.judge.expect(again, "cards-not-modified", again.status == NOT_MODIFIED, expected)


def _judge_cors(talk: Conversation, answer: HttpAnswer) -> None:
    allowed = answer.header("Access-Control-Allow-Origin")
    if allowed is None:
        answer = fetch(talk, place(talk), CARD, Origin=ORIGIN)
        allowed = answer.header("Access-Control-Allow-Origin")
    wanted = {
        "Access-Control-Allow-Methods": "GET",
        "Access-Control-Allow-Headers": "If-None-Match",
        "Access-Control-Expose-Headers": "ETag",
    }
    lacks = [
        name for name, word in wanted.items() if not _names(answer.header(name) or "", word.lower())
    ]
    is_open = allowed in {"*", ORIGIN}
    actual = f"without {', '.join(lacks)}" if is_open else f"Access-Control-Allow-Origin {allowed}"
    talk.judge(
        "cards-cors",
        is_open and not lacks,
        expected="Access-Control-Allow-Origin: *, and the headers for methods and an ETag",
        actual=actual,
        at=answer.line,
        mild=Breach.WARN if is_open else None,
        because="a page can read the card without them",
    )


def _names(value: str, word: str) -> bool:
    return bool({"*", word} & {one.strip().lower() for one in value.split(",")})


@scenario(*SAME, "cards-no-credentials")
def agrees_with_its_card(talk: Conversation) -> None:
    """A card says nothing else than the server itself, and no secret."""
    found = find(talk, *SAME, "cards-no-credentials")
    if found is None:
        return
    answer, card = found
    card = card if isinstance(card, dict) else {}
    at = answer.line
    _judge_names(talk, answer, card)
    ours = [one for one in list_in(card, "remotes") if _is_own(talk, one)]
    kinds = [one.get("type") for one in ours]
    _judge_versions(talk, answer, ours)
    if kinds:
        kept = "streamable-http" in kinds
        talk.judge(SAME[2], kept, expected="streamable-http", actual=brief(kinds), at=at)
    else:
        talk.judge.unseen(SAME[2], "the card does not name our URL")
    shown = talk.http.credentials() and HIDDEN in answer.exchange.body
    secrets = [*_secrets(card), *(["the token of the user"] if shown else [])]
    expected = "no credentials"
    talk.judge(
        "cards-no-credentials", not secrets, expected=expected, actual=", ".join(secrets), at=at
    )


def _judge_names(talk: Conversation, answer: HttpAnswer, card: dict[str, Any]) -> None:
    said, own = talk.spoken.server_info, str(card.get("name"))
    both = [name for name in ABOUT if name in card and name in said]
    differs = [
        f"{name} {brief(card[name])}, where the server says {brief(said[name])}"
        for name in both
        if said[name] != card[name] and (name, said[name]) != ("name", own.partition("/")[2])
    ]
    if both:
        expected, actual = "the same as serverInfo", "; ".join(differs)
        talk.judge(SAME[0], not differs, expected=expected, actual=actual, at=answer.line)
    else:
        talk.judge.unseen(SAME[0], "serverInfo has nothing of it")


def _judge_versions(talk: Conversation, answer: HttpAnswer, ours: list[dict[str, Any]]) -> None:
    listed = {
        version
        for one in ours
        for version in list_in(one, "supportedProtocolVersions")
        if isinstance(version, str)
    }
    spoken = {*talk.spoken.versions}
    if not (listed and spoken):
        talk.judge.unseen(SAME[1], "the card or the server names no versions")
        return
    more = sorted(one for one in listed - spoken if one >= min(spoken))
    expected, actual = f"none but {brief(sorted(spoken))}", brief(more)
    talk.judge(SAME[1], not more, expected=expected, actual=actual, at=answer.line)


def _is_own(talk: Conversation, remote: Any) -> bool:
    """Whether an endpoint of a card is the URL that we use."""
    url = remote.get("url") if isinstance(remote, dict) else None
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
    except ValueError:
        return False
    return (parts.netloc.lower(), parts.path) == own_url(talk)


def _secrets(card: dict[str, Any]) -> Iterator[str]:
    """Yield the inputs of a card that are marked as secret and have a value."""
    left: list[tuple[str, Any]] = [("", card)]
    while left:
        where, value = left.pop()
        if isinstance(value, dict):
            if value.get("isSecret") is True and (value.get("value") or value.get("default")):
                yield f"a secret with a value: {brief(where, 60)}"
            left += [(f"{where}.{name}", one) for name, one in value.items()]
        elif isinstance(value, list):
            left += [(where, one) for one in value]


def _misfit(card: Any) -> str | None:
    """Return what a card lacks by the type of the proposal; None if it is too large to say."""
    wrong = misfit(SCHEMA, card)
    if wrong == "" and not NAME.fullmatch(card["name"]):
        return f"name {brief(card['name'])}: no namespace and name with one slash"
    urls = [one["url"] for one in card.get("remotes", ())] if wrong == "" else []
    odd = [url for url in urls if not ADDRESS.fullmatch(url)]
    return f"remotes: url {brief(odd[0])}" if odd else wrong


@scenario("cards-catalog-entry", "cards-catalog-type")
def lists_its_card_in_the_catalog(talk: Conversation) -> None:
    """The catalog of the host names cards as it should."""
    clauses = ("cards-catalog-entry", "cards-catalog-type")
    answer = fetch(talk, "/.well-known/ai-catalog.json", CATALOG)
    entries = [one for one in list_in(read(answer), "entries") if isinstance(one, dict)]
    cards = [one for one in entries if one.get("type") == CARD]
    if not cards:
        talk.judge.unseen(clauses, f"no catalog with a card: {answer}")
        return
    odd = [
        one
        for one in cards
        if not isinstance(one.get("identifier"), str) or len({"url", "data"} & one.keys()) != 1
    ]
    talk.judge(
        "cards-catalog-entry",
        not odd,
        expected="an identifier, and either url or data",
        actual=brief([sorted(one) for one in odd]),
        at=answer.line,
    )
    talk.judge.expect(answer, "cards-catalog-type", answer.exchange.kind == CATALOG, CATALOG)
