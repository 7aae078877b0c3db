"""What a server did, beside answering, while its tools were tried. Pure values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

MOST: Final = 20
"""Names of a kind that are kept."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What the process did in which the tools were tried.

    Attributes:
        languages: tool -> the languages of which it ran a line; names of tools of the server.
        tried_code: whether lines of programming languages were tried.
        watched: whether its network was watched: it ran in a sandbox without one.
        hosts: the names of hosts for which it asked a name server.
        astray: the number of connections that found no way out of the sandbox.
        programs: the programs that it started after its opening and that ran at the end.
        kept: the files that it made in its own home, relative to that.
        began: the files that it made in its folder before a tool was called.
        readers: the languages of its programs whose reading of variables was seen.
        reads: the names of the variables that these asked for.
        copied: whether one of them copied all variables; what it looks for in that is not seen.
    """

    languages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tried_code: bool = False
    watched: bool = False
    hosts: tuple[str, ...] = ()
    astray: int = 0
    programs: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    began: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    copied: bool = False
