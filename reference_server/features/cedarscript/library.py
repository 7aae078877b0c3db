"""The library, loaded without access to the disk and with its known faults fixed.

The library is pinned to one version, because this module patches its internals. The patches apply
to the whole process, so this module is imported in the worker only.

- The wheel of the library lacks its queries. The module that reads them is replaced by one with
  the queries of this server.
- The library reads and writes one file through two functions. They are replaced by the methods of
  a ``Desk``, which holds the text in memory.
- Some faults of the library raise no error but edit the wrong lines. Each ``_mend_...`` function
  fixes one or two of them and names them in its docstring.
"""

from __future__ import annotations

import sys
import types
from functools import lru_cache
from importlib import import_module

from .available import version_of
from .indentation import Indentation
from .move import carry_out
from .places import Move
from .policy import Refused, is_move, is_python
from .tree_cache import TreeCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

VERSIONS = {
    "cedarscript-editor": "1.3.5",
    "cedarscript-ast-parser": "0.7.0",
    "cedarscript-grammar": "0.7.0",
    "tree-sitter": "0.21.3",
    "tree-sitter-languages": "1.10.2",
    "grep-ast": "0.4.1",
}
"""The tested versions, by distribution. Other versions may access the disk in other places."""

_FORM = """
({0}_definition name: (identifier) @_name ({1} @_name "{2}") body: (block) @{0}.body)
  @{0}.definition
(decorated_definition (decorator) @{0}.decorator
  definition: ({0}_definition name: (identifier) @_name ({1} @_name "{2}")))
"""
_KINDS = ("function", "class")
_INTO = ("body", "into_top", "into_bottom")


class Unavailable(Exception):  # noqa: N818 - a state, not a fault
    """The library cannot be used here. The message gives the reason."""


class Desk:
    """The text of the file that a command works on, in place of the disk.

    Attributes:
        text: Text that the library reads. Its lines end in LF.
        written: Text that the library has written, or None if it has not written any.
    """

    def __init__(self, largest: int) -> None:
        self.text = ""
        self.written: str | None = None
        self._largest = largest

    def read(self, _path: Any) -> str:
        """Return the text. Replaces ``read_file`` of the library."""
        return _Source(self.text)

    def write(self, _path: Any, lines: Sequence[str]) -> None:
        """Store lines as the new text. Replaces ``write_file`` of the library."""
        size = sum(len(line.encode(errors="replace")) + 1 for line in lines)
        if size > self._largest:
            raise Refused("TOO_LARGE", f"The file would have {size} bytes; see list_capabilities.")
        self.written = "".join(line + "\n" for line in lines)


class _Source(str):
    """The text of a file, with a ``splitlines`` that splits at LF only.

    ``str.splitlines`` also splits at characters such as a form feed or U+2028. Every later edit
    would then use wrong line numbers.
    """

    __slots__ = ()

    def splitlines(self, keepends: bool = False) -> list[str]:  # noqa: ARG002
        lines = self.split("\n")
        return lines if lines[-1] else lines[:-1]


class _Kept(str):
    """A line whose trailing white space the library cannot strip."""

    __slots__ = ()

    def rstrip(self, _chars: str | None = None) -> str:
        return self


