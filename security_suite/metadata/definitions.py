"""Definitions that hide text, give orders to a model, look alike or change.

A definition may contain characters that people do not see, or sentences for a model. A finding is
grave only if no honest text contains it. The patterns for sentences match no honest description.
"""

import base64
import binascii
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_touchstone.security.suite import (
    CONTROL,
    LISTS,
    AttackSession,
    Breach,
    Operation,
    Reply,
    Role,
    attack,
    read_pages,
)


@attack(
    "definitions-hidden",
    "definitions-instructions",
    "definitions-lookalikes",
    "definitions-drift",
    fixtures=("base",),
    lasts=True,
)
def means_what_it_says(session: AttackSession) -> None:
    """Definitions hide nothing, give no orders, and stay as they are."""
    definitions = Definitions(session)
    definitions.hides("definitions-hidden")
    definitions.commands("definitions-instructions")
    definitions.resemble("definitions-lookalikes")
    definitions.drift("definitions-drift")


LISTED: Final = {"tools": "tools", "prompts": "prompts", "templates": "resources"}
"""Checked list -> the capability that it belongs to."""

PROBES: Final = 50
"""Requests between two listings: a server may change its definitions only after some."""

SHOWN: Final = 3

EXCERPT: Final = 200
"""Characters of a text that are shown."""

Findings = list[tuple[str, str]]
"""Pairs of the name of a definition and its fault."""

Items = dict[str, dict[str, Any]]
"""``tools/read_file`` -> its definition."""


