"""MOVE of CEDARScript: a move keeps the meaning of all code, or it is refused."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from reference_server.features.cedarscript.explain import find
from tests.cases import cases
from tests.reference_server.cedarscript.client import NEEDS_LIBRARY, Client

if TYPE_CHECKING:
    from collections.abc import Iterator

    Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

pytestmark = [NEEDS_LIBRARY, pytest.mark.slow]

REFUSALS = {"UNSAFE_MOVE", "BREAKS_SYNTAX", "MOVE_INTO_ITSELF", "NO_CHANGE"}
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with Client(tmp_path_factory.mktemp("root"), log_level="off") as client:
        yield client


def write(client: Client, text: str, name: str = "m.py") -> None:
    (client.root / name).write_bytes(text.encode())


def read(client: Client, name: str = "m.py") -> str:
    return (client.root / name).read_bytes().decode()


def moved(client: Client, text: str, script: str, name: str = "m.py") -> str:
    """Return the file after a script."""
    write(client, text, name)
    client.carry_out(script)
    return read(client, name)


def refused(client: Client, text: str, script: str, name: str = "m.py") -> dict[str, Any]:
    """Return the error of a script, and check that the file is unchanged."""
    write(client, text, name)
    error = client.refuse(script)
    assert read(client, name) == text
    explained = find(error["message"])
    assert explained is not None, error
    assert explained[0].code == error["code"]
    return error


SOURCE = '''#!/usr/bin/env python
# The file's own comment
class A:
    """About A."""

    x = 1

    # about f,
    # in two lines
    @staticmethod
    def f(a,
      b):
        """Doc.

        More.
        """
        text = f"""
    {a
     + b}
            end"""  # same line

        return [
            text,
    # left of it
        ]
        # still f

    def g(self):
        return 1


def h():
\treturn (
\t\t"a"
\t)


class B:

    """About B."""

    async def k(self): return 2
'''


def test_moved_definition_keeps_its_comments_and_strings(client: Client) -> None:
    block = SOURCE[SOURCE.index("    # about f") : SOURCE.index("\n    def g")]
    rest = SOURCE.replace(block, "")
    shifted = """# about f,
# in two lines
@staticmethod
def f(a,
  b):
    \"\"\"Doc.

        More.
        \"\"\"
    text = f\"\"\"
    {a
     + b}
            end\"\"\"  # same line

    return [
        text,
# left of it
    ]
    # still f
