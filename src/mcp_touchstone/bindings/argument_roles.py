"""Find the arguments of a tool that take a path, content or a hash, from its schema. Pure.

Names and descriptions are only hints. The binder calls the tool to find the effect of an argument.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Any, Final

from mcp_touchstone.samples.from_schema import Places, candidates, is_path, required, words
from mcp_touchstone.wire.framing import object_in, value_in

Pointer = tuple[str | int, ...]
"""Path to an argument: member names and array indexes, starting at the arguments object."""

DEEPEST: Final = 4
"""Levels of nesting that are searched; also the number of references that are followed."""

MOST: Final = 2000
"""Arguments of one tool that are checked; a schema of a few bytes can name billions."""


class ArgumentRole(StrEnum):
    """The purpose of an argument."""

    PATH = "path"
    FROM = "source path"
    TO = "destination path"
    BASE = "base folder"
    CONTENT = "content"
    OLD = "text to replace"
    NEW = "replacement"
    HASH = "expected hash"
    DIFF = "unified diff"
    LINE = "line number"
    SCRIPT = "edit script"
    PATTERN = "pattern"
    FOLDER = "folder"
    NAME = "file name"
    COMMAND = "command"
    WORDS = "words of a command"


_BY_NAME: Final[Mapping[ArgumentRole, frozenset[str]]] = {
    ArgumentRole.FROM: frozenset(
        {
            "source",
            "src",
            "from",
            "sourcepath",
            "srcpath",
            "frompath",
            "oldpath",
            "sourcefile",
            "currentpath",
            "oldname",
        }
    ),
    ArgumentRole.TO: frozenset(
        {
            "destination",
            "dest",
            "dst",
            "to",
            "destinationpath",
            "destpath",
            "dstpath",
            "topath",
            "newpath",
            "targetpath",
            "destinationfile",
            "newname",
        }
    ),
    ArgumentRole.BASE: frozenset(
        {
            "cwd",
            "root",
            "base",
            "basedir",
            "basepath",
            "rootdir",
            "rootpath",
            "rootdirectory",
            "workingdir",
            "workingdirectory",
            "workdir",
            "projectroot",
            "projectpath",
            "repopath",
            "workspace",
            "workspaceroot",
            "basedirectory",
            "repo",
            "vault",
            "vaultpath",
            "project",
        }
    ),
    ArgumentRole.CONTENT: frozenset(
        {
            "content",
            "contents",
            "text",
            "filetext",
            "data",
            "body",
            "filecontent",
            "filecontents",
            "markdown",
            "code",
            "value",
            "inserttext",
        }
    ),
    ArgumentRole.OLD: frozenset(
        {
            "old",
            "oldtext",
            "oldstr",
            "oldstring",
            "oldcontent",
            "search",
            "find",
            "searchtext",
            "target",
            "original",
            "match",
        }
    ),
    ArgumentRole.NEW: frozenset(
        {
            "new",
            "newtext",
            "newstr",
            "newstring",
            "newcontent",
            "newcontents",
            "replace",
            "replacement",
            "replacetext",
            "replacewith",
        }
    ),
    ArgumentRole.HASH: frozenset(
        {
            "hash",
            "filehash",
            "expectedhash",
            "sha256",
            "checksum",
            "contenthash",
            "rangehash",
        }
    ),
    ArgumentRole.DIFF: frozenset({"diff", "difftext", "patch", "patchtext", "unifieddiff"}),
    ArgumentRole.SCRIPT: frozenset({"script", "scripttext", "cedarscript", "commands"}),
    ArgumentRole.PATTERN: frozenset(
        {
            "pattern",
            "glob",
            "globpattern",
            "filepattern",
            "searchpattern",
            "query",
            "regex",
            "term",
            "searchterm",
            "keyword",
            "q",
        }
    ),
    ArgumentRole.LINE: frozenset(
        {
            "line",
            "startline",
            "endline",
            "insertline",
            "linenumber",
            "start",
            "end",
            "linestart",
            "lineend",
            "offset",
            "limit",
        }
    ),
}
"""Role -> names of arguments, in lower case and without separators.

