"""Hostile servers get the right verdict and one clear message in time, and leave nothing."""

import os
import re
import shlex
import sys
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mcp_touchstone.sandbox.sandbox import Method, probe
from tests.conftest import HERE
from tests.forked_runs import Nursery, Ran
from tests.hostile_cases import GROUPS, MIB, SANDBOXED, Case, hostile

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="a nursery forks"),
    pytest.mark.slow,
]

ANY = re.MULTILINE
SECONDS = 500.0
"""Deadline of a run, beside seven others on a machine that has much else to do."""

SMALL = ("--root-size", "16")

REPORTS = {
    "html": "report.html",
    "markdown": "report.md",
    "junit": "report.xml",
    "sarif": "report.sarif",
    "badge": "report.svg",
    "json": "report.json",
}


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery


def check(nursery: Nursery, folder: Path, name: str, case: Case, *options: str) -> Ran:
    """Judge a hostile server; it is given its root, a folder beside it, and its argument."""
    folder.mkdir()
    (folder / "outside").mkdir()
    (folder / "outside" / "keep").write_text("this is none of its business\n")
    server = hostile(name.partition(" ")[0], "{root}", str(folder / "outside"), case.argument)
    return nursery.run(
        [
            "check",
            "--timeout",
            str(case.patience),
            "--revision",
            "2025-11-25",
            "--examples",
            "0",
            "--select",
            case.select,
            *options,
            "--",
            *server,
        ],
        folder,
        seconds=SECONDS,
        env={"COLUMNS": "100", "NO_COLOR": "1"},
    )


def wrong(ran: Ran, case: Case, folder: Path) -> list[str]:
    """List every deviation from the expected outcome."""
    out = " ".join(ran.out.split())  # a long name of a folder breaks another line
    found = [f"{said!r} is not said" for said in case.said if " ".join(said.split()) not in out]
    if ran.status != case.status:
        found.append(f"status {ran.status}, not {case.status}")
    if "Traceback" in ran.out + ran.err:
        found.append("a traceback")
    found += [f"{char!r} on the screen" for char in hidden(ran.out + ran.err)]
    if ran.peak > case.memory:
        found.append(f"{ran.peak / MIB:.0f} MiB of memory")
    for left, what in (
        (ran.threads, "threads"),
        (ran.descriptors, "descriptors"),
        (ran.files, "files"),
        (ran.processes, "processes"),
    ):
        if left:
            found.append(f"{what} were left: {left}")
    if not (folder / "outside" / "keep").exists():
        found.append("a file outside the root is gone")
    return found


