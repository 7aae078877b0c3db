"""Rules of one client or directory, as ``<client>.toml`` beside this file has them. Values.

A profile has ``name``, ``summary`` and a list of ``[[rule]]`` tables. Each rule has these keys:

    id        stable, unique in the profile
    measures  what is measured: a key of ``measure.MEASURES``, which says what it uses of the rule
    limit     the greatest number that is accepted
    pattern   regular expression of an accepted text
    words     keywords, hints or members
    prefix    text before the name of a tool; {server} is the name of the server
    server    the greatest number of characters of {server}
    effect    what happens there: a value of ``Effect``
    says      what happens, as a sentence
    cure      what the server can do, so that nothing happens
    source    address of the text or the code that says so
    read      date on which the source was last read
    version   version of the client, or the date of the text, if there is none

A directory has a list of ``[[box]]`` tables, too: what only a person can confirm to it.

    says      what has to be so, as a sentence
    source    address of the text that says so
    read      date on which the source was last read
"""

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Effect(StrEnum):
    """What a client does, the gravest first."""

    REFUSED = "refused"
    HIDDEN = "hidden"
    CUT = "cut"
    LIMITED = "limited"
    RENAMED = "renamed"
    CHANGED = "changed"
    ASKED = "asked"

    @property
    def loses(self) -> bool:
        """Whether something of the server is lost, so that ``--fail-on profile`` counts it."""
        return self in {Effect.REFUSED, Effect.HIDDEN, Effect.CUT, Effect.LIMITED}


EFFECTS: Final = {
    Effect.REFUSED: "an error to the whole request or submission",
    Effect.HIDDEN: "left out, without an error",
    Effect.CUT: "shortened",
    Effect.LIMITED: "over a limit; the source does not say what happens then",
    Effect.RENAMED: "used under another name",
    Effect.CHANGED: "used with another schema",
    Effect.ASKED: "the user is asked before each call",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of a profile; the docstring of this module describes the attributes.

    Attributes:
        client: the profile.
    """

    client: str
    id: str
    measures: str
    effect: Effect
    says: str
    cure: str
    source: str
    read: dt.date
    version: str
    limit: int = 0
    pattern: str = ""
    words: tuple[str, ...] = ()
    prefix: str = ""
    server: int = 0

    @property
    def name(self) -> str:
        """Its name in reports: ``vscode/array-items``."""
        return f"{self.client}/{self.id}"

    @property
    def accepted(self) -> str:
        """What is accepted: its limit, its pattern or its words; empty if the measure says all."""
        limit = f"at most {self.limit}" if self.limit else self.pattern
        prefix = f", with {self.prefix} before it" if self.prefix else ""
        words = ", ".join(self.words)
        return f"{words}{': ' if words and limit else ''}{limit}{prefix}"

    def before(self, server: str) -> str:
        """Return the text before the name of a tool, for a server of this name."""
        return self.prefix.replace("{server}", server[: self.server or None])


@dataclass(frozen=True, slots=True)
class Box:
    """What only a person can confirm; the docstring of this module describes the attributes."""

    says: str
    source: str
    read: dt.date


@dataclass(frozen=True, slots=True)
class Profile:
    """The rules of one client or directory; only directories have boxes."""

    id: str
    name: str
    summary: str
    rules: tuple[Rule, ...]
    boxes: tuple[Box, ...] = ()
