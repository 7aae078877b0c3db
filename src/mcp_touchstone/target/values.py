"""Read one value of a setting from its text, for the command line, TOML and pytest.

Each reader raises ``ValueError`` with a message that says what to write. The caller adds the place
of the text. What only some readers need is imported there, so that ``--help`` does not wait for it.
"""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.attack_level import LEVELS as TIERS

if TYPE_CHECKING:
    from mcp_touchstone.bindings.declared import Declaration
    from mcp_touchstone.catalog.sdk import Package
    from mcp_touchstone.target.promises import PromiseTerms

Arguments = Mapping[str, Any] | None
"""Arguments of a tool or prompt; None to have them generated."""

SUITES: Final = ("conformance", "security", "all")
LEVELS: Final = ("MUST", "SHOULD", "MAY", "SCHEMA")
ATTACKS: Final = tuple(map(str, TIERS))

COLORS: Final = ("auto", "always", "never")
SANDBOXES: Final = ("auto", "unshare", "bwrap", "off")

HOUR: Final = 3600
MOST_JOBS: Final = 64
MOST_CLIENTS: Final = 16
MOST_MIB: Final = 1 << 20
MOST_EXAMPLES: Final = 999_999_999
MOST_REQUESTS: Final = 1_000_000


def one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    """Return a reader that accepts only these words."""

    def read(text: str) -> str:
        if text not in choices:
            from mcp_touchstone.catalog.clause import nearest  # noqa: PLC0415  (only if it is read)

            hint = "" if text[:1].isdecimal() else nearest(text, choices)
            hint = hint or f"; choose from {', '.join(choices)}"
            raise ValueError(f"{text!r} is not a valid choice{hint}")
        return text

    return read


suite: Final = one_of(SUITES)
revision: Final = one_of(rev.ALL)
level: Final = one_of(LEVELS)
attacks: Final = one_of(ATTACKS)
sandbox: Final = one_of(SANDBOXES)
issuer: Final = one_of(("mock",))
color: Final = one_of(COLORS)


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return a reader for a whole number from ``low`` to ``high``."""

    def read(text: str) -> int:
        digits = text.isascii() and text.isdecimal() and len(text) < len(str(high)) + 1
        if not digits or not low <= int(text) <= high:
            raise ValueError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return read


def seconds(text: str) -> float:
    """Read a time limit in seconds, more than 0 and at most an hour."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= HOUR:
        raise ValueError(
            f"{text!r} is not a number of seconds; it must be more than 0 and at most {HOUR}"
        )
    return value


def deadline(text: str) -> float:
    """Read a time limit for a whole run in seconds; 0 means no limit."""
    return 0.0 if text in {"0", "0.0"} else seconds(text)


def shard(text: str) -> tuple[int, int]:
    """Read ``I/N``, the I-th of N parts."""
    part, slash, parts = text.partition("/")
    if not slash or not (part.isdecimal() and parts.isdecimal()) or not 0 < int(part) <= int(parts):
        raise ValueError(f"{text!r}: write I/N, such as 3/20 for the third of twenty parts")
    return int(part), int(parts)


def variable(text: str) -> tuple[str, str]:
    """Read ``NAME=VALUE``."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ValueError(f"{text}: write NAME=VALUE")
    return name, value


def step(text: str) -> tuple[str, str]:
    """Read ``METHOD=COMMAND``, or a command for all other methods; some steps have no method."""
    found = re.fullmatch(r"([a-z]+(?:/[A-Za-z]+)+|answer|end|load)=(.*)", text, re.DOTALL)
    method, command = found.groups() if found else ("*", text)
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from error
    if not words:
        raise ValueError(f"{text!r} has no command; write METHOD=COMMAND")
    return method, command


def header(text: str) -> tuple[str, str]:
    """Read ``NAME=env:VARIABLE``."""
    from mcp_touchstone.transport.http_endpoint import check_header  # noqa: PLC0415  (only if it is read)
    from mcp_touchstone.wire.http_headers import TOKEN  # noqa: PLC0415  (as above)

    name, _, source = text.partition("=")
    kind, _, variable = source.partition(":")
    if not TOKEN.fullmatch(name) or kind != "env" or not variable:
        shown = f"{name}=…" if TOKEN.fullmatch(name) else "a header"
        raise ValueError(f"{shown}: write NAME=env:VARIABLE; its value stays in the environment")
    check_header(name)
    if not re.fullmatch(r"[A-Za-z_]\w*", variable, re.ASCII):
        raise ValueError(f"{variable}: no name of a variable that a shell can read")
    return name, variable


def scope(text: str) -> str:
    """Read one scope of OAuth."""
    if not re.fullmatch(r"[\x21\x23-\x5b\x5d-\x7e]+", text):
        raise ValueError(f"{text!r}: write one scope, without blanks and quotes")
    return text


def sdk(text: str) -> "Package":
    """Read a known SDK with its version: ``NAME VERSION`` or ``NAME==VERSION``."""
    from mcp_touchstone.catalog.sdk import LAYERS, Package  # noqa: PLC0415  (only if it is read)

    words = text.replace("==", " ").split()
    name, version = words if len(words) == 2 else ("", "")  # noqa: PLR2004  (a pair)
    registry = next((one for one, names in LAYERS.items() if name in names), "")
    if not registry or not re.fullmatch(r"v?\d[\w.+-]*", version, re.ASCII):
        known = ", ".join(dict.fromkeys(name for names in LAYERS.values() for name in names))
        raise ValueError(f"{text!r}: write NAME VERSION, such as 'mcp 1.30.0'; known are {known}")
    return Package(name, version, registry)


def url(text: str) -> str:
    """Check that a text is the URL of an HTTP server."""
    from mcp_touchstone.transport.http_endpoint import Endpoint  # noqa: PLC0415  (only if it is read)

    return Endpoint(text).url


def use(text: str) -> tuple[str, Arguments]:
    """Read a tool or prompt with its arguments: ``NAME={"json": 1}``, or the name alone."""
    name, equals, rest = text.partition("=")
    if not equals:
        return text, None
    try:
        found = json.loads(rest)
    except ValueError:
        found = None
    if not name or not isinstance(found, dict):
        raise ValueError(f"""{text}: write NAME='{{"argument": "value"}}', or NAME alone""")
    return name, found


def promise(text: str) -> "tuple[str, PromiseTerms]":
    """Read a promise with its terms."""
    from mcp_touchstone.target.promises import read  # noqa: PLC0415  (only if it is read)

    return read(text)


def promises() -> tuple[str, ...]:
    """Return the names of the promises that can be declared."""
    from mcp_touchstone.catalog.threat import DECLARED  # noqa: PLC0415  (only if it is read)

    return DECLARED


def binding(text: str) -> "Declaration":
    """Read the declaration of a tool's operation on files."""
    from mcp_touchstone.bindings.declared import read  # noqa: PLC0415  (only if it is read)

    return read(text)