class Definitions:
    """Checks the definitions of a server, and whether they change."""

    def __init__(self, session: AttackSession) -> None:
        """Open the connection and list everything once."""
        self.session = session
        self._pages: dict[str, Reply] = {}
        self.now: Items = {}
        session.begin()
        self.first = self._listed()

    def _listed(self) -> Items:
        found: Items = {}
        for feature, capability in LISTED.items():
            method, member = LISTS[feature]
            if capability in self.session.spoken.capabilities:
                for page in read_pages(self.session.wire, method):
                    for item in (page.result or {}).get(member) or []:
                        if isinstance(item, dict) and isinstance(item.get("name"), str):
                            name = f"{feature}/{item['name']}"
                            found[name] = item
                            self._pages[name] = page
        return found

    def _said(self) -> Items:
        """Return the definitions, and the instructions and the name of the server."""
        spoken = self.session.spoken
        own = {"instructions": spoken.result.get("instructions"), "serverInfo": spoken.server_info}
        return {"(the server)": own, **self.first}

    # --- words

    def hides(self, threat: str) -> None:
        """Judge whether a text hides something from its reader."""
        grave: Findings = []
        light: Findings = []
        for name, item in self._said().items():
            for where, text in texts(item):
                if what := hidden(text):
                    grave.append((name, f"{name!r} {where}: {what}: {excerpt(text)}"))
                elif far_away(text):
                    last = excerpt(text[-EXCERPT:])
                    light.append((name, f"{name!r} {where}: text after a long blank: {last}"))
        self._descriptions(
            threat, grave, light, "all that a model reads, a person sees", f"{self._many} looked at"
        )

    def commands(self, threat: str) -> None:
        """Judge whether a text makes a model act without the knowledge of its user."""
        found = [
            (name, f"{name!r} {where} {what}: {excerpt(text)}")
            for name, item in self._said().items()
            for where, text in texts(item)
            if (what := commanded(where, text))
        ]
        self._descriptions(threat, found, [], "definitions define", f"{self._many} looked at")

    def resemble(self, threat: str) -> None:
        """Judge whether the name of a tool looks like another one."""
        names = [name.partition("/")[2] for name in self.first if name.startswith("tools/")]
        grave = [(f"tools/{name}", f"{name!a} mixes scripts") for name in names if mixed(name)]
        light: Findings = []
        seen: dict[str, str] = {}
        for name in names:
            other = seen.setdefault(skeleton(name), name)
            if other != name:
                alike = f"{other!a} and {name!a} look alike"
                is_light = name.isascii() and other.isascii()
                (light if is_light else grave).append((f"tools/{name}", alike))
        self._descriptions(
            threat, grave, light, "each name differs visibly from all others", f"{len(names)} names"
        )

    @property
    def _many(self) -> str:
        return f"{len(self.first)} definitions"

    def _descriptions(
        self, threat: str, grave: Findings, light: Findings, expected: str, passed: str
    ) -> None:
        found = grave or light
        more = f"; {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        self.session.judge.conclude(
            threat,
            "; ".join(what for _, what in found[:SHOWN]) + more,
            expected=expected,
            if_passed=passed,
            at=self._pages.get(found[0][0], self.session.wire.opening) if found else None,
            mild=None if grave else Breach.WARN,
            because="honest definitions may hold it too",
        )

    # --- definitions that change

    def drift(self, threat: str) -> None:
        """List again after calls and after a restart, and compare definitions of the same name."""
        if not self.session.judge.covers(threat):
            return
        line = len(self.session.wire.transcript)
        used = self._use()
        later = self._changed(self._listed())
        problems = [f"{name!r} after {used} requests: {what}" for name, what in later]
        announced = any(
            message.role is Role.NOTIFICATION and str(message.method).endswith("/list_changed")
            for entry in self.session.wire.transcript.since(line)
            for message in entry.messages
        )
        if not problems:
            self.session.renew()
            later = self._changed(self._listed())
            problems = [f"{name!r} in another process: {what}" for name, what in later]
        moved = all(self._moves_words(name) for name, _ in later)
        self.session.judge.conclude(
            threat,
            "; ".join(problems[:SHOWN]),
            expected="the definitions stay as the user approved them",
            if_passed=f"{self._many}, the same after {used} requests and in another process",
            at=self._pages[later[0][0]] if later else None,
            mild=Breach.NOTE if announced or moved else None,
            because="the server said that its list has changed"
            if announced
            else "the texts have the same words, in another order",
        )

    def _moves_words(self, name: str) -> bool:
        """Return whether a definition that changed has the same words in another order."""
        before, after = (unordered(one[name]) for one in (self.first, self.now))
        return canonical(before) == canonical(after)

    def _changed(self, now: Items) -> list[tuple[str, str]]:
        self.now = now
        found = []
        for name, before in self.first.items():
            after = now.get(name)
            if after is not None and canonical(after) != canonical(before):
                members = [m for m in {*before, *after} if before.get(m) != after.get(m)]
                first = min(members)
                values = f"{excerpt(before.get(first))} became {excerpt(after.get(first))}"
                found.append((name, f"another {', '.join(sorted(members))}: {values}"))
        return found

    def _use(self) -> int:
        """Make safe calls; return the number of requests."""
        session, wire, root = self.session, self.session.wire, str(self.session.tree.root)
        count = 0
        for binding in session.bindings.of(Operation.READ, Operation.LIST):
            path = CONTROL if binding.operation is Operation.READ else "."
            method, params = binding.call(binding.spelled(path, root), root)
            wire.request(method, params, required=False)
            count += 1
        for tool in session.spoken.harmless[:SHOWN]:
            wire.request("tools/call", {"name": tool, "arguments": {}}, required=False)
            count += 1
        for _ in range(PROBES):
            wire.ping(required=False)
        return count + PROBES


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
_BLANKS: Final = re.compile(r"(?:\n[\r \t]*){20,}\S|[ \t\u00a0]{200,}\S")
"""Twenty empty lines or 200 blanks: more than indentation and paragraphs need."""

_SETS: Final = frozenset({"required", "enum", "type"})
"""Keywords of JSON Schema whose arrays have no order."""

_WORD: Final = re.compile(r"\w+")

_SET: Final = re.compile(r"\{([^{}]*)\}")
"""A set as Python prints it: its order differs between processes."""

_OTHER_SCRIPTS: Final = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")

