"""An option: one row from which the command line, the keys of a file and pytest are made. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Final

OPTION: Final = "option"
"""Key of the option in the metadata of a field."""

RUN: Final = ("check", "recon", "init", "golden", "load")
"""Commands that talk to a server."""

START: Final = (*RUN, "bridge")
"""Commands that start a server."""


class Kind(StrEnum):
    """The shape of a value in a file, as messages describe it."""

    FLAG = "true or false"
    NUMBER = "a number"
    TEXT = "a string"
    TEXTS = "a string or an array of strings"
    TABLE = "a table of strings"
    USES = "a table: the arguments for each name, or true to have them generated"
    PROMISES = "a string, an array of strings, or a table: the terms for each name, or true"
    BINDINGS = "a table: tool, path and so on for each operation, or an array of such tables"

    @property
    def is_repeatable(self) -> bool:
        """Whether the option may be given several times."""
        return self not in {Kind.FLAG, Kind.NUMBER, Kind.TEXT}

    @property
    def is_named(self) -> bool:
        """Whether the value maps names to values."""
        return self in {Kind.TABLE, Kind.PROMISES}


def _texts(value: Any) -> Iterable[str]:
    return map(str, value) if isinstance(value, tuple) else [str(value)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option, wherever it can be given.

    Attributes:
        kind: the shape of its value; FLAG takes none.
        help: its help; the values of ``complete`` are appended if it ends with a colon.
        metavar: placeholder of the value in the help.
        commands: the commands that have it.
        group: its heading in the help; empty for the general one.
        names: its names on the command line.
        read: converts one word; raises ``ValueError`` with a message that says what to write.
        write: converts a value to words that ``read`` accepts.
        complete: returns the known values.
        in_files: whether configuration files have it as a key.
        in_pytest: whether pytest has it.
    """

    kind: Kind
    help: str
    metavar: str = ""
    commands: tuple[str, ...] = RUN
    group: str = ""
    names: tuple[str, ...] = ()
    read: Callable[[str], Any] = str
    write: Callable[[Any], Iterable[str]] = _texts
    complete: Callable[[], Iterable[str]] | None = None
    in_files: bool = True
    in_pytest: bool = False

    @property
    def text(self) -> str:
        """The whole help."""
        if self.complete is None or not self.help.endswith(":"):
            return self.help
        return f"{self.help} {', '.join(self.complete())}"

    def words(self, value: Any) -> list[str]:
        """Return a value as words of a command line."""
        if self.kind is Kind.FLAG:
            return [self.names[0]] if value else []
        return [word for text in self.write(value) for word in (self.names[0], text)]


def option(
    text: str,
    metavar: str = "",
    read: Callable[[str], Any] = str,
    *,
    kind: Kind = Kind.TEXT,
    default: Any = None,
    **more: Any,
) -> Any:
    """Declare a field of a dataclass that an option sets.

    Args:
        text: its help.
        metavar: placeholder of its value; empty for a flag, which is False by default.
        read: converts one word.
        kind: the shape of its value; an option that can be repeated has no values by default.
        default: the value of other options if none is given.
        more: further attributes of ``Option``.
    """
    kind = kind if metavar else Kind.FLAG
    row = Option(kind=kind, metavar=metavar, help=text, read=read, **more)
    if kind.is_named:
        return field(default_factory=dict, metadata={OPTION: row})
    default = False if kind is Kind.FLAG else () if kind.is_repeatable else default
    return field(default=default, metadata={OPTION: row})


def options(cls: Any) -> dict[str, Option]:
    """Return the options of the fields of a dataclass, by field, with their names."""
    rows = {one.name: one.metadata[OPTION] for one in fields(cls) if OPTION in one.metadata}
    return {
        name: replace(row, names=row.names or (f"--{name.replace('_', '-')}",))
        for name, row in rows.items()
    }