"""
    script = "UPDATE CLASS 'A' FROM FILE 'm.py' MOVE METHOD 'f' INSERT {}"
    assert moved(client, SOURCE, script.format("BEFORE FUNCTION 'h'")) == rest.replace(
        "def h", f"{shifted}def h"
    )
    assert moved(client, SOURCE, script.format("AFTER METHOD 'B.k'")) == rest + block
    own = '    """About B."""\n'
    assert moved(client, SOURCE, script.format("INTO CLASS 'B' TOP")) == rest.replace(
        own, own + block
    ), "a docstring stays one"
    assert moved(client, SOURCE, script.format("AFTER METHOD 'g'")) == rest.replace(
        "        return 1\n", f"        return 1\n{block}"
    )
    other = "UPDATE FUNCTION 'h' FROM FILE 'm.py' MOVE WHOLE INSERT BEFORE METHOD 'A.f'"
    assert moved(client, SOURCE, other) == SOURCE.replace(
        'def h():\n\treturn (\n\t\t"a"\n\t)\n', ""
    ).replace("    # about f", '    def h():\n    \treturn (\n    \t\t"a"\n    \t)\n    # about f')
    other = "UPDATE FUNCTION 'h' FROM FILE 'm.py' MOVE WHOLE INSERT BEFORE CLASS 'A'"
    head = "#!/usr/bin/env python\n# The file's own comment\n"
    assert moved(client, SOURCE, other).startswith(f"{head}def h():\n\treturn (\n")


@cases(
    ("CLASS 'A' INSERT AFTER METHOD 'g'", "MOVE_INTO_ITSELF", "lies in"),
    ("CLASS 'A' INSERT INTO CLASS 'A' TOP", "MOVE_INTO_ITSELF", "lies in"),
    ("CLASS 'A' INSERT AFTER LINE 'x = 1'", "MOVE_INTO_ITSELF", "lies in"),
    ("METHOD 'g' INSERT AFTER METHOD 'g'", "MOVE_INTO_ITSELF", "lies in"),
    ("METHOD 'g' INSERT INTO CLASS 'A' BOTTOM", "NO_CHANGE", "is there already"),
    ("METHOD 'k' INSERT BEFORE CLASS 'A'", None, ""),
    ("METHOD 'g' INSERT INTO METHOD 'B.k' TOP", "ONE_LINE_BODY", "line of its definition"),
    ("METHOD 'g' INSERT AFTER LINE 'def f(a,'", "UNSAFE_MOVE", "last one of a statement"),
    ("METHOD 'g' INSERT BEFORE LINE 'def f(a,'", "UNSAFE_MOVE", "first one of a statement"),
    ("METHOD 'g' INSERT AFTER LINE 'class A:'", "UNSAFE_MOVE", "last one of a statement"),
    ("METHOD 'g' INSERT AFTER LINE 'end\"\"\"  # same line'", None, ""),
    ("METHOD 'g' INSERT AFTER LINE 'text,'", "UNSAFE_MOVE", "last one of a statement"),
    ("METHOD 'g' INSERT BEFORE LINE '# left of it'", "BREAKS_SYNTAX", "not be valid Python"),
    ("METHOD 'g' INSERT AFTER LINE EMPTY OFFSET 0", "UNSAFE_MOVE", "blank line"),
    ('FUNCTION \'h\' INSERT BEFORE LINE \'"""About A."""\'', "UNSAFE_MOVE", "more of the file"),
    ("METHOD 'f' INSERT BEFORE METHOD 'g' RELATIVE INDENTATION 1", "UNSUPPORTED_CONSTRUCT", "1"),
    ("METHOD 'f' INSERT AFTER CLASS 'B' RELATIVE INDENTATION 0", None, ""),
    ("METHOD 'f' INSERT BEFORE LINE 'x = 1' RELATIVE INDENTATION 1", "UNSUPPORTED_CONSTRUCT", ""),
    ("FUNCTION 'h' INSERT BEFORE CLASS 'B' RELATIVE INDENTATION 1", None, ""),
    ("FUNCTION 'h' INSERT AFTER CLASS 'B' RELATIVE INDENTATION 1", "UNSUPPORTED_CONSTRUCT", ""),
    ("CLASS 'Z' INSERT BEFORE CLASS 'B'", "DEFINITION_NOT_FOUND", "Z"),
    ("CLASS 'B' INSERT BEFORE CLASS 'Z'", "DEFINITION_NOT_FOUND", "Z"),
    ("CLASS 'B' INSERT BEFORE LINE 'zzz'", "LINE_NOT_FOUND", ""),
    ("CLASS 'B' INSERT BEFORE LINE 99", "LINE_OUT_OF_RANGE", ""),
)
def test_invalid_move_destination_is_refused(
    client: Client, move: str, code: str | None, words: str
) -> None:
    script = f"UPDATE FILE 'm.py' MOVE {move}"
    write(client, SOURCE + "    z = 1\n")
    if code is None:
        client.preview(script)
        return
    error = client.refuse(script)
    assert error["code"] == code, error
    assert words in error["message"]


def test_move_that_empties_a_class_is_refused(client: Client) -> None:
    source = "class A:\n    def f(self):\n        return 1\n\n\nx = 1\n"
    move = "UPDATE CLASS 'A' FROM FILE 'm.py' MOVE METHOD 'f' INSERT BEFORE LINE 'x = 1'"
    error = refused(client, source, move)
    assert error["code"] == "BREAKS_SYNTAX"
    assert "pass" in error["suggestions"][0]
    keep = "UPDATE FILE 'm.py' INSERT INTO CLASS 'A' TOP WITH CONTENT '@0:pass'\n"
    assert moved(client, source, keep + move) == (
        "class A:\n    pass\n\n\ndef f(self):\n    return 1\nx = 1\n"
    )


def test_definition_in_invalid_python_is_not_moved(client: Client) -> None:
    broken = "class A:\n    def f(self):\n        return 1\n\n    def g(self:\n        pass\n"
    script = "UPDATE FILE 'm.py' MOVE METHOD 'f' INSERT BEFORE CLASS 'A'"
    error = refused(client, broken, script)
    assert (error["code"], "no valid Python" in error["message"]) == ("UNSAFE_MOVE", True)


@cases(
    ("UPDATE FUNCTION 'h' FROM FILE 'm.py' MOVE BODY INSERT INTO FUNCTION 'h' TOP", "MOVE BODY"),
    ("UPDATE FILE 'm.py' MOVE CLASS 'B' TO FILE 'n.py' INSERT BEFORE LINE 1", "MOVE TO FILE"),
    ("UPDATE FILE 'm.py' MOVE LINE 1 TO FILE '../n.py' INSERT BEFORE LINE 1", "MOVE TO FILE"),
    ("UPDATE FUNCTION 'h' FROM FILE 'm.py' MOVE LINE 2 INSERT AFTER LINE 3", "to a LINE number"),
    ("UPDATE FILE 'm.py' MOVE VARIABLE 'x' INSERT AFTER LINE 3", "VARIABLE"),
)
def test_unsupported_move_form_is_refused_by_name(client: Client, script: str, named: str) -> None:
    error = refused(client, SOURCE, script)
    assert error["code"] == "UNSUPPORTED_CONSTRUCT"
    assert named in error["message"]
    unsupported = client.call("list_capabilities")["not_carried_out"]
    assert any(named in one for one in unsupported)


def test_relative_indentation_has_a_limit(client: Client) -> None:
    script = "UPDATE FILE 'a.txt' MOVE LINE 1 INSERT AFTER LINE 2 RELATIVE INDENTATION 99999999"
    assert refused(client, "a\nb\n", script, "a.txt")["code"] == "INDENTATION_OUT_OF_RANGE"


def test_parsed_move_has_a_summary(client: Client) -> None:
    script = "UPDATE CLASS 'A' FROM FILE 'm.py' MOVE METHOD 'f' INSERT INTO CLASS 'B' TOP"
    (command,) = client.call("parse_cedarscript", content=script)["commands"]
    assert command["summary"] == "Update m.py: move method f in class A into top class B"
    assert command["action"]["node"] == "MoveClause"
    assert command["action"]["insert_position"]["qualifier"] == "into_top"
    error = client.fail("parse_cedarscript", content="MOVE METHOD 'f' INSERT AFTER METHOD 'g'")
    assert "MOVE is a clause" in error["suggestions"][0]


PARTS = '''def f(x):
    """Doc."""
    if x:
        a = 1
    else:
        b = 2; c = 3
    text = """
    d = 4
    """
    return [
        x,
        a,
    ]


e = 5
'''
CHOICE = "SEGMENT STARTING AT LINE 'if x:' ENDING AT LINE"
SPACED, SHORT, PLAIN = "a\n  b\nc\n\n", "a\n  b\nc\n", "a\n  b\n\n    c\nd\n"
ENDED = "def f():\n    a = 1\n    b = 2\n    # the end\n"
MOVES = [
    # a line takes the indentation of its destination
    (SHORT, "LINE 'c' INSERT AFTER LINE 'b'", "a\n  b\n  c\n"),
    (SHORT, "LINE 'b' INSERT AFTER LINE 'c'", "a\nc\nb\n"),
    (SHORT, "LINE 'a' INSERT AFTER LINE 'c' RELATIVE INDENTATION 1", "  b\nc\n  a\n"),
    ("a:\n\tb\nc\n", "LINE 'c' INSERT BEFORE LINE 'b' RELATIVE INDENTATION 1", "a:\n\t\tc\n\tb\n"),
    (SHORT, "LINE 'c' INSERT AFTER LINE 'b' RELATIVE INDENTATION -1", "NO_CHANGE"),
    (PLAIN, "SEGMENT STARTING AT LINE 2 ENDING AT LINE 4 INSERT AFTER LINE 5", "a\nd\nb\n\n  c\n"),
    ("a\n\nb\n", "LINE 'b' INSERT BEFORE LINE EMPTY", "a\nb\n\n"),
    (SPACED, "LINE 'a' INSERT AFTER LINE 'b' RELATIVE INDENTATION -2", "NEGATIVE_INDENTATION"),
    (SPACED, "LINE 'b' INSERT BEFORE LINE EMPTY", "UNSAFE_MOVE"),
    (SPACED, "LINE 'b' INSERT AFTER LINE 'b'", "MOVE_INTO_ITSELF"),
    (SPACED, "SEGMENT STARTING AT LINE 3 ENDING AT LINE 1 INSERT AFTER LINE 4", "SEGMENT_REVERSED"),
    (SPACED, "FUNCTION 'a' INSERT AFTER LINE 4", "SYMBOLS_NEED_PYTHON"),
    (SPACED, "LINE 'a' INSERT AFTER FUNCTION 'b'", "SYMBOLS_NEED_PYTHON"),
    # lines of Python move as whole statements, if no other code gets another meaning
    (PARTS, "LINE 'a = 1' INSERT BEFORE LINE 'if x:'", "BREAKS_SYNTAX"),
    (PARTS, "LINE 'd = 4' INSERT AFTER LINE 'e = 5'", "BREAKS_SYNTAX"),
    (PARTS, "LINE 'e = 5' INSERT AFTER LINE 'd = 4'", "UNSAFE_MOVE"),
    (PARTS, "LINE 'x,' INSERT AFTER LINE 'a,'", "UNSAFE_MOVE"),
    (PARTS, 'LINE \'e = 5\' INSERT BEFORE LINE \'"""Doc."""\'', "UNSAFE_MOVE"),
    (PARTS, 'LINE \'"""Doc."""\' INSERT AFTER LINE \'e = 5\'', "UNSAFE_MOVE"),
    (PARTS, f"{CHOICE} 'a = 1' INSERT AFTER LINE 'e = 5'", "BREAKS_SYNTAX"),
    (
        PARTS,
        "LINE 'e = 5' INSERT INTO FUNCTION 'f' TOP",
        PARTS.replace("    if x", "    e = 5\n    if x").removesuffix("e = 5\n"),
    ),
    (
        PARTS,
        f"{CHOICE} 'b = 2; c = 3' INSERT AFTER LINE 'e = 5'",
        (
            'def f(x):\n    """Doc."""\n    text = """\n    d = 4\n    """\n    return [\n'
            "        x,\n        a,\n    ]\n\n\ne = 5\nif x:\n    a = 1\nelse:\n    b = 2; c = 3\n"
        ),
    ),
    (
        'class A:\n    "Doc."\n    x = 1\n',
        "LINE '\"Doc.\"' INSERT BEFORE LINE 'class A:'",
        "docstring stays",
    ),
    (
        'x = 1\n"note"\n\n\ndef f():\n    return 1\n',
        "LINE '\"note\"' INSERT BEFORE LINE 'return 1'",
        "would not be the same",
    ),
    (
        "if 1:\n    a = 1\nelse: b = 2\nc = 3\n\n\nd = 4\n",
        "LINE 'd = 4' INSERT AFTER LINE 'else: b = 2'",
        "would not come to stand",
    ),
    (
        "def f():\n    a = 1\nb = 2\n\n\nc = 3\n",
        "SEGMENT STARTING AT LINE 'a = 1' ENDING AT LINE 'b = 2' INSERT AFTER LINE 'c = 3'",
        "not made of whole statements",
    ),
    (
        "a = 1\n# f\ndef f():\n    pass\n",
        "SEGMENT STARTING AT LINE 'a = 1' ENDING AT LINE '# f' INSERT BEFORE FUNCTION 'f'",
        "lies in what is to be moved",
    ),
    (
        ENDED,
        "LINE 'b = 2' INSERT INTO FUNCTION 'f' BOTTOM",
        "def f():\n    a = 1\n    # the end\n    b = 2\n",
    ),
    (
        "def f():\n    pass\n    # the end\n\n\ndef g():\n    pass\n",
        "LINE '# the end' INSERT BEFORE FUNCTION 'g'",
        "def f():\n    pass\n\n\n# the end\ndef g():\n    pass\n",
    ),
]
"""The text, the move, and the text after it, or what the refusal says."""


@pytest.mark.parametrize(("text", "move", "after"), MOVES)
def test_lines_move_without_changing_other_code_or_are_refused(
    client: Client, text: str, move: str, after: str
) -> None:
    name = "a.txt" if text[0] == "a" and "#" not in text else "m.py"
    script = f"UPDATE FILE '{name}' MOVE {move}"
    if "\n" in after:
        assert moved(client, text, script, name) == after
    else:
        error = refused(client, text, script, name)
        assert after == error["code"] or after in error["message"]


NEWLINES = st.sampled_from(["\n", "\r\n", "\r"])
LINES = st.lists(
    st.text(alphabet="b \t\f\x85\u2028é", max_size=3).map("a".__add__), min_size=3, max_size=9
)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(LINES, NEWLINES, st.booleans(), st.data())
def test_text_lines_move_unchanged(
    client: Client, lines: list[str], newline: str, final: bool, data: st.DataObject
) -> None:
    numbers = st.integers(1, len(lines))
    first, last = sorted((data.draw(numbers), data.draw(numbers)))
    place = data.draw(numbers)
    where = data.draw(st.sampled_from(["BEFORE", "AFTER"]))
    end = newline if final else ""
    script = (
        f"UPDATE FILE 'a.txt' MOVE SEGMENT STARTING AT LINE {first} ENDING AT LINE {last} "
        f"INSERT {where} LINE {place}"
    )
    text = newline.join(lines) + end
    write(client, text, "a.txt")
    if first <= place <= last:
        assert client.refuse(script)["code"] == "MOVE_INTO_ITSELF"
        return
    wanted = splice(lines, first - 1, last, place - (where == "BEFORE"))
    if wanted == lines:
        assert client.refuse(script)["code"] == "NO_CHANGE"
        return
    client.carry_out(script)
    assert read(client, "a.txt") == newline.join(wanted) + end


def splice(lines: list[str], first: int, end: int, index: int) -> list[str]:
    marked = [*lines[:index], None, *lines[index:]]
    shift = index <= first
    block = marked[first + shift : end + shift]
    del marked[first + shift : end + shift]
    at = marked.index(None)
    return [line for line in [*marked[:at], *block, *marked[at + 1 :]] if line is not None]


BODIES = [
    ["return 1"],
    ['"""Doc.', "", "  two", '"""', "return 1"],
    ['x = f"""', "{1", '+ 2}"""', "# in between", "return [", "\tx,", "]"],
    ["if 1:", ">pass", "# a comment", "else:", ">pass", "", "# the last word"],
    ["x = 1 + \\", "  2; y = 3", "with open(x) as y, \\", ">>open(y):", ">return '''", "'''"],
    ["try:", ">pass", "except* OSError:", ">pass", "finally:", ">pass"],
    ["match 1:", ">case 1 | 2:", ">>return {", "1: 2}"],
]
HEADS = ["def {}(self):", "async def {}(self,", "@property\n@  other(1,\n 2)\ndef {}(self):"]
UNITS = st.sampled_from(["  ", "   ", "    ", "\t"])


class Writer:
    """Generates a module in which every definition has a unique name."""

    def __init__(self, data: st.DataObject) -> None:
        self.draw = data.draw
        self.lines: list[str] = []
        self.count = 0

    def module(self) -> str:
        if self.draw(st.booleans()):
            self.lines += ['"""Module."""', ""]
        self.body("", self.draw(UNITS), 0)
        return "".join(line + "\n" for line in self.lines)

    def body(self, white: str, unit: str, depth: int) -> None:
        if depth and self.draw(st.booleans()):
            self.lines += [f'{white}"""Doc.', "  of it", '"""']
        for _ in range(self.draw(st.integers(1, 3))):
            self.lines += self.draw(
                st.sampled_from([[], [""], ["", ""], [f"{white}# note"], [f"{white}v = 1", ""]])
            )
            if depth < 2 and self.draw(st.integers(0, 2)):
                self.lines.append(f"{white}class {self.name()}:")
                inner = self.draw(UNITS)
                self.body(white + inner, inner, depth + 1)
            else:
                self.function(white, unit)

    def function(self, white: str, unit: str) -> None:
        head = self.draw(st.sampled_from([*HEADS, "def {}(self): return 1"]))
        body = self.draw(st.sampled_from(BODIES))
        self.lines += [white + one for one in head.format(self.name()).split("\n")]
        if head.endswith(","):
            self.lines.append("b=1):")
        if head.endswith("1"):
            return
        if self.draw(st.integers(0, 3)) == 0:
            self.lines += [f"{white}{unit}def {self.name()}():", f"{white}{unit}{unit}pass"]
        quoted = False
        for one in body:
            depth = len(one) - len(one.lstrip(">"))
            line = one.lstrip(">")
            odd = quoted or not line
            self.lines.append(line if odd else white + unit * (depth + 1) + line)
            quoted ^= (line.count('"""') + line.count("'''")) % 2 == 1

    def name(self) -> str:
        self.count += 1
        return f"d{self.count}"


