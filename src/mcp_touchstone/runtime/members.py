"""Objects of files: each member is checked when it is read. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from mcp_touchstone.catalog.errors import InputError

T = TypeVar("T")
N = TypeVar("N", int, float)

GREATEST: Final = 10**15
"""Greatest number of bytes, seconds and the like: no sum or format of such numbers fails."""

_NAMES: Final[dict[type, str]] = {
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "an array",
    dict: "an object",
}


@dataclass(frozen=True, slots=True)
class Members:
    """An object of a file. A member that is null counts as missing.

    Each method raises ``InputError`` if a member has another type; the message has its place.

    Attributes:
        value: the object.
        where: its place, for messages: the file, and the line or the path in it.
    """

    value: Mapping[str, Any]
    where: str

    @classmethod
    def of(cls, value: Any, where: str) -> "Members":
        """Return the members of a value, which must be an object."""
        return cls(_typed(value, dict, where), where)

    def has(self, name: str) -> bool:
        """Return whether there is such a member."""
        return self.value.get(name) is not None

    def get(self, name: str, kind: type[T], default: T | None = None) -> T:
        """Return a member of a type; a whole number is a ``float`` too, and true is no number.

        Args:
            default: its value if it is missing; None if it must not be.
        """
        value = self.value.get(name)
        if value is None and default is not None:
            return default
        if type(value) is kind:  # nearly always: the words for the message take longer
            return value
        return _typed(value, kind, f"{self.where}: {name}")

    def number(self, name: str, kind: type[N], default: N | None = None) -> N:
        """Return a number from 0 to ``GREATEST``."""
        value = self.get(name, kind, default)
        if not 0 <= value <= GREATEST:
            raise InputError(f"{self.where}: {name} must be a number from 0 to {GREATEST:g}")
        return value

    def word(self, name: str) -> str:
        """Return a string, or a number or boolean as one; empty if it is missing."""
        value = self.value.get(name)
        if isinstance(value, bool | int | float):
            return str(value)
        return self.get(name, str, "")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the strings of an array; none if it is missing."""
        found = self.get(name, list, [])
        return tuple(_typed(one, str, f"{self.where}: {name}[{n}]") for n, one in enumerate(found))

    def object(self, name: str) -> "Members":
        """Return the members of an object; none if it is missing."""
        return Members(self.get(name, dict, {}), f"{self.where}: {name}")

    def objects(self, name: str) -> Iterator["Members"]:
        """Yield the objects of an array; none if it is missing."""
        for n, one in enumerate(self.get(name, list, [])):
            yield Members.of(one, f"{self.where}: {name}[{n}]")

    def array(self, name: str, names: tuple[str, ...]) -> "Members":
        """Return the items of an array under these names."""
        found = self.get(name, list)
        return Members(dict(zip(names, found, strict=False)), f"{self.where}: {name}")

    def arrays(self, name: str, names: tuple[str, ...]) -> Iterator["Members"]:
        """Yield each array of an array as ``array`` returns it."""
        for n, one in enumerate(self.get(name, list, [])):
            yield Members({"": one}, f"{self.where}: {name}[{n}]").array("", names)


def _typed(value: Any, kind: type[T], where: str) -> T:
    right = isinstance(value, (int, float) if kind is float else kind)
    if not right or (isinstance(value, bool) and kind is not bool):
        raise InputError(f"{where} must be {_NAMES[kind]}")
    return cast("T", value)
