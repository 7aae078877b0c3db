"""One hostile text in every place of a server, through every command and every kind of report."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import tomllib
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

import mcp_touchstone
from mcp_touchstone import cli
from mcp_touchstone.bridge.child import Child, Launch
from mcp_touchstone.gate import toml_text
from mcp_touchstone.report.text import cell
from mcp_touchstone.transport.process import LaunchError
from tests.hostile_words import HOSTILE

SERVER: Final = (sys.executable, str(Path(__file__).parents[1] / "hostile_words.py"))
SILENT: Final = "import sys; sys.stderr.write({!r}); sys.exit(3)"
WORD: Final = HOSTILE.replace("\x00", "").replace("\ud83d", "")
"""The hostile text as far as a command can hold it."""

DYING: Final = (sys.executable, "-c", SILENT.format(WORD))
CHOSEN: Final = ("--revision", "2025-11-25", "--sandbox", "off")
PLACES: Final = ("lifecycle", "tools", "resources", "prompts", "logging", "jsonrpc", "stdio")
SELECTED: Final = tuple(word for place in PLACES for word in ("--select", place))

SPANS: Final = re.compile(r"(?ms)^(`{3,})\w*\n.*?^\1$|(`+)(?!`).+?(?<!`)\2(?!`)")
"""Code in Markdown."""


def assert_tame(text: str) -> None:
    """Nothing in a text controls a terminal."""
    hidden = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    found = {char for char in text if unicodedata.category(char) in hidden} - {"\n"}
    assert found == set()


def assert_plain_markdown(text: str) -> None:
    """Nothing of the server's is a link, an element, a mention or a cell of a table."""
    assert_tame(text)
    prose = SPANS.sub("", text)
    for sign in ("@evil", "http://evil", "www.evil", "#12", "<script", "![i]"):
        assert sign not in prose, sign
    for table in re.findall(r"(?m)^\|[^\n]*\n(?:\|[^\n]*\n)+", prose):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def assert_plain_html(text: str) -> None:
    assert_tame(text)
    assert "<script>evil" not in text
    assert "evil.example/x.png" not in re.sub(r">[^<]*<", "><", text)


def assert_tame_files(folder: Path) -> None:
    for path in (path for path in folder.rglob("*") if path.is_file()):
        assert_tame(path.read_bytes().decode("utf-8"))