def parents(tree: ast.Module) -> dict[str, tuple[Any, Definition]]:
    """Map the name of each definition to its parent and its node."""
    found: dict[str, tuple[Any, Definition]] = {}
    for node in ast.walk(tree):
        for body in (getattr(node, "body", []), getattr(node, "orelse", [])):
            for one in body if isinstance(body, list) else []:
                if isinstance(one, DEFINITIONS):
                    found[one.name] = (node, one)
    return found


def kind(found: tuple[Any, Definition]) -> str:
    parent, node = found
    if isinstance(node, ast.ClassDef):
        return "CLASS"
    return "METHOD" if isinstance(parent, ast.ClassDef) else "FUNCTION"


def expected(text: str, name: str, where: str, place: str) -> ast.Module | str:
    """Compute the tree after a MOVE from the tree alone, or return the error code."""
    tree = ast.parse(text)
    known = parents(tree)
    parent, node = known[name]
    target_parent, target = known[place]
    if any(inner is target for inner in ast.walk(node)):
        return "MOVE_INTO_ITSELF"
    into = where.startswith("INTO")
    if into and target.body[0].lineno == target.lineno:
        return "ONE_LINE_BODY"
    destination = target.body if into else target_parent.body
    docstring = into and ast.get_docstring(target) is not None
    parent.body.remove(node)
    if where == "INTO TOP":
        index = int(docstring)
    elif into:
        index = len(destination)
    else:
        index = destination.index(target) + (where == "AFTER")
    destination.insert(index, node)
    if not parent.body:
        return "BREAKS_SYNTAX"
    return tree if docstrings(tree) == docstrings(ast.parse(text)) else "UNSAFE_MOVE"


