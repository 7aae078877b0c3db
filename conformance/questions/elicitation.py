"""questions/elicitation: the elicitation requests of a server."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from mcp_touchstone.suite import (
    Breach,
    Kind,
    Question,
    Record,
    Role,
    Seen,
    ambient,
    arguments,
    brief,
    each,
    integral,
    is_modern,
    object_in,
    questions,
    shapes,
    value_in,
)

ELICIT = "elicitation/create"
COMPLETED = "notifications/elicitation/complete"
URL_REQUIRED = -32042
SINCE = "2025-06-18"
MODES_SINCE = "2025-11-25"

LOOPBACK = re.compile(r"localhost|.*\.localhost|127(?:\.\d+){3}|::1|0\.0\.0\.0", re.IGNORECASE)
SENSITIVE = re.compile(
    r"\b(?:pass ?words?|pass ?phrases?|secrets?|api ?keys?|access ?tokens?|card ?numbers?"
    r"|cvv|pin)\b"
)
"""Names that no form field may have, in lower case with separate words."""

TELLING = frozenset({"token", "access_token", "password", "secret", "api_key", "apikey"})
"""Names of query parameters that indicate a secret."""

LINK = re.compile(r"https?://", re.IGNORECASE)


def _elicitations(record: Record) -> Iterator[Question]:
    return (asked for asked in questions(record.transcript) if asked.method == ELICIT)


def _has_link(asked: Question) -> bool:
    return asked.member.get("mode") == "url"


def _forms(record: Record) -> Iterator[Question]:
    for asked in _elicitations(record):
        if record.revision < MODES_SINCE or not _has_link(asked):
            yield asked


def _required(record: Record) -> Iterator[tuple[int, list[Any] | None]]:
    """Yield the errors that require a URL elicitation: the line, and their list."""
    for entry, message in record.answers(Kind.ERROR):
        error = message.value["error"]
        if isinstance(error, dict) and message.code == URL_REQUIRED:
            found = value_in(error, "data", "elicitations")
            yield entry.n, found if isinstance(found, list) else None


def _links(record: Record) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the URL elicitations, as requests or in errors: the line, the params."""
    asked = [(one.entry.n, one.member) for one in _elicitations(record) if _has_link(one)]
    listed = [] if is_modern(record.revision) else list(_required(record))
    asked += [(n, one) for n, found in listed for one in found or () if isinstance(one, dict)]
    yield from sorted(asked, key=lambda link: link[0])


# --- types


@ambient(
    "elicitation-form-params-shape",
    "elicitation-form-schema-primitive",
    "elicitation-form-schema-primitive-2025-06-18",
    "elicitation-string-format",
    "elicitation-url-params",
    "elicitation-url-params-2025-11-25",
)
def writes_elicitations_in_the_right_types(record: Record) -> Iterator[Seen]:
    """An elicitation is a message with a flat form, or with a URL."""
    yield from shapes(record)


@ambient("elicitation-default-types")
def gives_defaults_that_fit(record: Record) -> Iterator[Seen]:
    """The default of a form field is a value that the field allows."""
    clause = "elicitation-default-types"
    yield from shapes(record, clause)
    for message, place, value in each(record, "PrimitiveSchema"):
        if "default" in value and record.revision >= MODES_SINCE:
            odd = _odd_default(value)
            expected = "a default that the property allows"
            actual = f"{place}: {brief(value['default'])} is {odd}"
            yield Seen(clause, not odd, message.entry.n, expected, actual, mild=Breach.WARN)


def _odd_default(property_: dict[str, Any]) -> str:
    """Describe the fault of a default of the right type; empty if there is none."""
    default = property_["default"]
    options = _options(property_) or _options(property_.get("items"))
    chosen = default if isinstance(default, list) else [default]
    if options and any(isinstance(one, str) and one not in options for one in chosen):
        return "none of the options"
    if isinstance(default, bool) or not isinstance(default, int | float | str):
        return ""
    text = isinstance(default, str)
    if property_.get("type") == "integer" and not text and not integral(default):
        return "no whole number"
    size = len(default) if isinstance(default, str) else default
    least, most = ("minLength", "maxLength") if text else ("minimum", "maximum")
    bounds = [property_.get(least), property_.get(most)]
    low, high = (b if isinstance(b, int | float) else size for b in bounds)
    return "" if low <= size <= high else "out of bounds"


