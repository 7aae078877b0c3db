"""How the reference server is configured: arguments over environment over defaults."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reference_server.operation.options import HELP, STATE_KEY, UsageError, read
from reference_server.settings import DENIED, DENIED_FOR_WRITES, Settings
from tests.cases import cases
from tests.reference_client import CHECKOUT, PATIENCE, Spawned, modern

VARIABLES = {
    "CEDARSCRIPT_ROOT": "roots",
    "CEDARSCRIPT_READ_ONLY": "read_only",
    "CEDARSCRIPT_MAX_FILE_SIZE": "max_file_size",
    "CEDARSCRIPT_LOG_LEVEL": "log_level",
    "CEDARSCRIPT_LOG_FORMAT": "log_format",
    "TEXT_EDITOR_MCP_ENABLED": "text_editor",
}
ARGUMENTS = (
    "--feature",
    *("--root", "--read-only", "--max-file-size", "--deny", "--deny-write", "--no-default-deny"),
    *(
        *("--allow", "--confirm-writes", "--deprecated", "--text-editor", "--page-size"),
        *("--max-line", "--log-level"),
    ),
    *("--log-format", "--verbose-log", "--help", "--version"),
)


def run_program(
    *arguments: str, environment: dict[str, str] | None = None, program: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", *(program or ("reference_server",)), *arguments],
        cwd=CHECKOUT,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=2 * PATIENCE,
        check=False,
    )


def test_no_arguments_give_the_defaults() -> None:
    assert vars(read([], {"PATH": "/bin"})) == vars(Settings())


@cases(
    (["--read-only"], {"read_only": True}),
    (["--read-only=no"], {"read_only": False}),
    (["--max-file-size", "4096"], {"max_file_size": 4096}),
    (["--max-file-size=1073741824"], {"max_file_size": 1024**3}),
    (["--confirm-writes"], {"confirm_writes": True}),
    (["--deprecated"], {"deprecated": True}),
    (["--text-editor=0"], {"text_editor": False}),
    (["--page-size", "5"], {"page_size": 5}),
    (["--max-line", "1000"], {"max_line": 1000}),
    (["--log-level", "WARNING"], {"log_level": "warning"}),
    (["--log-level=Debug", "--log-level=Off"], {"log_level": "off"}),
    (["--log-format", "Text"], {"log_format": "text"}),
    (["--verbose-log", "some/file"], {"verbose_log": "some/file"}),
    (["--deny", "target"], {"deny": (*DENIED, "target")}),
    (["--deny=a/", "--deny", "b"], {"deny": (*DENIED, "a/", "b")}),
    (["--deny", "*.pem", "--deny=private/**"], {"deny": (*DENIED, "*.pem", "private/**")}),
    (["--deny", "/build", "--deny=/x/"], {"deny": (*DENIED, "/build", "/x/")}),
    (["--deny-write", "dist"], {"deny_writes": (*DENIED_FOR_WRITES, "dist")}),
    (["--deny-write", "*.lock"], {"deny_writes": (*DENIED_FOR_WRITES, "*.lock")}),
    (["--no-default-deny"], {"deny": (), "deny_writes": ()}),
    (["--deny", "x", "--no-default-deny"], {"deny": ("x",), "deny_writes": ()}),
    (["--no-default-deny=false"], {"deny": DENIED, "deny_writes": DENIED_FOR_WRITES}),
    (["--feature", "a", "--feature=b"], {"features": ("a", "b")}),
    (["--allow", "*.py", "--allow=docs/*"], {"allow": ("*.py", "docs/*")}),
)
def test_each_argument_sets_one_setting(arguments: list[str], expected: dict[str, Any]) -> None:
    assert vars(read(arguments, {})) == {**vars(Settings()), **expected}


def test_roots_are_kept_in_order(tmp_path: Path) -> None:
    first, second = str(tmp_path / "b"), str(tmp_path / "a")
    Path(first).mkdir()
    Path(second).mkdir()

    assert read(["--root", first, f"--root={second}"], {}).roots == (first, second)
    assert read([], {"CEDARSCRIPT_ROOT": os.pathsep.join([first, second])}).roots == (first, second)


@cases(
    ({"CEDARSCRIPT_READ_ONLY": "true"}, "read_only", True),
    ({"CEDARSCRIPT_READ_ONLY": "FALSE"}, "read_only", False),
    *(({"CEDARSCRIPT_READ_ONLY": word}, "read_only", True) for word in ("1", "yes", "On")),
    *(({"CEDARSCRIPT_READ_ONLY": word}, "read_only", False) for word in ("0", "No", "off")),
    ({"CEDARSCRIPT_MAX_FILE_SIZE": "17"}, "max_file_size", 17),
    ({"CEDARSCRIPT_LOG_LEVEL": "ERROR"}, "log_level", "error"),
    ({"CEDARSCRIPT_LOG_FORMAT": "text"}, "log_format", "text"),
    ({"TEXT_EDITOR_MCP_ENABLED": "false"}, "text_editor", False),
)
def test_each_variable_sets_one_setting(
    environment: dict[str, str], attribute: str, value: Any
) -> None:
    assert vars(read([], environment)) == {**vars(Settings()), attribute: value}


def test_argument_overrides_a_valid_or_invalid_variable(tmp_path: Path) -> None:
    environment = {
        "CEDARSCRIPT_ROOT": "/no/such/place",
        "CEDARSCRIPT_READ_ONLY": "true",
        "CEDARSCRIPT_MAX_FILE_SIZE": "unlimited",
        "CEDARSCRIPT_LOG_LEVEL": "error",
        "CEDARSCRIPT_LOG_FORMAT": "text",
        "TEXT_EDITOR_MCP_ENABLED": "false",
    }
    arguments = [
        *("--root", str(tmp_path), "--read-only=false", "--max-file-size", "5"),
        *("--log-level", "info", "--log-format", "json", "--text-editor"),
    ]
    expected = {"roots": (str(tmp_path),), "max_file_size": 5, "log_level": "info"}

    assert vars(read(arguments, environment)) == {**vars(Settings()), **expected}


LONG = "9" * 5000
BAD_NUMBERS = (
    *("0", "-1", "+5", "1e3", "10MB", "", "²", "0x10", "1.5", "1073741825", LONG, " 5", "inf"),
)
BAD_VALUES = [
    *(("CEDARSCRIPT_MAX_FILE_SIZE", bad) for bad in BAD_NUMBERS),
    *(("--max-file-size", bad) for bad in BAD_NUMBERS),
    *(("--max-line", bad) for bad in ("0", "unlimited", "none")),
    *(("--page-size", bad) for bad in ("0", "1001", "all")),
    *(("CEDARSCRIPT_READ_ONLY", bad) for bad in ("", "2", "ture", "read-only", "null")),
    *(("TEXT_EDITOR_MCP_ENABLED", bad) for bad in ("", "nope")),
    *(("--read-only", "perhaps"), ("--confirm-writes", "x"), ("--text-editor", "")),
    *(("CEDARSCRIPT_LOG_LEVEL", bad) for bad in ("", "loud", "warn", "10")),
    *(("--log-level", "loud"), ("--log-format", "xml"), ("CEDARSCRIPT_LOG_FORMAT", "jsonl")),
    *(("CEDARSCRIPT_ROOT", bad) for bad in ("", "/no/such/place", f".{os.pathsep}", "a\nb")),
    *(("--root", bad) for bad in ("", "/no/such/place", "~/src", "${workspaceFolder}", "a\0b")),
    *(("--deny", bad) for bad in ("", "/", "a/../b", "/etc/*", "..", "a\\b", "a//b", "!x")),
    *(("--deny", bad) for bad in ("*", "**", "**/*", "{a,b}", "~/x", "a/./b", "\0")),
    *(("--deny-write", "."), ("--allow", ""), ("--allow", "/etc/*"), ("--allow", "../*")),
    *(("--verbose-log", ""), ("--feature", ""), ("--feature", "a=b")),
]


@pytest.mark.parametrize(("source", "value"), BAD_VALUES)
def test_bad_value_error_is_one_line_naming_its_source(source: str, value: str) -> None:
    is_argument = source.startswith("--")
    arguments = [f"{source}={value}"] if is_argument else []
    with pytest.raises(UsageError) as refused:
        read(arguments, {} if is_argument else {source: value})

    said = str(refused.value)
    assert said.startswith(f"{source} '")
    assert said.isprintable()
    assert len(said) < 200
    assert any(word in said for word in ("write", "there is no such"))


def test_state_key_is_read_from_the_environment_and_hidden_in_errors() -> None:
    assert read([], {}).state_key is None
    assert read([], {STATE_KEY: "k" * 32}).state_key == "k" * 32
    with pytest.raises(UsageError, match=f"^{STATE_KEY}: write 32 characters") as refused:
        read([], {STATE_KEY: "hunter2"})
    assert "hunter2" not in str(refused.value)
    with pytest.raises(UsageError, match=f"did you mean {STATE_KEY}"):
        read([], {"CEDARSCRIPT_STATEKEY": "k" * 32})


@cases(
    (["--bogus"], "unknown argument '--bogus'"),
    (["/srv/project"], "a directory is given with --root"),
    (["--root"], "--root needs a value"),
    (["--root", "--read-only"], "--root needs a value"),
    (["--readonly"], "did you mean --read-only?"),
    (["--max_file_size=5"], "did you mean --max-file-size?"),
    (["--read-only", "true"], "unexpected argument 'true'"),
)
def test_unexpected_argument_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("?", r"\?")):
        read(words, {})


@cases(
    ("CEDARSCRIPT_READONLY", "CEDARSCRIPT_READ_ONLY"),
    ("cedarscript_read_only", "CEDARSCRIPT_READ_ONLY"),
    ("CEDARSCRIPT_MAXFILESIZE", "CEDARSCRIPT_MAX_FILE_SIZE"),
)
def test_misspelt_variable_is_refused_with_a_suggestion(name: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"did you mean {meant}"):
        read([], {name: "1"})


def test_unrelated_variable_is_ignored() -> None:
    assert vars(read([], {"CEDARSCRIPT_THEME": "dark"})) == vars(Settings())


@pytest.mark.skipif(
    os.name == "nt" or (hasattr(os, "geteuid") and os.geteuid() == 0), reason="root may list it"
)
def test_root_that_cannot_be_listed_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0)
    with pytest.raises(UsageError, match="may not list"):
        read(["--root", str(tmp_path)], {})
    tmp_path.chmod(0o700)


@cases(
    (["--max-file-size=0"], {}, b"--max-file-size '0'"),
    ([], {"CEDARSCRIPT_READ_ONLY": "maybe"}, b"CEDARSCRIPT_READ_ONLY 'maybe'"),
    ([], {"CEDARSCRIPT_LOG_LEVEL": "\x1b[2J\n{}"}, b"CEDARSCRIPT_LOG_LEVEL '\\x1b[2J\\n{}'"),
)
def test_bad_configuration_prints_one_line_and_exits_2(
    arguments: list[str], environment: dict[str, str], said: bytes
) -> None:
    done = run_program(*arguments, environment=environment)

    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.startswith(b"reference_server: " + said)
    assert done.stderr.count(b"\n") == 1


def test_help_lists_arguments_variables_and_defaults() -> None:
    done = run_program("--root", "/no/such/place", "--help")
    shown = done.stdout.decode()

    assert done.returncode == 0
    assert done.stderr == b""
    assert [name for name in (*ARGUMENTS, *VARIABLES, STATE_KEY) if f" {name}" not in shown] == []
    for default in (*DENIED, *DENIED_FOR_WRITES, "10485760", "16777216", "warning", "json", "100"):
        assert default in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_every_public_setting_has_an_option() -> None:
    inner = {
        *("state_key", "hooks", "workers", "queue", "drain_seconds", "stop_seconds"),
        *("ask_seconds", "state_folder"),
    }
    given = {name[2:].replace("-", "_") for name in ARGUMENTS if name in HELP}
    given = (given | {"roots", "deny_writes", "features"}) - {"help", "version", "no_default_deny"}
    given -= {"root", "deny_write", "feature"}

    assert given == set(vars(Settings())) - inner


def test_serve_forwards_its_arguments_and_uses_its_own_name(tmp_path: Path) -> None:
    serve = ("mcp_touchstone", "serve")

    assert run_program("--help", program=serve).stdout.startswith(b"usage: mcp-touchstone serve")
    wrong = run_program("--page-size=0", program=serve)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith(b"mcp-touchstone serve: --page-size '0'")
    (tmp_path / "only-here.txt").write_text("found")
    arguments = ("--root", str(tmp_path), "--log-level=off")
    with Spawned(*arguments, command=(sys.executable, "-m", *serve)) as client:
        given = {"path": "only-here.txt"}
        client.send(modern(1, "tools/call", name="file_read", arguments=given))
        assert "found" in client.hear()["result"]["structuredContent"].values()
