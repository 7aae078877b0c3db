"""A parser whose errors are one line, and how an option of the table becomes an argument."""

import argparse
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn

from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.config.settings import GROUPS, OPTIONS, SOURCES
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.target.option import Option, OptionType

_CHOICE: Final = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")


class Parser(argparse.ArgumentParser):
    """An argparse parser that prints each error on one line, with a suggestion."""

    def __init__(self, **given: Any) -> None:
        given.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **given)

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with status 2."""
        text = safe(_CHOICE.sub(_suggestion, message.removeprefix("argument ")))
        self.exit(2, f"{self.prog}: {text} (see `{self.prog} --help`)\n")


def _suggestion(match: re.Match[str]) -> str:
    known = [name.strip("'") for name in match[2].split(", ")]
    hint = nearest(match[1], known) or f"; choose from {', '.join(known)}"
    return f"{match[1]!r} is not a valid choice{hint}"


def typed(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Wrap a reader so that argparse prints the message of its ``ValueError``."""

    def convert(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def _add(group: "Parser | argparse._ArgumentGroup", name: str, row: Option) -> None:
    """Add an option of the table. One of `Settings` has no default, so other layers can set it."""
    default = argparse.SUPPRESS if name in OPTIONS else None
    given: dict[str, Any] = {"dest": name, "default": default, "help": row.text}
    if row.kind is OptionType.FLAG:
        given["action"] = "store_true"
    else:
        given |= {"type": typed(row.read), "metavar": row.metavar}
        given |= {"action": "append"} if row.kind.is_repeatable else {}
    completed(group.add_argument(*row.names, **given), row.complete)


def own(
    group: "Parser | argparse._ArgumentGroup",
    names: str,
    text: str,
    metavar: str = "",
    read: Callable[[str], Any] = str,
    *,
    complete: Callable[[], Iterable[str]] | None = None,
    **more: Any,
) -> None:
    """Add an option of one command; without ``metavar`` it is a flag."""
    if metavar:
        more |= {"type": typed(read), "metavar": metavar}
    elif "choices" not in more:
        more["action"] = "store_true"
    completed(group.add_argument(*names.split(), help=text, **more), complete)


def completed(action: Any, complete: Callable[[], Iterable[str]] | None) -> None:
    """Let a shell complete the values of an argument."""
    if complete is not None:
        action.completer = lambda **_: list(complete())


def table(command: Parser, name: str, but: str = "") -> None:
    """Add the options of the table that a command has, but one of them."""
    for title in GROUPS:
        rows = {
            field: row
            for field, row in {**SOURCES, **OPTIONS}.items()
            if name in row.commands and row.group == title and field != but
        }
        group = command.add_argument_group(title) if title and rows else command
        for field, row in rows.items():
            _add(group, field, row)