def _options(schema: Any) -> list[Any]:
    if not isinstance(schema, dict):
        return []
    if isinstance(schema.get("enum"), list):
        return list(schema["enum"])
    listed = [schema.get(word) for word in ("oneOf", "anyOf")]
    branches = [one for found in listed if isinstance(found, list) for one in found]
    return [one["const"] for one in branches if isinstance(one, dict) and "const" in one]


# --- capabilities


@ambient("elicitation-not-in-revision")
def elicits_only_where_elicitation_exists(record: Record) -> Iterator[Seen]:
    """The server sends no elicitation in a revision without it."""
    for entry, message in record.messages(Role.REQUEST):
        passed = message.method != ELICIT
        expected = f"only requests of {record.revision}"
        actual = f"{ELICIT}, which exists since {SINCE}"
        yield Seen("elicitation-not-in-revision", passed, entry.n, expected, actual)


@ambient("elicitation-mode-supported")
def elicits_only_in_declared_modes(record: Record) -> Iterator[Seen]:
    """Elicitations use a declared mode; a client without declared modes has forms only."""
    clause = "elicitation-mode-supported"
    for asked in _elicitations(record):
        declared = record.declared(asked.answers or asked.entry.n).get("elicitation")
        if isinstance(declared, dict):
            mode = "url" if _has_link(asked) else "form"
            passed = mode in declared or (mode == "form" and not declared)
            expected = f"one of the declared modes {brief(declared)}"
            yield Seen(clause, passed, asked.entry.n, expected, f"an elicitation by {mode}")
    for line, _ in () if is_modern(record.revision) else _required(record):
        declared = record.declared(line).get("elicitation")
        passed = isinstance(declared, dict) and "url" in declared
        expected, actual = "no URL for a client without URL mode", f"error {URL_REQUIRED}"
        yield Seen(clause, passed, line, expected, actual, mild=Breach.NOTE)


# --- content


@ambient("elicitation-no-sensitive-information-2025-06-18", "elicitation-form-no-credentials")
def elicits_no_secrets(record: Record) -> Iterator[Seen]:
    """No field of a form has the name of a secret."""
    for asked in _forms(record):
        found = [name for name in _field_names(asked) if SENSITIVE.search(_words(name))]
        actual = f"a field named {', '.join(map(brief, found))}"
        for clause in (
            "elicitation-no-sensitive-information-2025-06-18",
            "elicitation-form-no-credentials",
        ):
            yield Seen(clause, not found, asked.entry.n, "no secrets in a form", actual)


def _fields(asked: Question) -> dict[str, Any]:
    return object_in(asked.member, "requestedSchema", "properties")


def _field_names(asked: Question) -> Iterator[str]:
    for name, field in _fields(asked).items():
        yield name
        if isinstance(title := value_in(field, "title"), str):
            yield title


def _words(name: str) -> str:
    return " ".join(arguments.words(name))


@ambient("elicitation-form-no-clickable-urls")
def writes_no_urls_into_forms(record: Record) -> Iterator[Seen]:
    """The texts of a form contain no URL."""
    for asked in _forms(record):
        found = [text for text in _texts(asked) if LINK.search(text)]
        clause, expected = "elicitation-form-no-clickable-urls", "texts without a URL"
        yield Seen(clause, not found, asked.entry.n, expected, brief(found[0] if found else ""))


def _texts(asked: Question) -> Iterator[str]:
    schema = asked.member.get("requestedSchema")
    for part in (schema, *_fields(asked).values()):
        for name in ("title", "description") if isinstance(part, dict) else ():
            if isinstance(part.get(name), str):
                yield part[name]
    if isinstance(asked.member.get("message"), str):
        yield asked.member["message"]


# --- URLs