def ran(*words: object, folder: Path, status: Iterable[int] = (0, 1, 2)) -> str:
    """Run a command of its own; assert that its output is tame; return it."""
    done = subprocess.run(
        [sys.executable, "-m", "mcp_touchstone", *map(str, words)],
        cwd=folder,
        capture_output=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"},
    )
    text = (done.stdout + done.stderr).decode("utf-8")
    assert done.returncode in status, text
    assert_tame(text)
    assert not [line for line in text.split("\n") if line.startswith("::error::")]
    return text


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with every report on the hostile server."""
    folder = tmp_path_factory.mktemp("checked")
    kinds = {
        "html": "a.html",
        "markdown": "a.md",
        "junit": "a.xml",
        "sarif": "a.sarif",
        "badge": "b.json",
    }
    reports = [word for kind, name in kinds.items() for word in ("--report", f"{kind}:{name}")]
    words = ("check", "-v", "--for", "all", *CHOSEN, *SELECTED, "--json", "a.json", *reports)
    text = ran(*words, "--save", "wire", "--scripts", "sh", "--", *SERVER, folder=folder)
    assert "evil" in text
    return folder


def test_reports_hold_no_control_and_no_markup_of_the_server(checked: Path) -> None:
    for path in (path for path in checked.rglob("*") if path.is_file()):
        assert "evil" in path.read_text("utf-8") or path.suffix == ".sh", path
    assert_tame_files(checked)
    assert_plain_html((checked / "a.html").read_text("utf-8"))
    assert_plain_markdown((checked / "a.md").read_text("utf-8"))


def test_colours_are_the_only_sequences_of_a_terminal(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mcp_touchstone",
            "check",
            "-v",
            "--color",
            "always",
            *CHOSEN,
            "--for",
            "all",
            "--select",
            "lifecycle",
            "--",
            *SERVER,
        ],
        cwd=tmp_path,
        capture_output=True,
        timeout=300,
        check=False,
    )
    text = done.stdout.decode("utf-8")

    assert "\x1b[1m" in text
    assert set(re.findall(r"\x1b(?!\[[0-9;]*m|\[\?25[hl]|\[2K|\[1A)", text)) == set()
    assert not {"\x07", "\u202e", "\u2066", "\x00", "\x9b"} & {*text}


@pytest.mark.slow
def test_comparison_of_reports_is_tame(checked: Path, tmp_path: Path) -> None:
    older = tmp_path / "older.json"
    ran("check", *CHOSEN, "--select", "ping", "--json", older, "--", *DYING, folder=tmp_path)
    for form in ("text", "markdown", "json"):
        text = ran("diff", "--format", form, older, checked / "a.json", folder=tmp_path)
        if form == "markdown":
            assert_plain_markdown(text)


@pytest.mark.slow
def test_first_look_configuration_and_recording_are_tame(tmp_path: Path) -> None:
    assert "evil" in ran("recon", *CHOSEN, "--", *SERVER, folder=tmp_path)
    ran("recon", "--json", *CHOSEN, "--", *SERVER, folder=tmp_path)
    ran("init", "--sandbox", "off", "--", *SERVER, folder=tmp_path, status=(0,))
    assert "evil" in (tmp_path / "touchstone.toml").read_text("utf-8")
    recorded = ("--folder", "golden", "--revision", "2025-11-25")
    ran("golden", "record", *recorded, "--", *SERVER, folder=tmp_path)
    (file, *_) = sorted((tmp_path / "golden").rglob("*.json"))
    file.write_text(file.read_text("utf-8").replace("script", "other"), "utf-8")
    ran("golden", "verify", "-v", *recorded, "--", *SERVER, folder=tmp_path)
    assert_tame_files(tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ("explain", WORD),
        ("list", WORD),
        ("check", f"--{WORD}"),
        ("check", "--select", WORD, "--", "true"),
        ("check", "--report", WORD, "--", "true"),
        ("check", "--config", WORD),
        ("check", "--suite", WORD, "--", "true"),
        ("check", "--", WORD),
        ("bridge", "--", WORD),
        ("fleet", WORD),
        ("fleet", "report", WORD),
        ("diff", WORD, WORD),
        ("golden", "verify", "--folder", WORD, "--", *SERVER),
    ],
)
def test_errors_are_tame(words: tuple[str, ...], tmp_path: Path) -> None:
    ran(*words, folder=tmp_path, status=(2,))


def test_server_that_dies_with_words_is_reported_tame(tmp_path: Path) -> None:
    reports = ("--report", "markdown:a.md", "--report", "html:a.html")
    text = ran("check", "-v", *CHOSEN, *reports, "--", *DYING, folder=tmp_path, status=(2,))

    assert "evil" in text
    assert_plain_markdown((tmp_path / "a.md").read_text("utf-8"))
    assert_plain_html((tmp_path / "a.html").read_text("utf-8"))


@pytest.mark.slow
def test_servers_of_a_file_with_hostile_names_are_tame(tmp_path: Path) -> None:
    """Also the reports that several servers share."""
    commands = [*[list(SERVER)] * 2, [f"/none/{WORD}"]]
    word = WORD.replace("/", "")
    tables = [
        f"[targets.{toml_text.key(f'{word} {number}')}]\ncommand = {toml_text.value(command)}\n"
        for number, command in enumerate(commands)
    ]
    (tmp_path / "touchstone.toml").write_text("".join(tables), "utf-8")
    reports = ("--report", "markdown:a.md", "--report", "junit:a.xml", "--report", "sarif:a.sarif")
    text = ran("check", "--select", "lifecycle", *CHOSEN, *reports, folder=tmp_path)

    assert "not checked" in text
    assert_plain_markdown((tmp_path / "a.md").read_text("utf-8"))
    assert_tame_files(tmp_path)


def test_file_of_a_client_with_hostile_names_is_tame(tmp_path: Path) -> None:
    entries = {f"{HOSTILE} {one}": {"command": SERVER[0], "args": [SERVER[1]]} for one in "ab"}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": entries}), "utf-8")

    assert "evil" in ran("check", "--config", "mcp.json", folder=tmp_path, status=(2,))


def rows(folder: Path) -> Path:
    """Write rows of a fleet as another machine may have made them."""
    list_ = folder / "list.jsonl"
    entries = [
        {"name": HOSTILE, "command": list(SERVER)},
        {"name": f"{HOSTILE} dies", "command": list(DYING)},
        {"name": f"{HOSTILE} none", "command": [f"/none/{WORD}"]},
        {"name": f"{HOSTILE} url", "url": f"http://127.0.0.1/{HOSTILE}"},
    ]
    list_.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")
    return list_


@pytest.mark.slow
def test_fleet_is_tame(tmp_path: Path) -> None:
    listed = rows(tmp_path)
    assert "evil" in ran("fleet", "--list-only", listed, folder=tmp_path, status=(0,))
    words = ("--inside", "none", "--select", "lifecycle", "--revision", "2025-11-25")
    text = ran("fleet", listed, *words, "--out", "rows.jsonl", folder=tmp_path, status=(0,))
    assert "evil" in text
    found = (tmp_path / "rows.jsonl").read_text("utf-8").splitlines()
    found.sort(key=lambda line: '"class":"started"' not in line)
    foreign: dict[str, Any] = json.loads(found[0])
    foreign["sdk"] = [{"name": HOSTILE, "version": HOSTILE, "registry": "npm"}]
    foreign |= {"language": HOSTILE, "registry": HOSTILE, "revisions": [HOSTILE]}
    foreign["start"] = {"class": "started", "line": HOSTILE}
    text = "\n".join([json.dumps(foreign), *found[1:], ""])
    (tmp_path / "rows.jsonl").write_text(text, "utf-8")
    files = ("--html", "a.html", "--csv", "a.csv", "--names")
    text = ran("fleet", "report", "rows.jsonl", *files, folder=tmp_path, status=(0,))

    assert "evil" in text
    assert_plain_html((tmp_path / "a.html").read_text("utf-8"))
    table = (tmp_path / "a.csv").read_bytes().decode("utf-8").replace("\r\n", "\n")
    assert_tame(table)
    cells = [one for row in csv.reader(io.StringIO(table)) for one in row]
    assert any("1+1" in one for one in cells)
    assert not [one for one in cells if one.startswith(("=", "+", "-", "@"))]


@pytest.mark.slow
def test_registry_record_is_compared_tame(tmp_path: Path) -> None:
    """The name of the record and that of the server are printed."""
    package = {"registryType": "npm", "identifier": "a", "transport": {"type": "stdio"}}
    record = {"name": f"{HOSTILE} other", "version": f"{HOSTILE} 2", "packages": [package]}
    (tmp_path / "server.json").write_text(json.dumps(record), "utf-8")
    npx = tmp_path / "npx"
    npx.write_text(f'#!/bin/sh\nexec "{SERVER[0]}" "{SERVER[1]}"\n', "utf-8")
    npx.chmod(0o755)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mcp_touchstone",
            "check",
            "--from",
            "server.json",
            "--select",
            "lifecycle",
            *CHOSEN,
        ],
        cwd=tmp_path,
        capture_output=True,
        timeout=300,
        check=False,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    text = (done.stdout + done.stderr).decode("utf-8")

    assert "record: " in text
    assert_tame(text)


@pytest.mark.slow
def test_pytest_prints_tame(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-rA",
            "-p",
            "no:cacheprovider",
            "--mcp-server",
            f'"{SERVER[0]}" "{SERVER[1]}"',
            "--mcp-revision",
            "2025-11-25",
            "--mcp-select",
            "tools",
            "--mcp-select",
            "lifecycle",
            "--junitxml",
            "a.xml",
        ],
        cwd=tmp_path,
        capture_output=True,
        timeout=300,
        check=False,
    )
    text = (done.stdout + done.stderr).decode("utf-8")

    assert "evil" in text
    assert_tame(text)
    assert_tame((tmp_path / "a.xml").read_text("utf-8"))


def test_bridge_passes_words_on_tame(capfd: pytest.CaptureFixture[str]) -> None:
    gone: list[str] = []
    child = Child(
        Launch(command=SERVER, env={**os.environ}, cwd=None), lambda *_: None, gone.append
    )
    child.send(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}')
    child.end()
    text = capfd.readouterr().err

    assert "no message" in text
    assert text.count("evil") > 5
    assert_tame(text)


def test_error_of_the_api_is_tame() -> None:
    with pytest.raises(LaunchError) as error, mcp_touchstone.connect(list(DYING)):
        pass

    assert "evil" in str(error.value)
    assert_tame(str(error.value))


def test_command_line_prints_tame_in_process(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", HOSTILE]) == 2
    assert_tame(capsys.readouterr().err)


def test_cell_of_markdown_links_and_mentions_nothing() -> None:
    text = cell(f"{HOSTILE} GH-12 !12 HTTPS://x ~~a~~ $b$")

    assert_plain_markdown(text)
    assert "GH-12" not in text
    assert "!12" not in text
    assert "://" not in text
    assert "&#8203;" in text


def test_string_of_toml_shows_what_it_holds() -> None:
    text = toml_text.quoted(HOSTILE)

    assert_tame(text)
    assert tomllib.loads(f"a = {text}")["a"] == HOSTILE.replace("\ud83d", "?")