def hidden(text: str) -> set[str]:
    """Return the control and formatting characters of a text."""
    return {c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs"}} - {"\n"}


@pytest.mark.parametrize("group", GROUPS)
def test_hostile_servers_get_their_verdict_in_time_and_leave_nothing(
    group: str, nursery: Nursery, tmp_path: Path
) -> None:
    def judged(name: str, case: Case) -> str:
        options = list(SMALL) if group == "disk" else []
        if group == "screen":
            options = [
                f"--report={kind}:{tmp_path / name / file}" for kind, file in REPORTS.items()
            ]
            options += ["--save", str(tmp_path / name / "wire")]
        ran = check(nursery, tmp_path / name, name, case, *options)
        problems = wrong(ran, case, tmp_path / name)
        problems += [] if group != "screen" else corrupted(tmp_path / name)
        return "\n".join([name, *problems, ran.out, ran.err]) if problems else ""

    cases = GROUPS[group]
    at_once = 3 if group == "floods" else 8
    with ThreadPoolExecutor(at_once) as threads:
        problems = [text for text in threads.map(judged, cases, cases.values()) if text]

    assert not problems, "\n\n".join(problems)


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize(
    "name", [*(name for name in GROUPS["disk"] if "files" not in name), *SANDBOXED]
)
def test_server_in_a_sandbox_is_ended_when_it_takes_too_much_of_the_disk(
    name: str, method: Method, nursery: Nursery, tmp_path: Path
) -> None:
    if why := probe(method):
        pytest.skip(why)
    case = (GROUPS["disk"] | SANDBOXED)[name]

    ran = check(nursery, tmp_path / "run", name, case, "--sandbox", method, *SMALL)

    assert not wrong(ran, case, tmp_path / "run"), ran.out + ran.err


def corrupted(folder: Path) -> list[str]:
    """List the reports with content that a terminal or a browser would execute."""
    found = []
    for path in [*(folder / file for file in REPORTS.values()), *(folder / "wire").rglob("*.*")]:
        text = path.read_text("utf-8")
        found += [f"{char!r} in {path.name}" for char in hidden(text)]
        if path.suffix == ".html" and re.search(r"<script>alert|<img src=x", text):
            found.append(f"markup in {path.name}")
        plain = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        if path.suffix == ".md" and re.search(r"<script|<img|^## owned|[^\\]\]\(", plain, ANY):
            found.append(f"markup in {path.name}")
        if re.search(r"^::", text, ANY):
            found.append(f"a workflow command in {path.name}")
    return found


def test_every_hostile_server_is_tried() -> None:
    texts = [path.read_text("utf-8") for path in HERE.glob("hostile/*.py") if path.stem != "kit"]
    servers = re.findall(r"^def ([^_]\w+)\(", "\n".join(texts), ANY)
    tried = {name.partition(" ")[0] for cases in (*GROUPS.values(), SANDBOXED) for name in cases}

    assert sorted(servers) == sorted(tried)


@pytest.mark.parametrize("kind", ["a file nobody may run", "a folder"])
def test_unrunnable_command_prints_one_line_and_exits_2(
    kind: str, nursery: Nursery, tmp_path: Path
) -> None:
    server = tmp_path / "server"
    if kind == "a folder":
        server.mkdir()
    else:
        server.write_text("#!/bin/sh\n")
    folder = tmp_path / "run"
    folder.mkdir()

    ran = nursery.run(["check", "--", str(server)], folder)

    assert ran.status == 2
    assert "(chmod +x)?" in ran.err
    assert ran.err.count("\n") == 1
    assert not ran.files


def test_server_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    pexpect = pytest.importorskip("pexpect")
    words = [
        *("-m", "mcp_touchstone", "check", "--select", "ping-empty-response", "--revision"),
        "2025-11-25",
    ]

    out, status = pexpect.run(
        shlex.join([sys.executable, *words, "--", *hostile("writes_to_the_terminal")]),
        timeout=SECONDS,
        withexitstatus=True,
        env={**os.environ, "TERM": "xterm"},
    )

    assert status == 0, out
    assert b"1 pass" in re.sub(rb"\x1b\[[0-9;]*m", b"", out)
    assert b"owned" not in out


def test_crash_is_attributed_to_its_scenario(nursery: Nursery, tmp_path: Path) -> None:
    case = Case(status=1, select="answers_a_ping")
    ran = check(nursery, tmp_path / "run", "crashes_on_the_third_request", case)

    assert "FAIL  ping-empty-response" in ran.out
    assert ran.out.count("the server left (SIGSEGV)") == 1


def test_check_removes_its_folders(nursery: Nursery, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    script = tmp_path / "server.py"
    script.write_text(
        "import pathlib, sys\n"
        "root = pathlib.Path(sys.argv[1])\n"
        "(root / 'locked').mkdir(exist_ok=True)\n"
        "(root / 'locked' / 'file').write_text('x')\n"
        "(root / 'locked').chmod(0)\n"
        f"print(root, file=open({str(tmp_path / 'seen')!r}, 'a'))\n"
    )
    env = {"HOME": str(tmp_path / "home")}
    ran = nursery.run(["check", "--", sys.executable, "-S", str(script), "{root}"], folder, env=env)
    roots = [Path(line) for line in (tmp_path / "seen").read_text().splitlines()]

    # A server that leaves at once may refuse the place of its root, so a second one is tried.
    assert roots[0].is_relative_to(folder / "worlds")
    assert roots[-1].is_relative_to(tmp_path / "home")
    assert not any(root.parent.exists() for root in roots)
    assert ran.files == []
