"""The words in braces that we replace in a command, and those that only look like one. Pure."""

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

KNOWN: Final = ("{root}", "{python}", "{port}", "{issuer}", "{jwks}", "{audience}", "{upstream}")

_NAMED: Final = re.compile(r"\{[A-Za-z_]+\}")
_ALONE: Final = re.compile(r"(-{1,2}[\w-]+=)?([^\s{}]*/)?\{[A-Za-z_]+\}(/[^\s{}]*)?")
"""A word, an option or a path: no other language uses braces like this."""

_LIKE: Final = 0.75
_MISSPELT: Final = 0.85


@dataclass(frozen=True, slots=True)
class Doubt:
    """A word in braces that we do not replace.

    Attributes:
        name: the word, with its braces.
        meant: the known word that is most like it; empty for none.
        refused: whether it can only be a misspelt one.
    """

    name: str
    meant: str
    refused: bool

    def __str__(self) -> str:
        """Return it as a sentence without its end."""
        if self.meant:
            return f"there is no {self.name}; did you mean {self.meant}?"
        return f"{self.name} is none of {', '.join(KNOWN[:3])}: the server gets it as it is"


def doubts(words: Iterable[str]) -> Iterator[Doubt]:
    """Yield the unknown words in braces, each once."""
    seen = set(KNOWN)
    for word in words:
        alone = _ALONE.fullmatch(word) is not None
        for name in _NAMED.findall(word):
            if name in seen:
                continue
            seen.add(name)
            likeness = {k: difflib.SequenceMatcher(a=k, b=name.lower()).ratio() for k in KNOWN}
            best = max(KNOWN, key=likeness.__getitem__)
            meant = best if likeness[best] >= _LIKE else ""
            if alone or meant:
                yield Doubt(name, meant, alone and likeness[best] >= _MISSPELT)
