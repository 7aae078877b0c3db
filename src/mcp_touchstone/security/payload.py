"""Payloads: rows of ``security_suite/payloads``, with the names of a world filled in."""

import functools
import secrets
import threading
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog.attack_level import Tier
from mcp_touchstone.target.deny_list import Denied

URL: Final = "{url}"
"""Placeholder in a payload for a URL of our listener; each call has its own URL."""

CANARY: Final = "canary-file.txt"
"""Value of ``{canary}``: the name of the file with a canary in each folder."""


@dataclass(frozen=True, slots=True)
class Payload:
    """One row of a payload file.

    Attributes:
        id: such as ``path.dotdot-01``.
        text: the payload; ``fill`` replaces the names in braces.
        via: the place it is sent in: ``path``, ``uri``, ``args``, ...
        operation: the operation it is written for: ``read``, ``list``, ``create``, ...
        expect: ``deny``, ``safe`` or ``same-as-plain``.
        live: readings of the text by which it reaches its target on an unprotected server.
        target: kind of its target: ``file``, ``dir`` or ``new``.
        fixtures: ids of the fixtures it needs besides those that are always built.
        tier: level of attacks it belongs to.
        recipe: the rule that generates a text too long for the file; otherwise empty.
        is_bytes: whether each character encodes the byte with its code.
        instead: threats that a separate driver judges, as the row describes.
        is_default: whether it names entries that only the default deny list has.
    """

    id: str
    text: str
    via: str
    operation: str
    expect: str
    live: tuple[str, ...] = ()
    target: str = "file"
    fixtures: tuple[str, ...] = ()
    note: str = ""
    tier: Tier = Tier.CORE
    recipe: str = ""
    is_bytes: bool = False
    instead: tuple[str, ...] = ()
    is_default: bool = False

    @property
    def is_denied(self) -> bool:
        """Whether it names an entry of a deny list."""
        return self.is_default or "{denied" in self.text

    @property
    def is_fetched(self) -> bool:
        """Whether it contains a URL of our listener."""
        return URL in self.text

    @property
    def group(self) -> str:
        """The class it belongs to, such as ``path.dotdot``."""
        return self.id.rpartition("-")[0]


_turn: Final = threading.Lock()


def load(folder: Path) -> Mapping[str, tuple[Payload, ...]]:
    """Return the payloads of all files in a folder by class; each folder is read once."""
    with _turn:  # all attacks start at once, and each would read the files
        return _load(folder)


@functools.cache
def _load(folder: Path) -> Mapping[str, tuple[Payload, ...]]:
    found = {}
    for path in sorted(folder.glob("*.toml")):
        for group in tomllib.loads(path.read_text(encoding="utf-8"))["class"]:
            found[group["id"]] = tuple(_payload({**group, **row}) for row in group["payload"])
    return found


def _payload(row: Mapping[str, Any]) -> Payload:
    return Payload(
        id=row["id"],
        text=_generated(row.get("gen", "")) or row["payload"],
        via=row["via"],
        operation=row["op"],
        expect=row["expect"],
        live=tuple(row.get("live", ())),
        target=row.get("target", "file"),
        fixtures=tuple(row.get("fixture", ())),
        note=row.get("note", ""),
        tier=_tier(row),
        recipe=row.get("gen", ""),
        is_bytes=row.get("enc") == "bytes",
        instead=tuple(row.get("instead", ())),
        is_default=row.get("names") == "default",
    )


def _tier(row: Mapping[str, Any]) -> Tier:
    """Return the level of a row; the default is PLATFORM for foreign systems, otherwise CORE."""
    foreign = row.get("platforms") and not {"linux", "posix"} & {*row["platforms"]}
    return Tier(row.get("tier", Tier.PLATFORM if foreign else Tier.CORE))


def _generated(recipe: str) -> str:
    """Return the text of ``repeat:unit:count[:tail]``; empty for other recipes."""
    kind, _, rest = recipe.partition(":")
    if kind != "repeat":
        return ""
    unit, count, *tail = rest.split(":")
    return unit * int(count) + ":".join(tail)


def named(template: str, names: Mapping[str, str]) -> str:
    """Replace the known names in braces; other braces are kept."""
    for name, value in names.items():
        template = template.replace("{" + name + "}", value)
    return template


def fill(template: str, names: Mapping[str, str]) -> str:
    """Replace the known names in braces, with a new ``{nonce}``."""
    return named(template, {**names, "nonce": secrets.token_hex(4), "i": "1"})


def filled(payload: Payload, names: Mapping[str, str], denied: Denied) -> Iterator[str]:
    """Yield the texts of a payload: one, or one for each denied name.

    A payload that names entries of the default deny list has no text if another list is used.
    """
    if payload.is_default and not denied.is_default:
        return
    for text in denied.texts(payload.text, everything=payload.group == "deny.direct"):
        yield fill(text, names)
