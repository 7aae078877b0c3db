"""Lists, records and rows that a stranger wrote: a bad record is one server that is not started."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.fleet import drive
from mcp_touchstone.fleet.counts import gather
from mcp_touchstone.fleet.entry import Start
from mcp_touchstone.fleet.servers import read
from tests.cases import cases
from tests.odd_values import mutants

RECORD: dict[str, Any] = {
    "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
    "name": "io.example/a",
    "version": "1.0.0",
    "title": "A",
    "packages": [
        {
            "registryType": "pypi",
            "identifier": "a",
            "version": "1.0",
            "transport": {"type": "stdio"},
            "runtimeArguments": [{"type": "named", "name": "--from", "value": "a"}],
            "packageArguments": [
                {
                    "type": "positional",
                    "value": "{q}/x",
                    "isRequired": True,
                    "format": "filepath",
                    "valueHint": "folder",
                    "variables": {"q": {"default": "5", "isRequired": True}},
                },
                {"type": "named", "name": "--on", "isRequired": True, "format": "boolean"},
            ],
            "environmentVariables": [{"name": "A", "default": "b", "isRequired": True}],
        }
    ],
}
REMOTE: dict[str, Any] = {
    "name": "io.example/b",
    "version": "1",
    "remotes": [
        {
            "type": "streamable-http",
            "url": "https://{host}/mcp",
            "variables": {"host": {"value": "example.org"}},
            "headers": [{"name": "X", "value": "y", "isRequired": True}],
        }
    ],
}
GOOD = {"npm": "good@1.0.0"}
ROW: dict[str, Any] = {
    "npm": "a",
    "name": "A",
    "version": "1",
    "args": ["x"],
    "env": {"A": "b"},
    "script": "s",
    "cwd": "c",
    "prefix": "p",
}


def entries(folder: Path, *records: Any) -> list[Any]:
    path = folder / "list.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in records))
    return list(read(path, {}))


@pytest.mark.parametrize("record", [RECORD, REMOTE], ids=["package", "remote"])
def test_a_record_with_a_wrong_member_is_one_server_with_its_reason(
    record: dict[str, Any], tmp_path: Path
) -> None:
    refused = 0
    for mutant in mutants(record):
        if not isinstance(mutant.get("name"), str) or not {"packages", "remotes"} & {*mutant}:
            continue  # it is no record at all
        found = entries(tmp_path, mutant, GOOD)
        assert found[-1].package == "good"
        trouble = found[0].trouble
        refused += trouble is not None and "must be" in trouble.line
        assert trouble is None or (trouble.line and "\n" not in trouble.line)

    assert refused > 100


def test_a_wrong_member_of_a_row_is_a_line_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    for mutant in mutants(ROW):
        try:
            assert entries(tmp_path, mutant, GOOD)[-1].package == "good"
        except InputError as error:
            said = str(error)
            assert said.startswith(f"{path}:1"), said


@cases(
    ("npm", "file:/etc", ""),
    ("npm", "../local", ""),
    ("npm", "./local", ""),
    ("npm", "~/local", ""),
    ("npm", "/etc", ""),
    ("npm", "git+ssh://a.example/b", ""),
    ("npm", "user/repository", ""),
    ("npm", "http://a.example/x.tgz", ""),
    ("npm", "x.tgz", ""),
    ("npm", "x", "http://a.example"),
    ("npm", "x", "npm:y@1"),
    ("npm", "x", "file:."),
    ("npm", "x", "../y"),
    ("npm", "x", ".."),
    ("npm", "x", "user/repository"),
    ("npm", "x", "y.tar.gz"),
    ("npm", "@../x", ""),
    ("npm", "@a/b/c", ""),
    ("pypi", "x", "http://a.example"),
    ("pypi", "./x.whl", ""),
    ("pypi", "x.whl", ""),
    ("pypi", "x[a]/b", ""),
    ("pypi", "git+https://a.example/b", ""),
    ("oci", "oci:/etc", ""),
    ("oci", "dir", "etc"),
    ("oci", "docker-archive", "x"),
    ("oci", "../x", ""),
    ("oci", "docker://a.example/x", ""),
)
def test_a_package_that_is_no_name_is_not_installed(
    tmp_path: Path, registry: str, name: str, version: str
) -> None:
    package = {"registryType": registry, "identifier": name, "version": version}
    record = {"name": "io.example/a", "version": "1", "packages": [package]}
    (entry, _) = entries(tmp_path, record, GOOD)

    assert entry.trouble.kind is Start.UNSUPPORTED
    assert "no name and version of a package in a registry" in entry.trouble.line


@cases(
    ("npm", "@scope/name", "1.2.3-beta.1+x"),
    ("npm", "Name.with_all-~signs", "^1.2"),
    ("npm", "name", "next"),
    ("pypi", "a.B_c-d[http,x]", "1.0rc1.post2+local"),
    ("pypi", "a", "1!2.0.*"),
    ("oci", "ghcr.io:443/a/b_c.d", "v1.0"),
    ("oci", "a/b@sha256:" + "0" * 64, ""),
    ("oci", "a", "latest"),
)
def test_a_plain_name_is_a_package(tmp_path: Path, registry: str, name: str, version: str) -> None:
    package = {"registryType": registry, "identifier": name, "version": version}
    (entry,) = entries(tmp_path, {"name": "io.example/a", "version": "1", "packages": [package]})

    assert entry.trouble is None


def test_variables_do_not_multiply(tmp_path: Path) -> None:
    variables: dict[str, Any] = {"a": {"value": "x" * 100_000}}
    argument = {"type": "positional", "value": "{a}" * 1000, "variables": variables}
    package = {"registryType": "npm", "identifier": "a", "packageArguments": [argument]}
    (entry,) = entries(tmp_path, {"name": "io.example/a", "packages": [package]})

    assert "more than 131,072 characters" in entry.trouble.line


def test_a_row_of_results_with_a_wrong_member_is_a_line_with_its_place(tmp_path: Path) -> None:
    row = {
        "key": "npm:a",
        "name": "a",
        "registry": "npm",
        "package": "a",
        "version": "1",
        "language": "node",
        "tool": {"version": "1", "catalogue": "0"},
        "settings": {},
        "start": {"class": "started", "line": ""},
        "sdk": [{"name": "x", "version": "1"}],
        "revisions": ["2025-11-25"],
        "verdicts": {"2025-11-25": {"ping-empty-response": "fail"}},
        "sdk_faults": [],
        "interrupted": "",
        "files": "",
        "seconds": {"install": 0, "startup": 1, "run": 1, "total": 2},
    }
    path = tmp_path / "rows.jsonl"
    for mutant in (row, *mutants(row)):
        path.write_text(f"{json.dumps(mutant)}\n")
        try:
            gather([path])
        except InputError as error:
            assert str(error).startswith(f"{path}:1") or mutant is not row  # noqa: PT017
    path.write_text(f"{json.dumps(row)}\n")
    assert [*drive.read(path)] == [row]
