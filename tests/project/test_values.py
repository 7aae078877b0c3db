"""A run is made of values: no module writes to a value of another module."""

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_touchstone.connection.server_profile import ServerProfile, Spoken
from mcp_touchstone.results.run import CaseResult, PlannedCase, Run, Verdict
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.transport.live_transcript import LiveTranscript
from mcp_touchstone.wire.transcript import Transcript
from tests.conftest import HERE

VALUES: Final = (CaseResult, PlannedCase, Run, ServerProfile, Spoken, Subject, Verdict)

WRITERS: Final = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "pop", "remove", "setdefault"}
    | {"sort", "update"}
)
"""Methods that change a list, a set or a dictionary."""

TRANSCRIPTS: Final = frozenset({"client", "part", "record", "server", "transcript"})
"""Names of variables and attributes that are a transcript in some module."""

OTHERS: Final = frozenset(
    {
        "case",
        "known",
        "one",
        "planned",
        "profile",
        "result",
        "run",
        "slot",
        "spoken",
        "subject",
        "verdict",
    }
)
"""Names of variables and attributes that are one of the values in some module."""


def members(*values: Any) -> frozenset[str]:
    grown = {"decided", "discovered"}  # they have methods for those that add to them
    return frozenset(field.name for value in values for field in fields(value)) - grown


NAMED: Final = {
    **dict.fromkeys(TRANSCRIPTS, members(LiveTranscript, Transcript)),
    **dict.fromkeys(OTHERS, members(*VALUES)),
}
"""Name of a variable or attribute -> the members of the values that it may be."""


def written(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a statement or call changes."""
    if isinstance(node, ast.Assign | ast.Delete):
        for target in node.targets:
            yield from target.elts if isinstance(target, ast.Tuple) else [target]
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For):
        yield node.target
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from [node.func.value] if node.func.attr in WRITERS else []


def writes(text: str) -> Iterator[str]:
    """Yield the writes of a module to members of values that are not its own ``self``."""
    for node in ast.walk(ast.parse(text)):
        for found in written(node):
            target = found
            while isinstance(target, ast.Subscript):
                target = target.value
            if isinstance(target, ast.Attribute):
                owner = ast.unparse(target.value).partition("[")[0]
                name = owner.rpartition(".")[2]
                if target.attr in NAMED.get(name, ()):
                    yield f"{node.lineno}: {ast.unparse(target)}"  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", VALUES)
def test_value_is_frozen(value: Any) -> None:
    assert value.__dataclass_params__.frozen


@pytest.mark.parametrize(
    "text",
    [
        "planned.seconds = 1.0",
        "run.verdicts.append(verdict)",
        "connection.transcript.replay = ()",
        "profile.spoken[revision].lists['tools'] = []",
        "del profile.refused[revision]",
        "for verdict.judgements in both:\n    pass",
    ],
)
def test_write_is_found(text: str) -> None:
    assert len([*writes(text)]) == 1


def sources() -> Iterator[Path]:
    for folder in ("src", "conformance", "security_suite"):
        yield from sorted((HERE.parent / folder).rglob("*.py"))


DRAFT: Final = "src/mcp_touchstone/discovery/recon.py"
"""It makes the profile, from a draft of its own."""


def test_no_module_writes_to_a_value_of_another() -> None:
    found = [
        f"{name}:{one}"
        for path in sources()
        if (name := path.relative_to(HERE.parent).as_posix()) != DRAFT
        for one in writes(path.read_text("utf-8"))
    ]

    assert found == []