_LOOKS: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb"
    "\u04cf\u0432\u043a\u043c\u043d\u0442\u03b1\u03bf\u03c1\u03bd\u03c5\u03b9"
    "\u03ba\u03c401|",
    "aeopcyxijsdhlbkmhtaopvuiktoll",
)
"""Characters that look like a letter of ASCII, in lower case."""

_ORDERS: Final = {
    "orders a model to forget its instructions": (
        r"\b(ignore|disregard|forget|override)\b[^.\n]{0,30}\b(previous|prior|earlier|above)\b"
        r"[^.\n]{0,20}\b(instructions?|prompts?|rules|messages)\b"
    ),
    "orders a model to keep something from its user": (
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
    "orders a model to do something else unseen": r"\bsilently\b[^.\n]{0,60}\binstead\b",
    "sends a model to instructions elsewhere": (
        r"https?://\S+[^.\n]{0,20}\band (follow|obey|execute) (it|them|what)\b"
    ),
    "offers a model a reward": r"\btip if you (comply|help|obey)\b",
    "changes what another tool is used for": (
        r"\bwhen(ever)? the \w+ tool is (used|called|invoked)\b[^.\n]{0,20}\balso\b"
    ),
}
"""The effect of an order -> a pattern of its text."""

_COMMANDS: Final = tuple(
    (what, re.compile(pattern, re.IGNORECASE)) for what, pattern in _ORDERS.items()
)
_TAGGED: Final = re.compile(r"<(IMPORTANT|SYSTEM|SECRET|HIDDEN|CRITICAL)>.{0,2000}</\1>", re.DOTALL)
_ENCODED: Final = re.compile(r"\b[A-Za-z0-9+/]{24,}={0,2}")
_CLIMB: Final = re.compile(r"(^|/)\.\./|^/etc/(passwd|shadow)")


def texts(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each string in a JSON value, member names included."""
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
    """Return the kind of hidden characters in a text; empty if there are none."""
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


def excerpt(value: Any) -> str:
    """Return the start of a value in ASCII, with escapes for all other characters."""
    text = value if isinstance(value, str) else json.dumps(value)
    return ascii(text[:EXCERPT])


def far_away(text: str) -> bool:
    """Return whether text follows a blank space that is larger than a window."""
    return _BLANKS.search(text) is not None


def commanded(where: str, text: str) -> str:
    """Return the effect of an order to a model in a text; empty if there is none."""
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
    """Return whether a name mixes ASCII letters with similar letters of another script."""
    scripts = {unicodedata.name(char, "?").partition(" ")[0] for char in name if char.isalpha()}
    return "LATIN" in scripts and any(script in scripts for script in _OTHER_SCRIPTS)


def skeleton(name: str) -> str:
    """Return the skeleton of a name; names that look alike have the same one."""
    return unicodedata.normalize("NFKC", name).casefold().translate(_LOOKS)


def canonical(definition: Mapping[str, Any]) -> str:
    """Return a definition as text that does not depend on the order of its members."""
    return json.dumps(_ordered(definition), sort_keys=True, ensure_ascii=False)


def unordered(value: Any) -> Any:
    """Return a definition with the words of each text sorted; all else stays."""
    if isinstance(value, Mapping):
        return {key: unordered(below) for key, below in value.items()}
    if isinstance(value, list):
        return [unordered(below) for below in value]
    return sorted(_WORD.findall(value)) if isinstance(value, str) else value


def _ordered(value: Any, name: str = "") -> Any:
    """Sort sets, in JSON Schema or in a text such as ``{'b', 'a'}``."""
    if isinstance(value, Mapping):
        return {key: _ordered(below, key) for key, below in value.items()}
    if isinstance(value, list):
        found = [_ordered(below) for below in value]
        return sorted(found, key=json.dumps) if name in _SETS else found
    if isinstance(value, str):
        return _SET.sub(lambda match: ", ".join(sorted(match[1].split(", "))), value)
    return value
