"""Files of osv-scanner, and the comparison of the table with a copy of OSV."""

import datetime as dt
import json
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.advisories import osv
from mcp_touchstone.advisories.table import load
from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.catalog.sdk import PYPI, Package
from scripts.advisories import differences, main, row
from tests.advisories.test_table import AUDIENCE, ROW
from tests.cases import cases


def scan(*packages: dict[str, Any]) -> str:
    return json.dumps({"results": [{"source": {"path": "uv.lock"}, "packages": list(packages)}]})


def found(name: str, version: str, ecosystem: str, *ids: list[str]) -> dict[str, Any]:
    return {
        "package": {"name": name, "version": version, "ecosystem": ecosystem},
        "vulnerabilities": [{"id": one, "aliases": others} for one, *others in ids],
    }


def test_packages_are_read_and_other_advisories_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "osv.json"
    mine = found("mcp", "2.1.1", "PyPI", ["PYSEC-1", AUDIENCE])
    others = [["GHSA-x", "CVE-1"], ["GHSA-y"]]
    path.write_text(scan(mine, mine, found("jinja2", "3.0", "PyPI", *others)), "utf-8")

    read = osv.read(path)

    assert read.packages == (Package("mcp", "2.1.1", PYPI), Package("jinja2", "3.0", PYPI))
    assert read.others == len(others)


@cases(
    ("{}", "it has no results"),
    ("[]", "it has no results"),
    ('{"results": 1}', "it has no results"),
    ("no", "invalid JSON"),
    ('{"results": [1, {"packages": 1}]}', "its results name no package"),
    ('{"results": [{"packages": [{"package": {"name": 1}}]}]}', "its results name no package"),
)
def test_file_that_is_none_of_osv_scanner_is_one_line(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "osv.json"
    path.write_text(text, "utf-8")

    with pytest.raises(InputError) as error:
        osv.read(path)

    assert why in str(error.value)
    assert "osv-scanner --format json" in str(error.value)
    assert "\n" not in str(error.value)


def test_file_without_packages_is_read(tmp_path: Path) -> None:
    path = tmp_path / "osv.json"
    path.write_text('{"results": []}', "utf-8")

    assert osv.read(path).packages == ()


def test_members_of_other_types_are_passed_over(tmp_path: Path) -> None:
    whole = found("a", "1", "npm") | {"vulnerabilities": [1, {"id": 1, "aliases": 1}]}
    path = tmp_path / "osv.json"
    path.write_text(json.dumps({"results": [1, {"packages": [1, {"package": 1}, whole]}]}), "utf-8")

    assert osv.read(path).others == 0


# --- a copy of OSV

ENTRY: dict[str, Any] = {
    "id": "GHSA-2",
    "aliases": ["CVE-2"],
    "summary": "another fault",
    "published": "2026-02-03T00:00:00Z",
    "affected": [
        {
            "package": {"ecosystem": "npm", "name": "server"},
            "ranges": [{"events": [{"introduced": "0"}, {"fixed": "1.4.0"}]}],
        }
    ],
}


def test_missing_advisory_and_other_range_are_named(tmp_path: Path) -> None:
    table = tmp_path / "table.toml"
    table.write_text(ROW, "utf-8")
    known = {**ENTRY, "id": "GHSA-1", "aliases": []}
    copy = tmp_path / "all.zip"
    with zipfile.ZipFile(copy, "w") as archive:
        for entry in (ENTRY, known, {**ENTRY, "id": "GHSA-3", "withdrawn": "2026-02-04"}):
            archive.writestr(f"{entry['id']}.json", json.dumps(entry))

    said = [sentence for sentence, _entry in differences(copy, load(table))]

    assert said == [
        "GHSA-1: OSV has server before 1.4.0, which the table has not",
        "GHSA-2 is missing: server: another fault",
    ]


def test_equal_ranges_and_other_packages_are_no_difference(tmp_path: Path) -> None:
    table = tmp_path / "table.toml"
    table.write_text(ROW, "utf-8")
    events = [{"introduced": "1.0"}, {"fixed": "1.2"}]
    package = {"ecosystem": "npm", "name": "server"}
    same = {**ENTRY, "id": "CVE-9", "aliases": ["GHSA-1"]}
    same["affected"] = [{"package": package, "ranges": [{"events": events}]}]
    other = json.loads(json.dumps(ENTRY).replace('"server"', '"elsewhere"'))
    folder = tmp_path / "copy"
    folder.mkdir()
    for number, entry in enumerate((same, other)):
        (folder / f"{number}.json").write_text(json.dumps(entry), "utf-8")

    assert list(differences(folder, load(table))) == []


def test_row_of_a_missing_advisory_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "new.toml"
    path.write_text(row(ENTRY, dt.date(2026, 3, 1)), "utf-8")

    (made,) = load(path)

    assert (made.id, made.aliases, made.read) == ("GHSA-2", ("CVE-2",), dt.date(2026, 3, 1))
    assert made.untested == "nobody has looked yet which rule shows it"
    assert tomllib.loads(path.read_text("utf-8"))["advisory"][0]["affected"] == [
        {"registry": "npm", "package": "server", "fixed": "1.4.0"}
    ]


def test_script_ends_with_1_if_something_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 0
    entry = json.loads(json.dumps(ENTRY).replace('"server"', '"@modelcontextprotocol/sdk"'))
    (tmp_path / "one.json").write_text(json.dumps(entry), "utf-8")

    assert main([str(tmp_path)]) == 1
    assert main([str(tmp_path), "--add"]) == 1
    assert '\n[[advisory]]\nid = "GHSA-2"\n' in capsys.readouterr().out


@cases(
    ("one.json", b"[]", "one.json: it is no entry of OSV"),
    ("one.json", b"\xff", "one.json: it is no entry of OSV"),
    ("one.json", b'{"id": "GHSA-2", "affected": 1}', "one.json: it is no entry of OSV"),
    ("copy.zip", b"no archive", "copy.zip: it is neither a folder nor a zip file of OSV"),
)
def test_script_says_in_one_line_what_is_no_copy_of_osv(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes, why: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)

    with pytest.raises(SystemExit) as end:
        main([str(path if path.suffix == ".zip" else tmp_path)])

    assert end.value.code == 2
    assert why in capsys.readouterr().err.splitlines()[-1]
