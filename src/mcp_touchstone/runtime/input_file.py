"""Files that somebody else may have written: reports, recordings, configurations. Judges nothing.

A file is opened like a file of a server: a regular one only, and never waited for. A path that the
user wrote may be a link to a file; a file that we find ourselves is no link. Bytes, values, depth
and numbers have limits: reading takes at most 1 GiB of memory, and what reads the values need not
expect infinite numbers or the end of the stack.
"""

import json
import math
import re
import stat
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.runtime.open_folder import KINDS, LARGEST, Folder, open_folder
from mcp_touchstone.wire.framing import Fault, Line, LineSplitter, excess

DEEPEST: Final = 192
"""Greatest depth of nested arrays and objects; a message of a server that is read has less."""

MOST_VALUES: Final = 2_000_000
"""Greatest number of values in a JSON text."""

GREATEST: Final = 1e300
"""Greatest absolute value of a number; sums and products with others of the program are finite."""

LARGEST_TOML: Final = 1 << 20
"""Greatest size of a TOML file, in bytes; reading it takes about a second."""

_DIGITS: Final = 300
_PART: Final = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*"""
_LONG_KEY: Final = re.compile(rf"(?<![\w-])(?:{_PART}){{64}}")
"""A dotted key; the time that tomllib takes grows with the square of its length."""
_NAME: Final = re.compile(r"[A-Za-z_$][\w$-]{0,60}")


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that somebody else may have written.

    Each method raises ``InputError`` if the file cannot be read, or has another format.

    Attributes:
        path: its path.
        cure: what to do if it cannot be used.
        missing: what to do if it does not exist; empty for the same.
        named: whether the user wrote this path, so that it may be a link to a file.
        most: its greatest size, in bytes.
    """

    path: Path
    cure: str = "name another"
    missing: str = ""
    named: bool = True
    most: int = LARGEST

    def data(self) -> bytes:
        """Return its bytes."""
        folder, name = self._opened()
        try:
            return folder.read(name, self.most)
        except OSError as error:
            self._fail(error.strerror)

    def beginning(self, size: int) -> bytes:
        """Return its first bytes, at most ``size``; it may be larger than ``most``."""
        folder, name = replace(self, most=sys.maxsize)._opened()  # noqa: SLF001  (the same class)
        try:
            return folder.read(name, size, whole=False)
        except OSError as error:
            self._fail(error.strerror)

    def text(self) -> str:
        """Return its text: UTF-8, with or without a byte order mark; lines end with a line feed."""
        return _decoded(self.data(), str(self.path)).replace("\r\n", "\n")

    def json(self) -> Any:
        """Return the value of a JSON file."""
        return parsed(self.text(), str(self.path), self.cure)

    def toml(self) -> dict[str, Any]:
        """Return the table of a TOML file of at most ``LARGEST_TOML`` bytes."""
        small = replace(self, most=min(self.most, LARGEST_TOML))
        return parsed_toml(small.text(), str(self.path), self.cure)

    def rows(self, *, cut: bool = False) -> Iterator[tuple[str, Any]]:
        """Yield place and value of each line of a JSON Lines file, without blank lines.

        One line at a time is in memory; it has at most ``LARGEST`` bytes.

        Args:
            cut: whether a last line without a line feed is left out, as its writer was ended.
        """
        for number, line in enumerate(self._lines(cut=cut), 1):
            where = f"{self.path}:{number}"
            if line.cut:
                raise InputError(f"{where}: it has more than {LARGEST:,} bytes; {self.cure}")
            text = _decoded(line.raw, where)
            if text.strip():
                yield where, parsed(text, where, self.cure, is_line=True)

    def _lines(self, *, cut: bool) -> Iterator[Line]:
        folder, name = self._opened()
        splitter = LineSplitter(LARGEST)
        try:
            for piece in folder.pieces(name, 0):
                yield from splitter.feed(piece)
                if splitter.overlong:  # the rest of a sparse file could take hours
                    break
        except OSError as error:
            self._fail(error.strerror)
        rest = splitter.close()
        if rest is not None and not (cut and not rest.cut):
            yield rest

    def _opened(self) -> tuple[Folder, str]:
        """Return the open folder of the file, and its name there."""
        path = self.path
        try:
            place = path.resolve() if self.named else path.parent.resolve() / path.name
            found = place.lstat()
            if not stat.S_ISREG(found.st_mode):
                self._fail(f"it is {KINDS.get(stat.S_IFMT(found.st_mode), 'no file')}, and no file")
            if found.st_size > self.most:
                self._fail(f"it has more than {self.most:,} bytes")
            return open_folder(place.parent), place.name
        except FileNotFoundError:
            raise InputError(
                f"{path}: there is no such file; {self.missing or self.cure}"
            ) from None
        except OSError as error:
            self._fail(error.strerror)
        except InputError:
            raise
        except (ValueError, RuntimeError):  # a zero byte in the path; links that form a circle
            self._fail("this is no name of a file")

    def _fail(self, why: str | None) -> NoReturn:
        raise InputError(f"{self.path}: {why or 'it cannot be read'}; {self.cure}") from None


