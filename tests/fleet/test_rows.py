"""Fleets: the file of rows, and the report on it."""

import csv
import io
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone import cli
from mcp_touchstone.fleet import counts, drive, report
from mcp_touchstone.fleet import judge as judge_module
from mcp_touchstone.fleet.drive import FleetError, Rows
from mcp_touchstone.fleet.entry import Start
from tests.cases import cases
from tests.fleets import PLAN, fleet, row_of, small, write_list, written


def test_cut_off_row_is_removed(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", row_of("a"))
    with path.open("a") as file:
        file.write('{"key": "oci:b", "st')

    with Rows(path, PLAN, resume=True) as rows:
        assert rows.done == {"oci:a"}
        rows.append(row_of("b"))

    assert [row["key"] for row in drive.read(path)] == ["oci:a", "oci:b"]


def test_failures_of_ours_are_judged_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    written(path, row_of("a", start={"class": "harness", "line": "x"}))

    with Rows(path, PLAN, resume=True) as rows:
        assert rows.done == set()


def test_file_with_rows_needs_resume(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", row_of("a"))

    with pytest.raises(FleetError, match="--resume"), Rows(path, PLAN, resume=False):
        pass


@cases({"tool": {"version": "0.0.1", "catalogue": "0" * 64}}, {"settings": {"check": ["--strict"]}})
def test_rows_of_others_are_not_mixed(tmp_path: Path, change: dict[str, Any]) -> None:
    path = written(tmp_path / "rows.jsonl", row_of("a", **change))

    with pytest.raises(FleetError, match="name another with --out"), Rows(path, PLAN, resume=True):
        pass
    new = written(tmp_path / "new.jsonl", row_of("b"))
    with pytest.raises(FleetError, match=r"different settings|of mcp-touchstone 0\."):
        counts.gather([new, path])


def test_one_fleet_writes_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"

    with (
        Rows(path, PLAN, resume=False),
        pytest.raises(FleetError, match="another fleet"),
        Rows(path, PLAN, resume=True),
    ):
        pass


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of two pages."""
    place = tmp_path / "disk"
    place.mkdir()
    size = f"size={2 * os.sysconf('SC_PAGESIZE')}"
    words = ["mount", "-t", "tmpfs", "-o", size, "none", str(place)]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a file system needs root on Linux")
    yield place
    subprocess.run(["umount", place], check=True)


def test_full_disk_leaves_whole_rows(small_disk: Path) -> None:
    path = small_disk / "rows.jsonl"

    def fill() -> None:
        with Rows(path, PLAN, resume=False) as rows:
            for number in range(1000):
                rows.append(row_of(str(number)))

    with pytest.raises(FleetError, match=r"rows.jsonl: No space left on device; .* --resume"):
        fill()

    whole = [row["name"] for row in drive.read(path)]
    assert path.read_bytes().count(b"\n") == len(whole) > 1
    assert path.read_bytes().endswith(b"\n")
    (small_disk / "rows.jsonl.lock").unlink(missing_ok=True)
    subprocess.run(["mount", "-o", "remount,size=1m", small_disk], check=True)
    with Rows(path, PLAN, resume=True) as rows:
        assert len(rows.done) == len(whole)
        rows.append(row_of("later"))
    assert [row["name"] for row in drive.read(path)] == [*whole, "later"]


def test_full_disk_ends_the_fleet_with_one_line(small_disk: Path, tmp_path: Path) -> None:
    lines = [json.dumps({"oci": f"image{number}"}) for number in range(100)]
    (tmp_path / "list.jsonl").write_text("\n".join(lines))
    words = fleet(tmp_path, "--out", str(small_disk / "rows.jsonl"))

    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=240)

    assert done.returncode == 2
    _, said = done.stderr.splitlines()  # after the line on the sandbox
    assert said.endswith("No space left on device; make room, then --resume continues")


STARTED = {"class": "started", "line": ""}


def verdicts(**outcomes: str) -> dict[str, Any]:
    return {"2025-11-25": {name.replace("_", "-"): one for name, one in outcomes.items()}}


@pytest.fixture
def rows_file(tmp_path: Path) -> Path:
    more = {"start": STARTED, "revisions": ["2025-11-25"]}
    sdk = {"sdk": [{"name": "mcp", "version": "1.2.3", "registry": "pypi"}], "language": "python"}
    broken = verdicts(path_parent="fail", ping_empty_response="warn")
    rows = [row_of("none")]
    for number in range(10):
        found = verdicts(ping_empty_response="pass" if number else "fail", lifecycle_x="unseen")
        rows.append(row_of(f"s{number}", verdicts=found, **sdk, **more))
    rows.append(row_of("found", verdicts=broken, sdk_faults=["ping-empty-response"], **more))
    return written(tmp_path / "rows.jsonl", *rows)


def test_a_few_servers_show_what_their_checks_came_to(tmp_path: Path) -> None:
    common = {"start": STARTED, "revisions": ["2025-11-25"]}
    fine = row_of("fine", **common, verdicts=verdicts(a="pass"), conclusion="passed")
    idle = {"conclusion": "not checked", "gap": "no file tool was attacked"}
    unattacked = row_of("unattacked", **common, verdicts=verdicts(a="pass"), **idle)
    late = {"conclusion": "not checked", "gap": "the run did not end", "interrupted": "--deadline"}
    slow = row_of("slow", **common, verdicts=verdicts(a="pass"), **late)
    holes = verdicts(traversal_dotdot="fail", traversal_sibling="fail", origin_refused="fail")
    bad = row_of("bad", **common, verdicts=holes, conclusion="failed")
    found = counts.gather([written(tmp_path / "rows.jsonl", fine, unattacked, slow, bad)])

    lines = [" ".join(line.split()) for line in report.text(found, None, names=False)]

    assert "oci:fine passed 0 0" in lines
    assert "oci:unattacked not checked: no file tool was attacked 0 0" in lines
    assert "oci:slow not checked: the run did not end 0 0" in lines
    assert "oci:bad failed 3 0 2 critical" in lines
    assert "2 critical" in report.html(found, None, names=False)


def test_columns_of_groups_have_room_for_long_names(tmp_path: Path) -> None:
    more = {"start": STARTED, "revisions": ["2025-11-25"]}
    names = ("@modelcontextprotocol/sdk", "mcp")
    rows = [
        row_of(name, sdk=[{"name": name, "version": "1.32.2", "registry": "npm"}], **more)
        for name in names
    ]
    found = counts.gather([written(tmp_path / "rows.jsonl", *rows)])
    lines = list(report.text(found, None, names=False))
    head = next(line for line in lines if line.startswith("  SDK "))
    groups = [line for line in lines if " 1.32 " in line]
    assert [len(line) for line in groups] == [len(head)] * len(names)


def test_few_servers_are_listed_one_by_one(rows_file: Path) -> None:
    broken = {"start": STARTED, "verdicts": verdicts(a="fail", b="fail")}
    some = row_of("sdk", **broken, sdk_faults=["b"])
    only = row_of("only-sdk", **broken, sdk_faults=["a", "b"])
    few = counts.gather([written(rows_file, some, only, resume=True)])
    written(rows_file, *(row_of(f"more{number}") for number in range(counts.FEW)), resume=True)
    many = counts.gather([rows_file])

    lines = list(report.text(few, None, names=False))
    assert "  oci:s0: ping-empty-response" in lines
    assert "  oci:sdk: a, b (SDK)" in lines
    assert "4 broke a rule, 1 of them only by faults of the SDK" in lines[0]
    assert "  oci:none: unsupported: an image: use --inside podman or --inside docker" in lines
    assert not any("oci:" in line for line in report.text(many, None, names=False))
    assert len(many.unstarted) == counts.FEW


@cases(
    (0, 10, 0.0, 0.2775), (1, 10, 0.0179, 0.4042), (10, 10, 0.7225, 1.0), (50, 100, 0.4038, 0.5962)
)
def test_interval_is_wilsons(part: int, whole: int, low: float, high: float) -> None:
    assert report.interval(part, whole) == pytest.approx((low, high), abs=1e-4)


def test_report_counts_servers_of_each_rule(rows_file: Path) -> None:
    fleet_of = counts.gather([rows_file])
    ping = fleet_of.whole.rules["ping-empty-response"]

    assert fleet_of.starts == {"unsupported": 1, "started": 11}
    assert (ping.applied, ping.held, ping.broken, ping.failed, ping.sdk) == (11, 9, 2, 1, 1)
    assert fleet_of.whole.rules["lifecycle-x"].unseen == 10
    assert fleet_of.groups["SDK"]["mcp 1.2"].servers == 10
    assert fleet_of.groups["SDK"]["unknown"].failing == 1


def test_verdicts_on_a_program_that_did_not_start_do_not_count(tmp_path: Path) -> None:
    usage = {"class": "usage", "line": "usage: tool [-h]"}
    row = row_of("tool", start=usage, verdicts=verdicts(stdio_x="fail"))
    fleet_of = counts.gather([written(tmp_path / "rows.jsonl", row)])

    assert fleet_of.unstarted == {"oci:tool": "usage: usage: tool [-h]"}
    assert (fleet_of.whole.failing, fleet_of.whole.rules, fleet_of.failing) == (0, {}, {})
    assert fleet_of.revisions == {}


def test_csv_has_a_line_for_each_group_and_rule(rows_file: Path) -> None:
    lines = list(csv.DictReader(io.StringIO(report.table(counts.gather([rows_file])))))

    (ping,) = (
        one for one in lines if (one["group"], one["rule"]) == ("all", "ping-empty-response")
    )
    assert (ping["applied"], ping["broken"], ping["failed"]) == ("11", "2", "1")
    assert float(ping["low"]) < 2 / 11 < float(ping["high"])
    assert {one["group"] for one in lines} >= {"all", "registry", "SDK", "language", "revision"}


def test_security_findings_in_a_large_fleet_are_named_only_on_request(tmp_path: Path) -> None:
    row = row_of("dangerous", start=STARTED, verdicts=verdicts(traversal_dotdot="fail"))
    more = [row_of(f"more{number}") for number in range(counts.FEW)]
    fleet_of = counts.gather([written(tmp_path / "rows.jsonl", row, *more)])

    for names in (False, True):
        text = "\n".join(report.text(fleet_of, None, names=names))
        page = report.html(fleet_of, None, names=names)
        assert ("dangerous" in text) is names
        assert ("dangerous" in page) is names


def test_page_needs_nothing_else(rows_file: Path) -> None:
    page = report.html(counts.gather([rows_file]), None, names=False)

    assert "<svg" in page
    for word in ("http://", "https://", "<script", "src=", "@import", "url("):
        assert word not in page


def test_report_shows_what_changed(rows_file: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.jsonl"
    old.write_text("".join(line + "\n" for line in rows_file.read_text().splitlines()[:-1]))

    lines = report.changed(counts.gather([rows_file]), counts.gather([old]))

    assert "ping-empty-response: 1 of 10 before, 2 of 11 now" in lines


def test_last_row_of_a_server_counts(rows_file: Path) -> None:
    written(rows_file, row_of("none", start={"class": "hang", "line": "x"}), resume=True)

    assert counts.gather([rows_file]).starts == {"hang": 1, "started": 11}


def test_parquet_has_a_line_for_each_verdict(rows_file: Path, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "it's.parquet"

    report.parquet([rows_file], file)

    table = duckdb.read_parquet(str(file))
    counts = table.count("rule", groups="rule", projected_columns="rule").fetchall()
    (sdk,) = table.filter("sdk = 'mcp'").project("sdk_version").distinct().fetchall()
    assert dict(counts)["ping-empty-response"] == 11
    assert sdk == ("1.2.3",)


def test_command_line_lists_and_reports(
    rows_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_list(tmp_path, [small("a", tmp_path)])
    page, table = tmp_path / "a.html", tmp_path / "a.csv"

    assert cli.main(["fleet", str(tmp_path / "list.jsonl"), "--list-only"]) == 0
    assert capsys.readouterr().out == "command:a\n"
    assert (
        cli.main(["fleet", "report", str(rows_file), "--html", str(page), "--csv", str(table)]) == 0
    )
    assert "12 servers, 11 started, 2 broke a rule" in capsys.readouterr().out
    assert page.is_file()
    assert table.is_file()
    assert cli.main(["fleet", str(tmp_path / "gone.toml")]) == 2
    assert "gone.toml" in capsys.readouterr().err


def test_a_page_of_few_servers_links_their_reports_and_shows_no_shares(tmp_path: Path) -> None:
    files = tmp_path / "rows.files" / "a 1"
    files.mkdir(parents=True)
    (files / "report.html").write_text("<p>", "utf-8")
    kept = {**row_of("kept", start=STARTED, verdicts=verdicts(a="fail")), "files": str(files)}
    lost = {**row_of("lost", start=STARTED, verdicts=verdicts(a="pass")), "files": "javascript:x"}
    found = counts.gather([written(tmp_path / "rows.jsonl", kept, lost)])

    page = report.html(found, None, names=False, folder=tmp_path / "pages")

    assert '<a href="./../rows.files/a%201/report.html">report</a>' in page
    assert page.count("<a ") == 1
    assert "interval" not in page
    assert "#c0392b" not in page.partition("<h2>Groups")[0]
    assert "<dt>deadline<dd>" in page
    assert "[&quot;" not in page


def test_a_server_to_which_no_chosen_rule_applies_is_no_fault_of_ours() -> None:
    line = "mcp-touchstone: nothing selected applies to this server: left out"

    assert judge_module._without_report(line, 2).kind is Start.UNSUPPORTED
    assert judge_module._without_report("mcp-touchstone: odd", 2).kind is Start.HARNESS