class Library:
    """The loaded and patched library.

    Attributes:
        parser: The library's parser, which returns commands and errors.
        desk: Holds the text of the file for the next command.

    Raises:
        Unavailable: The library cannot be loaded, or has another version.
    """

    def __init__(self, largest: int) -> None:
        for name, wanted in VERSIONS.items():
            found = version_of(name)
            if found != wanted:
                raise Unavailable(f"{name} is {found or 'not installed'}; it has to be {wanted}")
        queries = types.ModuleType("cedarscript_editor.tree_sitter_identifier_queries")
        queries.get_query = _get_query  # type: ignore[attr-defined]
        sys.modules[queries.__name__] = queries
        try:
            editor: Any = import_module("cedarscript_editor.cedarscript_editor")
            finder: Any = import_module("cedarscript_editor.tree_sitter_identifier_finder")
            self.parser = _parser()
        except (ImportError, OSError, AttributeError) as error:
            raise Unavailable(f"the library does not load ({type(error).__name__})") from None
        self.desk = Desk(largest)
        editor.read_file = self.desk.read
        editor.write_file = self.desk.write
        editor.IndentationInfo = Indentation
        _mend_finder(finder)
        _mend_targets(editor)
        _mend_case(editor)
        _mend_lines(import_module("text_manipulation.range_spec"))
        _mend_segments(import_module("text_manipulation.text_editor_kit"))
        self._editor = editor
        self._apply = editor.CEDARScriptEditor("/").apply_commands

    def update(self, command: Any, text: str, name: str) -> str:
        """Carry out an UPDATE command on a text and return the new text.

        Args:
            command: The parser's object for the command.
            text: The text of the file. Its lines end in LF.
            name: File name given to the library. Only its extension matters.
        """
        command.target.file_path = name
        self.desk.text, self.desk.written = text, None
        if is_move(command.action):
            self.desk.write(name, self._move(command, name))
            return self.desk.written or ""
        try:
            self._apply([command])
        except Exception as error:  # noqa: BLE001 - the library may raise any exception
            # The library wraps the error in advice for a model. The cause is the actual error.
            raise (error.__cause__ or error) from None
        written: str | None = self.desk.written
        return text if written is None else written

    def _move(self, command: Any, name: str) -> list[str]:
        """Return the lines after a MOVE. The library is only used to locate the lines."""
        source = _Source(self.desk.text)
        lines = source.splitlines()
        action, position = command.action, command.action.insert_position
        locate = self._editor.restrict_search_range
        finder = self._editor.TreeSitterIdentifierFinder(name, source, self._editor.RangeSpec.EMPTY)
        found = locate(action.region, command.target, finder, lines)
        # With the qualifier of the command, the position may be a line off. AT returns the start of
        # the named line or definition.
        named = position.with_qualifier(type(position.qualifier).AT)
        move = Move(
            first=found.start,
            end=found.end,
            definition=getattr(action.region, "type", None) != "line"
            and not hasattr(action.region, "start"),
            place=locate(named, None, finder, lines).start,
            at_line=position.type == "line",
            where=str(position.qualifier),
            levels=action.relative_indentation or 0,
        )
        return carry_out(lines, move, python=is_python(name))

    @staticmethod
    def create(content: str) -> str:
        return "".join(line + "\n" for line in Indentation().apply_relative_indents(content))


def _parser() -> Any:
    """Build the library's parser without calling its constructor.

    The constructor loads ``importlib.metadata`` to check a version that is already known.
    """
    made = import_module("cedarscript_ast_parser").CEDARScriptASTParser
    parser = made.__new__(made)
    parser.parser = import_module("tree_sitter").Parser()
    parser.parser.set_language(import_module("cedarscript_grammar").language())
    return parser


def _get_query(language: str) -> dict[str, str]:
    """Return the queries for a language. Replaces a function whose data the wheel lacks."""
    if language != "python":
        raise KeyError(language)
    # The library inserts the name with ``format``.
    return {kind: _FORM.format(kind, "#eq?", "{name}") for kind in _KINDS}


def _mend_finder(module: Any) -> None:
    """Fix how definitions are found.

    - METHOD also found functions that are not in a class.
    - The body of ``def f(): return 1`` was the whole line.

    In addition, cache the parser, its trees and the definitions that were found.
    """
    finder = module.TreeSitterIdentifierFinder
    find_identifiers, find_one = finder.find_identifiers, finder._find_identifier  # noqa: SLF001
    associate = module.associate_identifier_parts
    # Both look up the same shared object on the file system in every call.
    module.get_language = lru_cache(module.get_language)
    get_parser = module.get_parser
    module.get_parser = lru_cache(lambda language: TreeCache(get_parser(language).parse))

    def find_identifiers_of_kind(
        self: Any, kind: str, name: str, restrictions: Sequence[Any] = ()
    ) -> list[Any]:
        found: list[Any] = find_identifiers(self, kind, name, restrictions)
        if kind == "method":
            found = [one for one in found if one.parents and one.parents[0][1].startswith("class")]
        return found

    def find_once(self: Any, marker: Any, restriction: Any) -> Any:
        known = self.__dict__.setdefault("_known", {})
        key = (repr(marker), getattr(marker, "qualifier", None), repr(restriction))
        if key not in known:
            known[key] = find_one(self, marker, restriction)
        return known[key]

    def associate_blocks(captures: Sequence[Any], lines: Sequence[str]) -> list[Any]:
        return list(associate([one for one in captures if not _is_inline(one)], lines))

    finder.find_identifiers = find_identifiers_of_kind
    finder._find_identifier = find_once  # noqa: SLF001
    module.associate_identifier_parts = associate_blocks
    boundaries = module.IdentifierBoundaries
    locate = boundaries.location_to_search_range

    def locate_body(self: Any, location: Any) -> Any:
        if self.body is None and str(location) in _INTO:
            raise Refused(
                "ONE_LINE_BODY",
                "The body is on the line of its definition.",
                "Replace the definition as a WHOLE.",
                type="ExecutionError",
            )
        return locate(self, location)

    boundaries.location_to_search_range = locate_body


