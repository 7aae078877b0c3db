"""Third-party readers accept our reports and refuse invalid ones."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import junitparser
import pydantic
import pytest
from pydantic_sarif.model import (  # type: ignore[import-untyped]
    StaticAnalysisResultsFormatSarifVersion210JsonSchema as Log,
)

from mcp_touchstone.report import junit, machine, sarif
from mcp_touchstone.results.comparison import Change
from mcp_touchstone.results.run import Execution, Run
from tests import canned
from tests.cases import cases
from tests.conftest import HERE
from tests.report.test_reports import EVIL, MIXED, PING, known, run, since

SCHEMA = HERE.parent / "src" / "mcp_touchstone" / "report" / "schema.json"
RUNS = {
    "evil": lambda: run(MIXED, actual=EVIL),
    "known": lambda: known(run(MIXED), PING),
    "since": lambda: run(MIXED, since=since(Change.NEW)),
    "trouble": lambda: run({}, trouble=EVIL),
    "interrupted": lambda: run({}, execution=Execution(interrupted=True)),
    "canned": canned.run,
    "canned-since": lambda: canned.run(since=canned.since()),
}
made = pytest.mark.parametrize("make", RUNS.values(), ids=RUNS)


def changed(document: dict[str, Any], path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """Return a copy of a document with one value replaced."""
    copy: dict[str, Any] = json.loads(json.dumps(document))
    place: Any = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return copy


@made
def test_sarif_round_trips_through_third_party_models(make: Callable[[], Run]) -> None:
    """The models forbid unknown members and serialize to the same document."""
    document = json.loads(sarif.render(make()))

    read = Log.model_validate(document)
    assert json.loads(read.model_dump_json(by_alias=True, exclude_unset=True)) == document


@cases(
    (("version",), "2.0.0"),
    (("runs", 0, "results", 0, "levl"), "error"),
    (("runs", 0, "results", 0, "level"), "grave"),
    (("runs", 0, "results", 0, "message"), "text"),
    (("runs", 0, "tool", "driver", "rules", 0, "id"), 7),
    (("runs", 0, "invocations", 0, "executionSuccessful"), "perhaps"),
)
def test_third_party_models_refuse_invalid_sarif(
    path: tuple[str | int, ...], value: object
) -> None:
    with pytest.raises(pydantic.ValidationError):
        Log.model_validate(changed(sarif.document(canned.run()), path, value))


@pytest.mark.skipif("SARIF_SCHEMA" not in os.environ, reason="SARIF_SCHEMA names the OASIS schema")
@made
def test_sarif_matches_the_official_schema(make: Callable[[], Run]) -> None:
    schema = json.loads(Path(os.environ["SARIF_SCHEMA"]).read_text("utf-8"))

    jsonschema.validators.validator_for(schema)(schema).validate(json.loads(sarif.render(make())))


TOLERATED = {"SARIF2005"}
"""SARIF2005 asks for the address of the tool's own site, and there is none."""


@pytest.mark.skipif(
    "SARIF_MULTITOOL" not in os.environ,
    reason="SARIF_MULTITOOL names the program of the npm package @microsoft/sarif-multitool-linux",
)
@made
def test_sarif_passes_the_code_scanning_validator(make: Callable[[], Run], tmp_path: Path) -> None:
    (tmp_path / "in.sarif").write_text(sarif.render(make()), "utf-8")
    subprocess.run(
        [
            os.environ["SARIF_MULTITOOL"],
            "validate",
            "in.sarif",
            "--rule-kind",
            "Sarif;Ghas",
            "--output",
            "out.sarif",
        ],
        cwd=tmp_path,
        env={**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    log = json.loads((tmp_path / "out.sarif").read_text("utf-8-sig"))["runs"][0]

    assert [r for r in log["results"] if r["ruleId"] not in TOLERATED] == []


@made
def test_junitparser_reads_consistent_counts(make: Callable[[], Run], tmp_path: Path) -> None:
    path = tmp_path / "out.xml"
    path.write_text(junit.render(make()), "utf-8")

    read = junitparser.JUnitXml.fromfile(str(path))
    cases = [case for suite in read for case in suite]
    kinds = [type(result).__name__ for case in cases for result in case.result]
    assert (read.tests, read.failures) == (len(cases), kinds.count("Failure"))
    assert read.errors == kinds.count("Error")
    assert len(cases) == len({(case.classname, case.name) for case in cases})


def test_junitparser_counts_the_expected_results(tmp_path: Path) -> None:
    path = tmp_path / "out.xml"
    path.write_text(junit.render(run(MIXED, actual=EVIL)), "utf-8")

    read = junitparser.JUnitXml.fromfile(str(path))
    results = [type(r).__name__ for suite in read for case in suite for r in case.result]
    assert (read.tests, read.failures, read.errors) == (7, 3, 1)
    assert sorted(results) == ["Error", "Failure", "Failure", "Failure", "Skipped"]


@pytest.mark.skipif("JUNIT_XSD" not in os.environ, reason="JUNIT_XSD names junit-10.xsd of Jenkins")
@made
def test_junit_matches_the_jenkins_schema(make: Callable[[], Run]) -> None:
    xmlschema = pytest.importorskip("xmlschema")

    xmlschema.XMLSchema(os.environ["JUNIT_XSD"]).validate(junit.render(make()))


@made
def test_json_report_matches_the_shipped_schema(make: Callable[[], Run]) -> None:
    schema = json.loads(SCHEMA.read_text("utf-8"))

    jsonschema.validate(machine.document(make()), schema)


@cases((("format",), 99), (("verdicts", 0, "outcome"), "fine"), (("verdicts", 0, "clause"), 7))
def test_shipped_schema_refuses_an_invalid_json_report(
    path: tuple[str | int, ...], value: object
) -> None:
    schema = json.loads(SCHEMA.read_text("utf-8"))

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(changed(machine.document(canned.run()), path, value), schema)