def stripped(text: str) -> Counter[str]:
    return Counter(line.strip() for line in text.split("\n") if line.strip())


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_definition_move_changes_nothing_else(client: Client, data: st.DataObject) -> None:
    text = Writer(data).module()
    known = parents(ast.parse(text))
    names = st.sampled_from(sorted(known))
    name, place = data.draw(names), data.draw(names)
    where = data.draw(st.sampled_from(["BEFORE", "AFTER", "INTO TOP", "INTO BOTTOM"]))
    wanted = expected(text, name, where, place)
    marker = f"{kind(known[place])} '{place}'"
    side = f"INTO {marker} {where.split()[1]}" if where.startswith("INTO") else f"{where} {marker}"
    if data.draw(st.booleans()):
        what = f"UPDATE FILE 'm.py' MOVE {kind(known[name])} '{name}'"
    else:
        what = f"UPDATE {kind(known[name])} '{name}' FROM FILE 'm.py' MOVE WHOLE"
    script = f"{what} INSERT {side}"
    write(client, text)
    if isinstance(wanted, str):
        assert client.refuse(script)["code"] == wanted
        return
    result = client.ask(
        "tools/call", name="apply_cedarscript", arguments={"commands": script, "dry_run": False}
    )["result"]
    if result.get("isError"):
        assert result["structuredContent"]["code"] == "NO_CHANGE", result["structuredContent"]
        assert ast.dump(ast.parse(text)) == ast.dump(wanted)
        return
    after = read(client)
    compile(after, "m.py", "exec")
    assert ast.dump(ast.parse(after)) == ast.dump(wanted)
    assert stripped(after) == stripped(text)
    assert after.count("\n") == text.count("\n")


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_python_line_move_keeps_all_statements_or_is_refused(
    client: Client, data: st.DataObject
) -> None:
    text = Writer(data).module()
    lines = text.split("\n")[:-1]
    numbers = st.integers(1, len(lines))
    first, place = data.draw(numbers), data.draw(numbers)
    last = min(len(lines), first + data.draw(st.integers(0, 3)))
    assume(not first <= place <= last)
    where = data.draw(st.sampled_from(["BEFORE", "AFTER"]))
    write(client, text)
    script = (
        f"UPDATE FILE 'm.py' MOVE SEGMENT STARTING AT LINE {first} ENDING AT LINE {last} "
        f"INSERT {where} LINE {place}"
    )
    result = client.ask(
        "tools/call", name="apply_cedarscript", arguments={"commands": script, "dry_run": False}
    )["result"]
    after = read(client)
    if result.get("isError"):
        assert result["structuredContent"]["code"] in REFUSALS
        assert after == text
        return
    compile(after, "m.py", "exec")
    wanted = splice(lines, first - 1, last, place - (where == "BEFORE"))
    assert [one.strip() for one in after.split("\n")[:-1]] == [one.strip() for one in wanted]
    assert shapes(after) == shapes(text)


def docstrings(tree: ast.Module) -> dict[str, str | None]:
    return {
        getattr(node, "name", ""): ast.get_docstring(node, clean=False)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, *DEFINITIONS)) and node.body
    }


def shapes(text: str) -> Counter[str]:
    """Count all statements without their nested ones, and the docstrings of all definitions."""
    tree = ast.parse(text)
    found = Counter(f"{name}: {words}" for name, words in docstrings(tree).items())
    for node in list(ast.walk(tree)):
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            if isinstance(getattr(node, name, None), list):
                setattr(node, name, [])
        if isinstance(node, ast.stmt):
            found[ast.dump(node)] += 1
    return found
