"""An option: one row from which the command line, the keys of a file and pytest are made."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

OPTION: Final = "option"
"""Key of the option in the metadata of a field."""

RUN: Final = ("check", "recon", "init", "golden", "load")
"""Commands that talk to a server."""

START: Final = (*RUN, "bridge")
"""Commands that start a server."""


class OptionType(StrEnum):
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
        return self not in {OptionType.FLAG, OptionType.NUMBER, OptionType.TEXT}

    @property
    def is_named(self) -> bool:
        """Whether the value maps names to values."""
        return self in {OptionType.TABLE, OptionType.PROMISES}


@dataclass(frozen=True, slots=True)
class Risk:
    """Which values of an option lower what protects the user, or run outside of the sandbox.

    They are used only from a file that the user named or trusts.

    Attributes:
        when: the values, in words.
        has: whether a value is one of them; it also gets the folder of the file, and all values of
            the target.
    """

    when: str
    has: Callable[[Any, Path, Mapping[str, Any]], bool]


def leaves(value: str | Path, folder: Path) -> bool:
    """Return whether a path leads out of a folder, through a link too."""
    try:
        found, top = (os.path.realpath(path) for path in (folder / value, folder))
        return os.path.commonpath((found, top)) != top
    except ValueError:  # no path at all, or another drive
        return True


ANY: Final = Risk("each value", lambda value, *_: bool(value))
LEAVES: Final = Risk(
    "a path that leads out of the folder of the file", lambda path, folder, _: leaves(path, folder)
)


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
        risk: which of its values a file must not have unless the user trusts it; None for none.
    """

    kind: OptionType
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
    risk: Risk | None = None

    @property
    def text(self) -> str:
        """The whole help."""
        if self.complete is None or not self.help.endswith(":"):
            return self.help
        return f"{self.help} {', '.join(self.complete())}"

    def words(self, value: Any) -> list[str]:
        """Return a value as words of a command line."""
        if self.kind is OptionType.FLAG:
            return [self.names[0]] if value else []
        return [word for text in self.write(value) for word in (self.names[0], text)]


def option(
    text: str,
    metavar: str = "",
    read: Callable[[str], Any] = str,
    *,
    kind: OptionType = OptionType.TEXT,
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
    kind = kind if metavar else OptionType.FLAG
    row = Option(kind=kind, metavar=metavar, help=text, read=read, **more)
    if kind.is_named:
        return field(default_factory=dict, metadata={OPTION: row})
    default = False if kind is OptionType.FLAG else () if kind.is_repeatable else default
    return field(default=default, metadata={OPTION: row})


def options(cls: Any) -> dict[str, Option]:
    """Return the options of the fields of a dataclass, by field, with their names."""
    rows = {one.name: one.metadata[OPTION] for one in fields(cls) if OPTION in one.metadata}
    return {
        name: replace(row, names=row.names or (f"--{name.replace('_', '-')}",))
        for name, row in rows.items()
    }