FROM and TO count only if a tool has both.
"""

FOLDERS: Final = frozenset(
    {
        "folder",
        "directory",
        "dir",
        "folderpath",
        "directorypath",
        "foldername",
        "directoryname",
        "dirname",
        "dirpath",
        "subfolder",
        "subdirectory",
        "parent",
        "parentfolder",
        "parentpath",
        "category",
        "section",
        "notebook",
        "collection",
        "space",
        "project",
        "projectname",
        "projectid",
        "vault",
        "vaultname",
        "workspace",
        "workspacename",
        "outputdir",
        "outputdirectory",
        "outputfolder",
        "targetdir",
        "targetfolder",
        "path",
        "location",
        "topic",
    }
)
"""Names of an argument that may take the folder of a file, if another takes its name."""

NAMES: Final = frozenset(
    {
        "filename",
        "name",
        "title",
        "notename",
        "notetitle",
        "documentname",
        "documenttitle",
        "docname",
        "document",
        "doc",
        "note",
        "noteid",
        "slug",
        "key",
        "identifier",
        "id",
        "permalink",
        "file",
        "page",
        "pagename",
        "pagetitle",
        "templatename",
        "diagramname",
        "sheet",
        "outputfilename",
    }
)
"""Names of an argument that may take the name of a file, or a title that becomes one."""

LINES: Final = frozenset({"command", "cmd", "commandline", "args"})
"""Names of an argument that may take a command line with a path in it."""

DRY: Final = frozenset({"dryrun", "dry", "simulate", "whatif", "noop", "previewonly"})
"""Names of an argument that requests a dry run, in lower case and without separators."""

_SAYS_PATH: Final = re.compile(r"\b(paths?|file ?names?)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ArgumentSlot:
    """One argument of a tool, at any depth.

    Attributes:
        pointer: its path in the arguments object.
        needed: whether the schema requires it and every object around it.
    """

    pointer: Pointer
    role: ArgumentRole
    needed: bool


def slots(schema: Any) -> list[ArgumentSlot]:
    """Return the arguments of a tool whose role can be determined."""
    found = [
        ArgumentSlot(pointer, role, needed)
        for pointer, leaf, needed in _arguments(schema)
        if (role := _role(leaf, pointer)) is not None
    ]
    ends = {ArgumentRole.FROM, ArgumentRole.TO}
    if not ends <= {slot.role for slot in found}:
        found = [
            replace(slot, role=ArgumentRole.PATH) if slot.role in ends else slot
            for slot in found
            if slot.role not in ends or is_path(_name(slot.pointer))
        ]
    if ArgumentRole.PATH not in {slot.role for slot in found}:
        base = next((slot for slot in found if slot.role is ArgumentRole.BASE), None)
        found = [replace(s, role=ArgumentRole.PATH) if s is base else s for s in found]
    return found


def named_slots(schema: Any, names: frozenset[str], role: ArgumentRole) -> list[ArgumentSlot]:
    """Return the text arguments with one of these names as slots of a role; required ones first."""
    found = [
        ArgumentSlot(pointer, role, needed)
        for pointer, leaf, needed in _arguments(schema)
        if pointer and "string" in _kinds(leaf) and flat(_name(pointer)) in names
    ]
    return sorted(found, key=lambda slot: not slot.needed)


def described(schema: Any, pointer: Pointer) -> Mapping[str, Any]:
    """Return the schema of an argument; empty if there is none."""
    return next((leaf for known, leaf, _ in _arguments(schema) if known == pointer), {})


def texts(schema: Any) -> list[Pointer]:
    """Return the paths of all arguments that take any text, whatever their purpose."""
    return [
        pointer
        for pointer, leaf, _ in _arguments(schema)
        if pointer and "string" in _kinds(leaf) and not {"enum", "const"} & {*leaf}
    ]


def containers(schema: Any) -> list[tuple[Pointer, dict[str, Any]]]:
    """Return the paths of all arguments that are arrays or objects, each with its schema."""
    return list(islice(_containers(schema, schema, ()), MOST))


def _containers(
    schema: Any, root: Any, pointer: Pointer
) -> Iterator[tuple[Pointer, dict[str, Any]]]:
    if len(pointer) > DEEPEST:
        return
    plain = _plain(schema, root)
    if {"properties", "items"} & {*plain} or {"object", "array"} & {*_kinds(plain)}:
        yield pointer, plain
    for name, below in object_in(plain, "properties").items():
        yield from _containers(below, root, (*pointer, name))
    if "items" in plain:
        yield from _containers(plain["items"], root, (*pointer, 0))


def _arguments(schema: Any) -> Iterator[tuple[Pointer, dict[str, Any], bool]]:
    return islice(_leaves(schema, schema, (), needed=True), MOST)


def _leaves(
    schema: Any, root: Any, pointer: Pointer, *, needed: bool
) -> Iterator[tuple[Pointer, dict[str, Any], bool]]:
    """Yield each argument without nested members: its path, its schema, whether it is required."""
    if not isinstance(schema, dict) or len(pointer) > DEEPEST:
        return
    schema = _plain(schema, root)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        wanted = required(schema)
        for name, below in properties.items():
            inner = needed and name in wanted
            yield from _leaves(below, root, (*pointer, name), needed=inner)
        return
    if "items" in schema:
        yield from _leaves(schema["items"], root, (*pointer, 0), needed=needed)
        return
    yield pointer, schema, needed


def _plain(given: Any, root: Any) -> dict[str, Any]:
    """Resolve references, and choose the first branch of a union that is not null."""
    schema = given if isinstance(given, dict) else {}
    for _ in range(DEEPEST):
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            found: Any = root
            for step in reference[2:].split("/"):
                found = found.get(step) if isinstance(found, dict) else None
            schema = found if isinstance(found, dict) else {}
        for key in ("anyOf", "oneOf", "allOf"):
            branches = schema.get(key)
            if isinstance(branches, list):
                chosen = [b for b in branches if isinstance(b, dict) and b.get("type") != "null"]
                rest = {k: v for k, v in schema.items() if k != key}
                schema = {**rest, **(chosen[0] if chosen else {})}
    return schema


def _role(schema: Mapping[str, Any], pointer: Pointer) -> ArgumentRole | None:
    name, kinds = _name(pointer), _kinds(schema)
    if "string" not in kinds:
        counts = "integer" in kinds or "number" in kinds
        is_line = flat(name) in _BY_NAME[ArgumentRole.LINE] and counts
        return ArgumentRole.LINE if is_line else None
    if "enum" in schema or "const" in schema:
        return None
    for role, names in _BY_NAME.items():
        if flat(name) in names and role is not ArgumentRole.LINE:
            return role
    described = schema.get("description")
    about = described if isinstance(described, str) else ""
    if is_path(name) or (_SAYS_PATH.search(about) and not {*words(name)} & {"pattern", "glob"}):
        return ArgumentRole.PATH
    return None


def _name(pointer: Pointer) -> str:
    return next((part for part in reversed(pointer) if isinstance(part, str)), "")


def flat(name: str) -> str:
    """Return a name in lower case and without separators."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _kinds(schema: Mapping[str, Any]) -> list[Any]:
    kind = schema.get("type", "string")
    return kind if isinstance(kind, list) else [kind]


