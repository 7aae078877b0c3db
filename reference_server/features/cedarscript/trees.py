"""The statements of a Python file: their lines, and the comparison of two trees. Pure functions.

Line numbers start from 0. The end of a statement is the line after its last line.
"""

from __future__ import annotations

import ast
import io
import tokenize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    Body = list[ast.stmt]

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MARK = "docstring "


def parse(lines: Sequence[str]) -> ast.Module:
    """Return the tree of a file, with its docstrings marked.

    Because of the mark, ``same`` does not treat a docstring and another string as equal.
    """
    tree = ast.parse("".join(line + "\n" for line in lines))
    for node in (tree, *statements(tree)):
        if isinstance(node, (ast.Module, *DEFINITIONS)) and node.body:
            docstring: Any = node.body[0]
            if is_docstring(docstring):
                docstring.value.kind = _MARK + (docstring.value.kind or "")
    return tree


def read_tokens(lines: Sequence[str]) -> tuple[set[int], set[int]]:
    """Return the lines that begin inside of a string, and the lines with only a comment."""
    strings: set[int] = set()
    comments: set[int] = set()
    opened: list[int] = []
    text = io.StringIO("".join(line + "\n" for line in lines), newline="\n")
    for token in tokenize.generate_tokens(text.readline):
        name = tokenize.tok_name[token.type]
        row, column = token.start
        if name == "COMMENT" and not token.line[:column].strip():
            comments.add(row - 1)
        elif name == "STRING":
            strings.update(range(row, token.end[0]))
        elif name.endswith("STRING_START"):  # since Python 3.12, an f-string is many tokens
            opened.append(row)
        elif name.endswith("STRING_END"):
            strings.update(range(opened.pop(), token.end[0]))
    return strings, comments


def bodies(node: Any) -> Iterator[Body]:
    """Yield the lists of statements directly in a node."""
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list) and body:
            yield body
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield all statements, in the order of the text."""
    ahead: list[Any] = [tree]
    while ahead:
        node = ahead.pop()
        if isinstance(node, ast.stmt):
            yield node
        ahead += [one for body in reversed(list(bodies(node))) for one in reversed(body)]


def first_line(node: Any) -> int:
    """Return the first line of a statement, including its decorators."""
    line: int = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
    return line - 1


def end(node: Any) -> int:
    line: int = node.end_lineno  # counted from 1
    return line


def find_runs(tree: ast.AST, first: int, after: int) -> list[tuple[Body, int, int]]:
    """Return the outermost statements that are completely within a range of lines.

    Returns:
        A tuple for each list of statements with such statements: the list, and the start and stop
        index of these statements.
    """
    runs = []
    ahead: list[ast.AST] = [tree]
    while ahead:
        for body in bodies(ahead.pop()):
            near = [node for node in body if first_line(node) < after and end(node) > first]
            inside = [node for node in near if first <= first_line(node) and end(node) <= after]
            if inside:
                at = next(at for at, node in enumerate(body) if node is inside[0])
                runs.append((body, at, at + len(inside)))
            ahead += [node for node in near if first_line(node) < first or end(node) > after]
    return runs


def is_docstring(node: ast.stmt) -> bool:
    """Return whether a statement is a docstring if it is the first one of its body."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def is_marked(node: ast.stmt) -> bool:
    """Return whether a statement of a tree from ``parse`` is a docstring."""
    kind = getattr(getattr(node, "value", None), "kind", None)
    return isinstance(kind, str) and kind.startswith(_MARK)


def same(left: Any, right: Any) -> bool:
    """Return whether two trees, or lists of trees, are equal, ignoring the places of nodes."""
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if type(one) is not type(other):
            return False
        if isinstance(one, ast.AST):
            names = one._fields
            pairs += [(getattr(one, name, None), getattr(other, name, None)) for name in names]
        elif isinstance(one, list):
            if len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif one != other:
            return False
    return True