@ambient("elicitation-url-valid")
def gives_valid_elicitation_urls(record: Record) -> Iterator[Seen]:
    """The url of an elicitation is valid."""
    for asked in _elicitations(record):
        url = asked.member.get("url")
        if _has_link(asked) and isinstance(url, str):
            parts = _split(url)
            web = parts is not None and parts.scheme in {"http", "https"}
            passed = parts is not None and bool(parts.scheme and (parts.hostname or not web))
            expected = "an absolute URL"
            yield Seen("elicitation-url-valid", passed, asked.entry.n, expected, brief(url))


def _split(url: str) -> SplitResult | None:
    """Split a URL; None if that fails."""
    if re.search(r"[\s<>\"\\^`{|}]", url):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


@ambient("elicitation-url-https", "elicitation-url-no-sensitive-data")
def gives_safe_elicitation_urls(record: Record) -> Iterator[Seen]:
    """A URL uses https and contains no secrets."""
    for line, link in _links(record):
        url = link.get("url")
        parts = _split(url) if isinstance(url, str) else None
        if parts is None or not isinstance(url, str):
            continue
        plain = parts.scheme == "http" and not LOOPBACK.fullmatch(parts.hostname or "")
        yield Seen("elicitation-url-https", not plain, line, "an https URL", brief(url))
        clause, expected = "elicitation-url-no-sensitive-data", "a URL without secrets"
        canary = record.profile.canary
        secret = canary is not None and canary.secret in url
        part = "the credential in its environment" if secret else "a user and a password"
        passed = not secret and parts.password is None
        yield Seen(clause, passed, line, expected, f"{part}, in {brief(url)}")
        named = {name.lower() for name, _ in parse_qsl(parts.query)} & TELLING
        actual = f"{', '.join(sorted(named))} in {brief(url)}"
        yield Seen(clause, not named, line, expected, actual, mild=Breach.NOTE)


@ambient("elicitation-id-unique")
def gives_each_url_its_own_elicitation_id(record: Record) -> Iterator[Seen]:
    """Each URL has its own elicitationId."""
    known: dict[str, Any] = {}
    for line, link in _links(record):
        own, url = link.get("elicitationId"), link.get("url")
        if isinstance(own, str) and isinstance(url, str):
            passed = known.setdefault(own, url) == url
            expected = "a different elicitationId for each URL"
            yield Seen("elicitation-id-unique", passed, line, expected, f"{brief(own)} again")


@ambient(
    "elicitation-url-required-error-shape", "elicitation-url-required-error-only-when-required"
)
def lists_required_url_elicitations(record: Record) -> Iterator[Seen]:
    """An error -32042 lists at least one URL elicitation to complete first."""
    yield from shapes(record, "elicitation-url-required-error-shape")
    for line, found in _required(record):
        clause, expected = (
            "elicitation-url-required-error-only-when-required",
            "at least one elicitation",
        )
        yield Seen(clause, found != [], line, expected, "an empty list of elicitations")


# --- completion


@ambient("elicitation-complete-known-id")
def completes_only_known_elicitations(record: Record) -> Iterator[Seen]:
    """A completion notification names an elicitation of this connection."""
    clause = "elicitation-complete-known-id"
    yield from shapes(record, clause)
    links = list(_links(record))
    for entry, message in record.messages(Role.NOTIFICATION):
        own = value_in(message.value, "params", "elicitationId")
        if message.method == COMPLETED and isinstance(own, str):
            elicited = [(record.transcript[line], link) for line, link in links]
            passed = any(
                link.get("elicitationId") == own and not asked.follows(entry)
                for asked, link in elicited
            )
            expected = "the elicitationId of an earlier elicitation"
            known = any(entry.follows(asked) for asked, _ in elicited)
            mild = None if known else Breach.WARN
            yield Seen(clause, passed, entry.n, expected, brief(own), mild=mild)


@ambient("elicitation-complete-removed")
def sends_no_removed_completion_notification(record: Record) -> Iterator[Seen]:
    """A stateless server sends no completion notification."""
    for entry, message in record.messages(Role.NOTIFICATION):
        passed = message.method != COMPLETED
        expected = "only notifications of this revision"
        yield Seen("elicitation-complete-removed", passed, entry.n, expected, COMPLETED)