def _is_inline(capture: Any) -> bool:
    node = capture.node
    before = node.prev_sibling
    return (
        capture.capture_type.endswith(".body")
        and before is not None
        and before.end_point[0] == node.start_point[0]
    )


def _mend_targets(module: Any) -> None:
    """Raise an error for a missing definition. The library edited the whole file instead."""
    restrict, from_file = module.restrict_search_range, module.IdentifierFromFile

    def restrict_inside(region: Any, parent: Any, finder: Any, lines: Sequence[str]) -> Any:
        if isinstance(parent, from_file) and finder(parent.as_marker) is None:
            raise Refused(
                "DEFINITION_NOT_FOUND",
                f"There is no {parent.identifier_type} {parent.name!r} in the file.",
                "Name nested definitions with dots: METHOD 'Class.name'.",
                "FUNCTION finds methods too; METHOD finds nothing but methods.",
                type="ExecutionError",
            )
        return restrict(region, parent, finder, lines)

    module.restrict_search_range = restrict_inside


def _mend_case(module: Any) -> None:
    """Keep trailing white space in a CASE. The library stripped it from lines it did not change."""
    process = module.process_case_statement
    module.process_case_statement = lambda lines, case: [
        _Kept(line) for line in process(lines, case)
    ]


def _mend_lines(module: Any) -> None:
    """Fix how lines are found.

    - A line number could be outside of its target.
    - ``a - b`` matched the line ``a + b``.

    In addition, refuse a marker in an empty file.
    """
    spec = module.RangeSpec
    find = spec.from_line_marker.__func__
    spec.normalize_line = staticmethod(str.strip)

    def from_line_marker(
        cls: Any, lines: Sequence[str], marker: Any, search_range: Any = None
    ) -> Any:
        if not lines:
            raise Refused(
                "EMPTY_FILE",
                "The file is empty: there is no line to go by.",
                "UPDATE FILE 'path' REPLACE WHOLE WITH CONTENT '...'",
                type="ExecutionError",
            )
        if marker.marker_subtype == "number":
            start, end = _bounds(search_range, lines)
            if not 1 <= marker.value <= end - start:
                raise Refused(
                    "LINE_OUT_OF_RANGE",
                    f"There is no line {marker.value}: the target has {end - start} lines, "
                    "counted from 1 at its own first line.",
                    type="ExecutionError",
                )
        return find(cls, lines, marker, search_range)

    spec.from_line_marker = classmethod(from_line_marker)


def _mend_segments(module: Any) -> None:
    """Refuse a segment that ends before it begins, or that is outside of its target."""
    find = module.segment_to_search_range

    def segment_to_search_range(
        lines: Sequence[str], start: Any, end: Any, search_range: Any = None
    ) -> Any:
        found = find(lines, start, end, search_range)
        first, last = _bounds(search_range, lines)
        if found.start > found.end:
            raise Refused(
                "SEGMENT_REVERSED",
                "The segment ends before it begins.",
                "STARTING names the upper line, ENDING the lower one.",
                type="ExecutionError",
            )
        if found.start < first or found.end > last:
            raise Refused(
                "LINE_OUT_OF_RANGE",
                "The segment leaves its target.",
                "STARTING BEFORE and ENDING AFTER include one line more.",
                type="ExecutionError",
            )
        return found

    module.segment_to_search_range = segment_to_search_range


def _bounds(search_range: Any, lines: Sequence[str]) -> tuple[int, int]:
    if search_range is None:
        return 0, len(lines)
    start, end = search_range[0], search_range[1]
    return max(start, 0), len(lines) if end < 0 else min(end, len(lines))
