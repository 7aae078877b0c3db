"""Read one value of a setting from its text, for the command line, TOML and pytest.

Each reader raises ``ValueError`` with a message that says what to write. The caller adds the place
of the text.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.attack_level import LEVELS as TIERS
from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.catalog.threat import Severity

if TYPE_CHECKING:
    from mcp_touchstone.bindings.declared import Declaration
    from mcp_touchstone.catalog.sdk import Sdk
    from mcp_touchstone.target.promises import PromiseTerms
    from mcp_touchstone.target.server_settings import Arguments

SUITES: Final = ("conformance", "security", "all")
LEVELS: Final = ("MUST", "SHOULD", "MAY", "SCHEMA")
GRADES: Final = (*LEVELS, *map(str, Severity))
ATTACKS: Final = tuple(map(str, TIERS))

SANDBOXES: Final = ("auto", "unshare", "bwrap", "off")

SHARED_REPORTS: Final = ("badge", "junit", "markdown", "sarif")
"""Kinds of reports that can hold several targets; other kinds have one file per target."""

HOUR: Final = 3600
MOST_JOBS: Final = 64
MOST_EXAMPLES: Final = 999_999_999
MOST_REQUESTS: Final = 1_000_000


def one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    """Return a reader that accepts only these words."""

    def read(text: str) -> str:
        if text not in choices:
            hint = "" if text[:1].isdecimal() else nearest(text, choices)
            hint = hint or f"; choose from {', '.join(choices)}"
            raise ValueError(f"{text!r} is not a valid choice{hint}")
        return text

    return read


suite: Final = one_of(SUITES)
revision: Final = one_of(rev.ALL)
level: Final = one_of(LEVELS)
grade: Final = one_of(GRADES)
attacks: Final = one_of(ATTACKS)
sandbox: Final = one_of(SANDBOXES)


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


def header(text: str) -> tuple[str, str]:
    """Read ``NAME=env:VARIABLE``."""
    from mcp_touchstone.transport.http_endpoint import secret_header  # noqa: PLC0415  (as below)

    name, variable = secret_header(text)
    if not re.fullmatch(r"[A-Za-z_]\w*", variable, re.ASCII):
        raise ValueError(f"{variable}: no name of a variable that a shell can read")
    return name, variable


def sdk(text: str) -> "Sdk":
    """Read a known SDK with its version: ``NAME VERSION`` or ``NAME==VERSION``."""
    from mcp_touchstone.catalog.sdk import LAYERS, Sdk  # noqa: PLC0415  (as below)

    words = text.replace("==", " ").split()
    name, version = words if len(words) == 2 else ("", "")  # noqa: PLR2004  (a pair)
    registry = next((one for one, names in LAYERS.items() if name in names), "")
    if not registry or not re.fullmatch(r"v?\d[\w.+-]*", version, re.ASCII):
        known = ", ".join(dict.fromkeys(name for names in LAYERS.values() for name in names))
        raise ValueError(f"{text!r}: write NAME VERSION, such as 'mcp 1.30.0'; known are {known}")
    return Sdk(name, version, registry)


def url(text: str) -> str:
    """Check that a text is the URL of an HTTP server."""
    from mcp_touchstone.transport.http_endpoint import Endpoint  # noqa: PLC0415  (as below)

    return Endpoint(text).url


def fail_on(*words: str) -> str:
    """Check that words of ``--fail-on`` can be combined; return the last."""
    from mcp_touchstone.results.threshold import Floor  # noqa: PLC0415  (as below)

    Floor.read(words)
    return words[-1]


def use(text: str) -> "tuple[str, Arguments]":
    """Read a tool or prompt with its arguments: ``NAME={"json": 1}``, or the name alone."""
    from mcp_touchstone.target.server_settings import with_arguments  # noqa: PLC0415  (as below)

    return with_arguments(text)


def promise(text: str) -> "tuple[str, PromiseTerms]":
    """Read a promise with its terms."""
    from mcp_touchstone.target.promises import read  # noqa: PLC0415  (as below)

    return read(text)


def binding(text: str) -> "Declaration":
    """Read the declaration of a tool's operation on files."""
    # imported only if a binding is given, because this import takes longer than all others
    from mcp_touchstone.bindings.declared import read  # noqa: PLC0415

    return read(text)
