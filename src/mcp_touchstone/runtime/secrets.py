"""Find what looks like a secret, so that no recording and no report contains it. Pure.

``secrets.toml`` beside this module has the names and the forms, and their sources.
"""

import base64
import binascii
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote_plus

LONG: Final = 8
"""Characters of a value that is hidden; a shorter one could be a common word."""

MIXED: Final = 6
"""The same for a value of letters and other characters."""

SEARCHED: Final = 1 << 20
"""Characters of a text in which secrets are looked for; a longer one may contain known ones."""

_DATA: Final[dict[str, dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)
_NAMES, _VALUES, _ARGUMENTS, _HEADERS = _DATA.values()

_PARTS: Final = re.compile("|".join(chain(*_NAMES["parts"].values())))
_WORDS: Final = frozenset(chain(*_NAMES["words"].values()))
_WEAK: Final = frozenset(_NAMES["weak"])
_BARE: Final = frozenset(_NAMES["bare"])
_ABOUT: Final = frozenset(_NAMES["about"])
_STILL: Final = frozenset(_NAMES["still"])
_NEVER: Final = frozenset(name.lower() for name in _NAMES["never"])
_WORD: Final = re.compile(r"[A-ZÀ-Þ]+(?![a-zß-ÿ])|[A-ZÀ-Þ]?[a-zß-ÿ]+")

_HARMLESS: Final = [re.compile(form) for form in _VALUES["harmless"]]
_BEGINS: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
"""Before a token: no letter, unless it is the escape of a line feed."""
_TAIL: Final = r"([\w.+/=~-]{12,})"
_LETTERS: Final = re.compile(r"[A-Za-z]{16}")
_BEGINNINGS: Final[Mapping[str, str]] = {
    text: _BEGINS + re.escape(text) + _TAIL for text in chain(*_VALUES["prefixes"].values())
}
_FORMS: Final[Mapping[str, str]] = {form: text for text, form in _VALUES["forms"]}
"""Form -> the text without which it is not looked for."""

_RANDOM: Final = re.compile(r"[\w+=.~-]{24,}")
_WORDLIKE: Final = re.compile(r"[\w+=~-]{16,}")
_PLAIN: Final = re.compile(r"[A-Za-z]{1,19}(?:[-_. ,][A-Za-z]{1,19})*")
_PAIR: Final = re.compile(
    r"(?<![\w.-])([\w.-]{2,64})\s{0,8}[=:]\s{0,8}"
    r"(\"[^\"]{0,4096}\"|'[^']{0,4096}'|[^\s;,&\"'\\(){}<>\[\]]+)"
)
_IN_URL: Final = re.compile(r"[?&]([\w.-]{2,64})=([^\s&#\"'\\]+)")
_MEMBER: Final = re.compile(
    r"(?<!\\)(\\{0,7})\"([\w.-]{2,64})\1\"\s{0,8}:\s{0,8}\1\"((?:[^\"\\]|\\{1,8}[^\"\\])*)\1\""
)
_HEADER: Final = re.compile(r"\s{0,8}([\w-]{2,64})\s{0,8}:\s{0,8}(\S.*)", re.DOTALL)
_PARAMETER: Final = re.compile(
    r'(?<![\w-])([\w-]{1,64})\s{0,8}=\s{0,8}(?:"([^"]{0,4096})"|([^\s,"]+))'
)

_CREDENTIALS: Final = frozenset({"authorization", "proxy-authorization"})
_DIGEST: Final = frozenset({"username", "response", "cnonce", "signature", "mac", "credential"})
"""Parameters of RFC 7616 and others that prove who the client is."""


# --- names and values


def names_secret(name: str, value: str = "", *, member: bool = False) -> bool:
    """Return whether the name of a variable, an option, a header or a member is that of a secret.

    Args:
        value: what it names; some names are those of secrets unless it is plain words.
        member: whether it is one of JSON, where some names alone say nothing.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or name.lower() in _NEVER:
        return False
    if words[-1] in _ABOUT:
        return len(words) > 1 and words[-2] in _STILL
    if member and len(words) == 1 and words[0] in _BARE:
        return False
    if _PARTS.search("".join(words)) or not _WORDS.isdisjoint(words):
        return True
    return not _WEAK.isdisjoint(words) and not _PLAIN.fullmatch(value)


def hideable(value: str) -> bool:
    """Return whether a value could be a secret, and is long enough to be replaced everywhere."""
    mixed = len(value) >= MIXED and re.search(r"[A-Za-z]", value) and not value.isalpha()
    if not mixed and len(value) < LONG:
        return False
    harmless = any(form.fullmatch(value) for form in _HARMLESS)
    return not harmless or any(map(_mixes, _WORDLIKE.findall(value)))


def _mixes(text: str) -> bool:
    """Return whether a text mixes letters of both cases and digits, as tokens do."""
    return all(re.search(form, text) for form in ("[a-z]", "[A-Z]", "[0-9]"))


def is_secret(name: str, value: str, *, member: bool = False) -> bool:
    """Return whether a value with a name is a secret."""
    return hideable(value) and names_secret(name, value, member=member)


def secrets(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the values to hide, each with the name of its variable.

    A value is a secret if the name of its variable says so, if it has the form of a token, or if it
    contains a secret: a URL with a password, a list with one. What it contains is listed too.
    """
    for name, value in environment.items():
        found = dict.fromkeys(_secrets_of(name, value))
        yield from ((name, one) for one in found if hideable(one))


def _secrets_of(name: str, value: str) -> Iterator[str]:
    inside = list(dict.fromkeys([*in_text(value), *_in_list(value), *_in_list(value, _IN_URL)]))
    named = is_secret(name, value)
    random = _RANDOM.fullmatch(value) and _mixes(value)
    if named or random or (inside and re.fullmatch(r"\w+:\S+", value)):
        yield value
    if named:
        yield from in_credentials(value)
        user, _, password = value.rpartition(":")
        if re.fullmatch(r"[\w.@-]+", user) and not password.startswith("/"):
            yield password
    yield from inside
    if "PRIVATE KEY" in value:
        yield from (line for line in value.splitlines() if len(line) > LONG and "-----" not in line)


def _in_list(value: str, form: re.Pattern[str] = _PAIR, *, plain: bool = True) -> Iterator[str]:
    for name, quoted in form.findall(value):
        found = quoted.strip("\"'")
        if is_secret(name, found) and (plain or not _PLAIN.fullmatch(found)):
            yield found


# --- texts


def in_text(text: str) -> Iterator[str]:
    """Yield the secrets in a text that have the form of one."""
    for beginning, form in _BEGINNINGS.items():
        if beginning in text:
            for found in _compiled(form).finditer(text):
                if re.search("[0-9]", found[1]) or _LETTERS.match(found[1]):
                    yield found[0]
    for form, hint in _FORMS.items():
        if hint in text:
            yield from (found[found.lastindex or 0] for found in _compiled(form).finditer(text))


@cache
def _compiled(form: str) -> re.Pattern[str]:
    """Compile a form at its first use: most runs need few of them."""
    return re.compile(form, re.DOTALL)


def in_message(text: str) -> Iterator[str]:
    """Yield the secrets in a message or a line of a log: by their forms, and by their names."""
    if len(text) > SEARCHED:
        return
    yield from in_text(text)
    for _, name, value in _MEMBER.findall(text):
        if is_secret(name, value, member=True):
            yield value
    yield from _in_list(text, _IN_URL)
    if not text.lstrip().startswith(("{", "[")):
        yield from _in_list(text, plain=False)


def in_words(text: str) -> Iterator[str]:
    """Yield the words of a path, a reason or a header that are random, and other forms."""
    yield from in_text(text)
    yield from filter(_mixes, _WORDLIKE.findall(text))


# --- arguments


def in_arguments(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the secrets in the arguments of a command, each with a name."""
    option = ""
    for word in words:
        name, sign, value = word.partition("=")
        if sign and re.fullmatch(r"[-/]*[\w.-]+", name):
            found = _secrets_of(name.lstrip("-/"), value)
        else:
            found = _in_argument("" if word.startswith("-") else option, word)
        yield from ((option or name, one) for one in dict.fromkeys(found) if hideable(one))
        option = word if word.startswith("-") and not sign else ""


def arguments(words: Iterable[str]) -> dict[str, str]:
    """Return the secrets in the arguments of a command as variables, to hide them as those."""
    found = dict.fromkeys(one for _, one in in_arguments(words))
    return {f"SECRET_ARGUMENT_{number}": one for number, one in enumerate(found, 1)}


def _in_argument(option: str, word: str) -> Iterator[str]:
    header = _HEADER.fullmatch(word)
    if option in _ARGUMENTS["users"] and hideable(word.partition(":")[2]):
        yield word.partition(":")[2]
    if option in _ARGUMENTS["short"] and hideable(word) and not _PLAIN.fullmatch(word):
        yield word
    yield from _secrets_of(option.lstrip("-"), word)
    if header is not None:
        yield from in_header(header[1], header[2])
    if " " in word:
        try:
            parts = shlex.split(word)
        except ValueError:
            return
        yield from (one for _, one in in_arguments(parts) if one != word)


# --- HTTP


def is_recorded(name: str) -> bool:
    """Return whether the value of a header is recorded, without the secrets in it."""
    low = name.lower()
    return low in _HEADERS["recorded"] or low.startswith(_HEADERS["repeated"])


def is_whole(name: str) -> bool:
    """Return whether conversations are told apart by a header, or rules compare it."""
    return name.lower() in _HEADERS["whole"]


def in_header(name: str, value: str) -> Iterator[str]:
    """Yield the secrets in a header of a request or a response."""
    low = name.lower()
    if is_whole(name):
        return
    if low in _CREDENTIALS:
        yield from in_credentials(value)
    elif low in {"cookie", "set-cookie"}:
        pairs = [part.partition("=")[2].strip().strip('"') for part in value.split(";")]
        yield from pairs if low == "cookie" else pairs[:1]
    else:
        repeated = low.startswith(_HEADERS["repeated"])
        yield from _secrets_of(low.removeprefix(_HEADERS["repeated"]), value)
        yield from in_query(value.partition("?")[2])
        yield from in_words(value) if is_recorded(name) and not repeated else ()


def in_credentials(value: str) -> Iterator[str]:
    """Yield the secrets in the value of ``Authorization`` (RFC 9110 section 11.6.2)."""
    scheme, _, rest = value.strip().partition(" ")
    rest = rest.strip()
    yield rest or scheme
    if scheme.lower() == "basic":
        try:
            plain = base64.b64decode(rest + "=" * (-len(rest) % 4)).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            return
        user, _, password = plain.partition(":")
        yield from (plain, user, password)
    for name, quoted, bare in _PARAMETER.findall(rest):
        if name.lower() in _DIGEST or names_secret(name):
            yield quoted or bare


def in_query(query: str) -> Iterator[str]:
    """Yield the secrets in the query of a URL, as they are there and decoded."""
    for part in re.split("[&;]", query):
        name, sign, value = part.partition("=")
        name, plain = unquote_plus(name), unquote_plus(value)
        found = list(_secrets_of(name.rpartition("?")[2], plain) if sign else in_words(name))
        yield from found
        if plain in found:
            yield value
