"""Declarations of the user: the operation of a tool on files, and its arguments. Pure.

A declaration is written ``OPERATION={"tool": "...", "path": "..."}`` on the command line and as a
table in a configuration. It is verified with a call and bound only if the call has the declared
effect.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_touchstone.bindings.argument_roles import ArgumentRole, ArgumentSlot, Pointer
from mcp_touchstone.bindings.binding import CARRYING, WALKING, Operation, Style
from mcp_touchstone.bindings.call_variants import CallVariant
from mcp_touchstone.bindings.file_naming import PATH
from mcp_touchstone.catalog.clause import nearest

UNSAID: Final = WALKING | {
    Operation.UNDO,
    Operation.STAGE,
    Operation.SCRIPT,
    Operation.CALL,
    Operation.RUN,
}
OPERATIONS: Final = tuple(str(one) for one in Operation if one not in UNSAID)
"""Operations that can be declared.

Undo is detected automatically because it needs a preceding edit. Scripts, patterns and completions
are detected automatically because they need more than a path.
"""

STYLES: Final = tuple(style.name.lower() for style in Style)

_ROLES: Final = {
    role.name.lower(): role
    for role in (
        ArgumentRole.PATH,
        ArgumentRole.TO,
        ArgumentRole.CONTENT,
        ArgumentRole.OLD,
        ArgumentRole.NEW,
        ArgumentRole.HASH,
        ArgumentRole.DIFF,
        ArgumentRole.BASE,
        ArgumentRole.FOLDER,
    )
}
"""Key -> role of the argument that it names."""

_OTHERS: Final = ("tool", "style", "arguments", "suffix", "form")
_SUFFIX: Final = re.compile(r"\.[\w.-]{1,30}")
_SHAPE: Final = """write OPERATION='{"tool": "NAME", "path": "ARGUMENT"}'"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One declared operation of a tool.

    Attributes:
        places: role -> path of the argument for it.
        style: the form of a path; None tries both forms.
        arguments: arguments that are the same in every call.
        suffix: the suffix of the files; empty for text files.
        form: the text around the path, with ``{path}`` in it.
        text: the declaration as the user wrote it.
    """

    operation: Operation
    tool: str
    places: Mapping[ArgumentRole, Pointer]
    style: Style | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    suffix: str = ""
    form: str = PATH
    text: str

    @property
    def styles(self) -> tuple[Style, ...]:
        """The forms of a path that are tried."""
        return tuple(Style) if self.style is None else (self.style,)

    def way(self, tool: Mapping[str, Any]) -> CallVariant:
        """Return the declared way to call the tool, given its definition."""
        slots = tuple(
            ArgumentSlot(pointer, role, needed=True) for role, pointer in self.places.items()
        )
        fixed: dict[Pointer, Any] = {(name,): value for name, value in self.arguments.items()}
        return CallVariant(tool, fixed, slots, self.form)


def read(text: str) -> Declaration:
    """Read a declaration.

    Raises:
        ValueError: the declaration is invalid; the message says how to write it.
    """
    name, _, rest = text.partition("=")
    if name not in OPERATIONS:
        known = f"{nearest(name, OPERATIONS)}; there are {', '.join(OPERATIONS)}"
        raise ValueError(f"no operation is called {name!r}{known}")
    try:
        given = json.loads(rest)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise ValueError(f"{text}: {_SHAPE}")  # noqa: TRY004  (a word of a command line)
    for key in given:
        if key not in {*_ROLES, *_OTHERS}:
            keys = (*_OTHERS, *_ROLES)
            hint = nearest(key, keys) or f"; the keys are {', '.join(keys)}"
            raise ValueError(f"{name}: unknown key {key!r}{hint}")
    operation = Operation(name)
    places = {
        _role(key, operation): _pointer(given[key], name, key) for key in given if key in _ROLES
    }
    if ArgumentRole.FOLDER in places and ArgumentRole.PATH in places:  # its name apart
        places[ArgumentRole.NAME] = places.pop(ArgumentRole.PATH)
    tool, fixed = given.get("tool"), given.get("arguments", {})
    if (
        not isinstance(tool, str)
        or not tool
        or not {ArgumentRole.PATH, ArgumentRole.FROM, ArgumentRole.NAME} & {*places}
    ):
        raise ValueError(f"{name}: tool and path are needed; {_SHAPE}")
    if operation in CARRYING and ArgumentRole.TO not in places:
        raise ValueError(f"{name}: to is missing: name the argument the new path goes into")
    if not isinstance(fixed, dict):
        reason = "arguments is not a table; write the arguments that each call has in common"
        raise ValueError(f"{name}: {reason}")  # noqa: TRY004  (a word of a command line)
    return Declaration(
        operation=operation,
        tool=tool,
        places=places,
        style=_style(given, name),
        arguments=fixed,
        suffix=_suffix(given, name),
        form=_form(given, name),
        text=text,
    )


def _role(key: str, operation: Operation) -> ArgumentRole:
    return ArgumentRole.FROM if key == "path" and operation in CARRYING else _ROLES[key]


def _pointer(value: Any, name: str, key: str) -> Pointer:
    steps = value if isinstance(value, list) else [value]
    sound = all(isinstance(s, str | int) and not isinstance(s, bool) for s in steps)
    if not steps or not sound or not isinstance(steps[0], str):
        raise ValueError(f'{name}: {key} names an argument, or the way to it: ["edits", 0, "old"]')
    return tuple(steps)


def _suffix(given: Mapping[str, Any], name: str) -> str:
    suffix = given.get("suffix", "")
    if not isinstance(suffix, str) or (suffix and not _SUFFIX.fullmatch(suffix)):
        raise ValueError(f'{name}: suffix is the end of a file name, such as ".md"')
    return suffix


def _form(given: Mapping[str, Any], name: str) -> str:
    form = given.get("form", PATH)
    if not isinstance(form, str) or PATH not in form:
        raise ValueError(f'{name}: form is text with {PATH} in it, such as "file://{PATH}"')
    return form


def _style(given: Mapping[str, Any], name: str) -> Style | None:
    style = given.get("style")
    if style is None:
        return None
    if style not in STYLES:
        raise ValueError(f"{name}: style is {' or '.join(STYLES)}, not {style!r}")
    return Style[style.upper()]