def dry_run(schema: Any) -> str:
    """Return the name of the argument that requests a dry run; empty if there is none."""
    for name, below in object_in(schema, "properties").items():
        if flat(name) in DRY and value_in(below, "type") == "boolean":
            return str(name)
    return ""


# --- filling


def assemble(schema: Any, values: Mapping[Pointer, Any], places: Places, turn: int = 0) -> Any:
    """Build arguments: the members that the schema requires, and these values at their paths.

    Args:
        places: the folder and the file to use in generated arguments.
        turn: index of the generated candidate; the last one is used beyond the end.
    """
    made = candidates(schema, places)
    return extend(schema, made[min(turn, len(made) - 1)] if made else {}, values, places)


def extend(
    schema: Any, arguments: Mapping[str, Any], values: Mapping[Pointer, Any], places: Places
) -> Any:
    """Return a copy of arguments with values set; missing objects and arrays are created."""
    found = copy.deepcopy(dict(arguments))
    for pointer, value in values.items():
        _Putter(schema, places).put(found, pointer, value, schema)
    return found


def leaves(value: Any, at: Pointer = ()) -> Iterator[tuple[Pointer, Any]]:
    """Yield the values in arguments that are no objects and no lists, each with its path."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from leaves(one, (*at, name))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from leaves(one, (*at, number))
    else:
        yield at, value


def put(arguments: Mapping[str, Any], values: Mapping[Pointer, Any]) -> dict[str, Any]:
    """Return a copy of arguments with values replaced; each path must already exist."""
    found = copy.deepcopy(dict(arguments))
    for pointer, value in values.items():
        here: Any = found
        for step in pointer[:-1]:
            here = here[step]
        here[pointer[-1]] = value
    return found


@dataclass(frozen=True, slots=True)
class _Putter:
    """Sets a value at a path and creates missing objects and arrays as the schema requires."""

    root: Any
    places: Places

    def put(self, here: Any, pointer: Pointer, value: Any, schema: Any) -> None:
        step, *rest = pointer
        below = _below(_plain(schema, self.root), step)
        if not rest:
            here[step] = value
            return
        if isinstance(step, str) and not isinstance(here.get(step), dict | list):
            here[step] = [] if isinstance(rest[0], int) else {}
        if isinstance(step, int) and len(here) <= step:
            here.append(self._made(below))
        if isinstance(rest[0], int) and not isinstance(here[step], list):
            here[step] = []
        if isinstance(here[step], list) and not here[step]:
            here[step].append(self._made(_below(_plain(below, self.root), 0)))
        if isinstance(rest[0], str) and not isinstance(here[step], dict):
            here[step] = {}
        self.put(here[step], tuple(rest), value, below)

    def _made(self, schema: Any) -> Any:
        plain = _plain(schema, self.root)
        if "properties" not in plain:
            return ""
        made = candidates(plain, self.places)
        return made[0] if made else {}


def _below(schema: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return schema.get("items", {})
    return object_in(schema, "properties").get(step, {})
