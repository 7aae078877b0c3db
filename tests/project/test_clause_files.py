"""How many files a clause touches, and that the harness names none."""

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from mcp_touchstone.catalog.clause import Clause
from mcp_touchstone.catalog.loader import BOTH, CLIENTS, rows
from mcp_touchstone.catalog.threat import Threat
from tests.commands import CHECKOUT

NAMED: Final = {
    "discovery/recon.py": "says why no answer could be matched to its request",
    "discovery/silence.py": "tries why a server does not answer, before any scenario",
    "engine/facts.py": "leaves out threats that run programs where it judges what stays inside",
    "properties/runner.py": "leaves out plain lines that break what each property rests on",
    "fleet/containers.py": "leaves out what a container changes at the end of a process",
}
"""Module of the harness that names clauses -> the reason."""

LINES: Final = 72
"""Lines of Python and TOML for each judged clause, with its mutants, at most."""

ID: Final = re.compile(r"client-[a-z0-9-]+")


def strings(path: Path) -> set[str]:
    """Return the texts in a Python file."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def test_the_harness_names_no_clause() -> None:
    package = CHECKOUT / "src" / "mcp_touchstone"
    ids = {clause.id for clause in rows(BOTH)}
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if ids & strings(path)
    }

    assert found == set(NAMED)


@pytest.fixture(scope="module")
def places() -> dict[str, set[str]]:
    """Return the files that name each clause on clients; a test may use any as an example."""
    ids = {clause.id for clause in rows(CLIENTS)}
    found: dict[str, set[str]] = {one: set() for one in ids}
    folders = ("src", "conformance", "security_suite", "reference_server", "scripts")
    code = [path for folder in folders for path in (CHECKOUT / folder).rglob("*.py")]
    named = {
        path: strings(path) for path in [*code, *(CHECKOUT / "tests" / "mutants").rglob("*.py")]
    }
    sentences = CHECKOUT / "scripts" / "sentences.csv"
    named[sentences] = set(ID.findall(sentences.read_text("utf-8")))
    for path, texts in named.items():
        for one in ids & texts:
            found[one].add(path.relative_to(CHECKOUT).as_posix())
    return found


@pytest.mark.parametrize("clause", rows(CLIENTS), ids=lambda clause: str(clause.id))
def test_a_clause_on_clients_touches_at_most_four_files(
    clause: Clause, places: dict[str, set[str]]
) -> None:
    rule = f"conformance/clients/{clause.chapter}.py"
    proofs = {one for one in places[clause.id] if one.startswith("tests/mutants/clients/")}

    rules = set() if clause.same_as else {rule}  # else that on servers judges it

    assert places[clause.id] - proofs - {"scripts/sentences.csv"} == rules
    assert len(proofs) == 1, "its mutant"


def test_a_judged_clause_has_a_bounded_number_of_lines() -> None:
    folders = (CHECKOUT / "conformance", CHECKOUT / "tests" / "mutants")
    files = [path for folder in folders for path in folder.rglob("*.*")]
    texts = [path.read_text("utf-8") for path in files if path.suffix in {".py", ".toml"}]
    judged = [clause for clause in rows(BOTH) if clause.judged and not isinstance(clause, Threat)]

    assert sum(text.count("\n") for text in texts) / len(judged) <= LINES
