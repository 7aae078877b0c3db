"""What definitions hide or command: characters nobody sees, sentences for a model. Pure.

Only what no honest text holds is grave. Sentences are told by a few patterns that honest
descriptions do not have; what needs understanding is left to people.
"""

import base64
import binascii
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final

_FLAG: Final = re.compile("\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f")
"""Flags of parts of countries are spelled with tag characters."""

_TAG: Final = re.compile("[\U000e0000-\U000e007f]")
_OVERRIDE: Final = re.compile("[\u202d\u202e]")
_DIRECTION: Final = re.compile("[\u202a\u202b\u202c\u2066-\u2069]")
_OPERATOR: Final = re.compile("[\u2061-\u2064\u206a-\u206f\u180e]")
_SELECTORS: Final = re.compile(
    "[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}|[\\x00-\u02ff][\U000e0100-\U000e01ef]"
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_WIDTHLESS: Final = re.compile("(?<=[\\x00-\u02ff])[\u200b-\u200d\u2060\ufeff](?=[\\x00-\u02ff]|$)")
_BLANKS: Final = re.compile(r"\n[\n\r \t]{40,}\S|[ \t\u00a0]{200,}\S")

_OTHER_SCRIPTS: Final = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")

_LOOKS: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb"
    "\u04cf\u0432\u043a\u043c\u043d\u0442\u03b1\u03bf\u03c1\u03bd\u03c5\u03b9"
    "\u03ba\u03c401|",
    "aeopcyxijsdhlbkmhtaopvuiktoll",
)
"""Characters that look like a letter of ASCII, in lower case."""

_ORDERS: Final = {
    "tells a model to forget what it was told": (
        r"\b(ignore|disregard|forget|override)\b[^.\n]{0,30}\b(previous|prior|earlier|above)\b"
        r"[^.\n]{0,20}\b(instructions?|prompts?|rules|messages)\b"
    ),
    "tells a model to keep something from its user": (
        r"\b(do not|don't|never) (mention|tell|inform|reveal)( this| that| it)?( to)? the user\b"
        r"|\bwithout (telling|informing|notifying) the user\b"
        r"|\bno se lo digas al usuario\b"
        "|\u30e6\u30fc\u30b6\u30fc\u306b\u306f?\u77e5\u3089\u305b\u306a\u3044"
    ),
    "names a file with keys": (
        r"(\b|_)id_(rsa|ed25519|ecdsa)(?![a-z0-9])|[~/]\.aws/credentials\b"
        r"|[~/]\.(ssh|gnupg)/\w"
    ),
    "hides a sentence for a model in a comment": (
        r"<!--[^>]{0,200}\b(assistant|model|agent|ai)\b[^>]{0,400}-->"
        r"|\[//\]: # \([^)]{0,100}\b(assistant|model|agent|ai)\b"
    ),
    "plays a system message": r"\bsystem ?: ?you (are|must|will)\b",
    "asks for the whole conversation": (
        r"\bfull (conversation|chat)( history)?\b[^.\n]{0,60}\b(argument|parameter|field)\b"
    ),
    "tells a model to do something else unseen": r"\bsilently\b[^.\n]{0,60}\binstead\b",
    "sends a model to instructions elsewhere": (
        r"https?://\S+[^.\n]{0,20}\band (follow|obey|execute) (it|them|what)\b"
    ),
    "offers a model a reward": r"\btip if you (comply|help|obey)\b",
    "changes what another tool is used for": (
        r"\bwhen(ever)? the \w+ tool is (used|called|invoked)\b[^.\n]{0,20}\balso\b"
    ),
}
"""What an order does -> how it is told."""

_COMMANDS: Final = tuple(
    (what, re.compile(pattern, re.IGNORECASE)) for what, pattern in _ORDERS.items()
)
_TAGGED: Final = re.compile(r"<(IMPORTANT|SYSTEM|SECRET|HIDDEN|CRITICAL)>.{0,2000}</\1>", re.DOTALL)
_ENCODED: Final = re.compile(r"\b[A-Za-z0-9+/]{24,}={0,2}")
_CLIMB: Final = re.compile(r"(^|/)\.\./|^/etc/(passwd|shadow)")


def texts(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Give every string of a JSON value, names of members too, and where it stands."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for name, below in value.items():
            yield f"{where} (a name)", str(name)
            yield from texts(below, f"{where}.{name}" if where else str(name))
    elif isinstance(value, list):
        for n, below in enumerate(value):
            yield from texts(below, f"{where}[{n}]")


def hidden(text: str) -> str:
    """Say what a text hides from who reads it; empty where it hides nothing."""
    plain = _FLAG.sub("", text)
    rtl = any(unicodedata.bidirectional(char) in {"R", "AL"} for char in plain)
    for what, found in (
        ("characters of the tag block, which nothing shows", _TAG.search(plain)),
        ("an override of the direction it is read in", _OVERRIDE.search(plain)),
        ("marks of direction in text that has but one", not rtl and _DIRECTION.search(plain)),
        ("operators nobody sees", _OPERATOR.search(plain)),
        ("variation selectors that select nothing", _SELECTORS.search(plain)),
        ("control characters", _CONTROL.search(plain)),
        ("characters without width between ordinary ones", _WIDTHLESS.search(plain)),
    ):
        if found:
            return f"{what} (U+{ord(found[0][-1]):04X})"
    return ""


def far_away(text: str) -> bool:
    """Whether text stands behind so much blank space that no window shows it."""
    return _BLANKS.search(text) is not None


def commanded(where: str, text: str) -> str:
    """Say what a text wants of a model that no description wants; empty where it does not."""
    decoded = [text, *_decoded(text)]
    for one in decoded:
        if _TAGGED.search(one):
            return "holds a tagged order"
        for what, pattern in _COMMANDS:
            if pattern.search(one):
                return what
    if where.endswith(".default") and _CLIMB.search(text):
        return "has a default that leads out of the root"
    return ""


def _decoded(text: str) -> Iterator[str]:
    for run in _ENCODED.findall(text):
        try:
            yield base64.b64decode(run + "=" * (-len(run) % 4), validate=True).decode()
        except (binascii.Error, ValueError):
            continue


def mixed(name: str) -> bool:
    """Whether a name mixes letters of ASCII with letters of another script that look like them."""
    scripts = {unicodedata.name(char, "?").partition(" ")[0] for char in name if char.isalpha()}
    return "LATIN" in scripts and any(script in scripts for script in _OTHER_SCRIPTS)


def skeleton(name: str) -> str:
    """Give what a name looks like; names that look alike have one skeleton."""
    return unicodedata.normalize("NFKC", name).casefold().translate(_LOOKS)


def canonical(definition: Mapping[str, Any]) -> str:
    """Give a definition as one text, whatever the order of its members."""
    return json.dumps(definition, sort_keys=True, ensure_ascii=False)