def parsed(text: str, where: str, cure: str, *, is_line: bool = False) -> Any:
    """Return the value of a JSON text.

    Args:
        where: name of the file, or of a line in it.
        cure: what to do if it is no such text.
        is_line: whether it is one line, so that places in it are columns.

    Raises:
        InputError: it is no JSON, or exceeds a limit; the message has the place.
    """
    beyond = excess(text, DEEPEST, MOST_VALUES)
    if beyond is Fault.TOO_MANY:
        _refuse(where, cure, f"has more than {MOST_VALUES:,} values")
    if beyond:
        _refuse(where, cure)
    try:
        value = _READER.decode(text)
    except json.JSONDecodeError as error:
        place = f"{error.colno}" if is_line else f"{error.lineno}:{error.colno}"
        raise InputError(f"{where}:{place}: invalid JSON: {error.msg}; {cure}") from None
    _check(value, where, cure)
    return value


def parsed_toml(text: str, where: str, cure: str) -> dict[str, Any]:
    """Return the table of a TOML text.

    Args:
        where: name of the file.
        cure: what to do if it is no such text.

    Raises:
        InputError: it is no TOML, or exceeds a limit; the message has the place.
    """
    if found := _LONG_KEY.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise InputError(f"{where}:{line}: a key has more than 64 parts; {cure}")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: invalid TOML: {error}; {cure}") from None
    except RecursionError:
        _refuse(where, cure)
    except ValueError:  # int() reads at most 4,300 digits
        raise InputError(f"{where}: a number has too many digits; {cure}") from None
    _check(table, where, cure)
    return table


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{where}: line {line} is not UTF-8; save it as UTF-8") from None


def _whole(digits: str) -> float:
    return int(digits) if len(digits) <= _DIGITS else math.inf


_READER: Final = json.JSONDecoder(parse_int=_whole)


def _check(value: Any, where: str, cure: str) -> None:
    """Refuse numbers beyond the limit, and TOML that is too deep."""
    level: list[tuple[_Place, Any]] = [((), [value])]
    for _ in range(DEEPEST + 1):
        below: list[tuple[_Place, Any]] = []
        for place, one in level:
            for key, child in one.items() if isinstance(one, dict) else enumerate(one):
                if isinstance(child, dict | list):
                    below.append(((place, key), child))
                elif isinstance(child, int | float) and not -GREATEST <= child <= GREATEST:
                    shown = _shown((place, key))
                    raise InputError(f"{where}: {shown} is NaN or beyond {GREATEST:g}; {cure}")
        if not below:
            return
        level = below
    _refuse(where, cure)


def _refuse(
    where: str, cure: str, what: str = f"is nested deeper than {DEEPEST} levels"
) -> NoReturn:
    raise InputError(f"{where}: it {what}; {cure}") from None


def _shown(place: "_Place") -> str:
    """Return a place as a JSON path. Names are joined here only, as they may be long."""
    keys: list[Any] = []
    while place:
        place, key = place
        keys.append(key)
    parts = (f".{key}" if _NAME.fullmatch(str(key)) else f"[{key!r:.60}]" for key in keys[-2::-1])
    return f"${''.join(parts)}"


_Place = tuple[Any, ...]
"""The place of what a value holds, and the key there; empty for the whole."""
