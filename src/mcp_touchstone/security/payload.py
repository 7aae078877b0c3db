"""Payloads: rows of ``security_suite/payloads``, filled with the names of a world. Pure."""

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
"""Stands in a payload for a place where we listen, another one in each call."""

CANARY: Final = "canary-file.txt"
"""What ``{canary}`` stands for: the name of the file with a canary in each folder."""


@dataclass(frozen=True, slots=True)
class Payload:
    """One row.

    Attributes:
        id: ``path.dotdot-01``.
        text: the payload, with names in braces that ``fill`` replaces.
        via: where it goes: ``path``, ``uri``, ``args``, ...
        operation: what it was written for: ``read``, ``list``, ``create``, ...
        expect: ``deny``, ``safe`` or ``same-as-plain``.
        live: readings of the text under which it reaches its aim when nothing guards it.
        target: what it aims at: ``file``, ``dir`` or ``new``.
        fixtures: trees it needs beside those that stand always.
        platforms: systems it speaks of; empty for all.
        note: what it is about.
        tier: level of attacks it belongs to.
        recipe: how its text is generated, where it is too long to stand there.
        is_bytes: whether its characters stand for bytes of their number.
        instead: threats that are judged by a driver of their own, in the way the row describes.
        is_default: whether it speaks by name of what only the default deny list has.
    """

    id: str
    text: str
    via: str
    operation: str
    expect: str
    live: tuple[str, ...] = ()
    target: str = "file"
    fixtures: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    note: str = ""
    tier: Tier = Tier.CORE
    recipe: str = ""
    is_bytes: bool = False
    instead: tuple[str, ...] = ()
    is_default: bool = False

    @property
    def is_denied(self) -> bool:
        """Whether it names what a deny list has."""
        return self.is_default or "{denied" in self.text

    @property
    def is_fetched(self) -> bool:
        """Whether it names a place where we listen."""
        return URL in self.text

    @property
    def group(self) -> str:
        """The class it belongs to: ``path.dotdot``."""
        return self.id.rpartition("-")[0]


_turn: Final = threading.Lock()


def load(folder: Path) -> Mapping[str, tuple[Payload, ...]]:
    """Read all payload files of a folder, once: class -> its payloads."""
    with _turn:  # all attacks begin at once, and each would read them
        return _load(folder)


@functools.cache
def _load(folder: Path) -> Mapping[str, tuple[Payload, ...]]:
    found = {}
    for path in sorted(folder.glob("*.toml")):
        for group in tomllib.loads(path.read_text(encoding="utf-8"))["class"]:
            found[group["id"]] = tuple(_payload(row, group) for row in group["payload"])
    return found


def _payload(row: Mapping[str, Any], group: Mapping[str, Any]) -> Payload:
    return Payload(
        id=row["id"],
        text=_generated(row.get("gen", "")) or row["payload"],
        via=row["via"],
        operation=row["op"],
        expect=row["expect"],
        live=tuple(row.get("live", ())),
        target=row.get("target", "file"),
        fixtures=tuple(row.get("fixture", ())),
        platforms=tuple(row.get("platforms", ())),
        note=row.get("note", ""),
        tier=_tier(row),
        recipe=row.get("gen", ""),
        is_bytes=row.get("enc") == "bytes",
        instead=tuple(group.get("instead", ())),
        is_default=row.get("names") == "default",
    )


def _tier(row: Mapping[str, Any]) -> Tier:
    """Give the level it names; what speaks of foreign systems alone is for those who ask."""
    foreign = row.get("platforms") and not {"linux", "posix"} & {*row["platforms"]}
    return Tier(row.get("tier", Tier.PLATFORM if foreign else Tier.CORE))


def _generated(recipe: str) -> str:
    """Follow ``repeat:unit:count[:tail]``; other recipes are left to who knows them."""
    kind, _, rest = recipe.partition(":")
    if kind != "repeat":
        return ""
    unit, count, *tail = rest.split(":")
    return unit * int(count) + ":".join(tail)


def fill(template: str, names: Mapping[str, str]) -> str:
    """Put known names for braces; every other brace stays as it is."""
    for name, value in {**names, "nonce": secrets.token_hex(4), "i": "1"}.items():
        template = template.replace("{" + name + "}", value)
    return template


def filled(payload: Payload, names: Mapping[str, str], denied: Denied) -> Iterator[str]:
    """Give the texts a payload stands for: one, or one for each denied name; none for some."""
    if payload.is_default and not denied.is_default:
        return
    for text in denied.texts(payload.text, everything=payload.group == "deny.direct"):
        yield fill(text, names)
