"""The table of options: commands, words and pages made from it, and options that work."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path

import pytest

from mcp_touchstone.catalog import loader as catalog
from mcp_touchstone.catalog.loader import CLIENTS, GATEWAYS
from mcp_touchstone.cli import main
from mcp_touchstone.config.parser import DESCRIPTION, parse
from mcp_touchstone.config.settings import FIELDS, OPTIONS, layer, words
from mcp_touchstone.config.toml_keys import KEYS
from mcp_touchstone.engine import load
from mcp_touchstone.pytest_plugin.options import ALL
from mcp_touchstone.target.server_settings import ServerSettings
from mcp_touchstone.target.target import ROOT, Target
from tests.config.test_config import SAME
from tests.conftest import HERE
from tests.fleets import SERVER as SMALL
from tests.fleets import record, row_of
from tests.project.test_offline import needs_namespaces
from tests.report.test_attest import key
from tests.tap import test_drive

DOCS = HERE.parent / "docs"


def test_table_of_keys_is_in_the_documentation() -> None:
    rows = [
        f"| `{key}` | {row.kind} | {', '.join(row.commands)} | {'yes' if row.in_pytest else ''} |"
        for key, row in KEYS.items()
    ]

    assert re.sub(" +", " ", "\n".join(rows)) in (DOCS / "reference" / "config.md").read_text(
        "utf-8"
    )


def test_table_of_pytest_options_is_in_the_documentation() -> None:
    text = (DOCS / "guides" / "pytest.md").read_text("utf-8")
    rows = "\n".join(line for line in text.splitlines() if line.startswith("| `--mcp"))

    assert {*re.findall(r"`--mcp-([a-z-]+)", rows)} == {*ALL}
    assert {*re.findall(r"`(mcp_[a-z_]+)`", rows)} == {
        f"mcp_{name.replace('-', '_')}" for name, row in ALL.items() if row.in_files
    }


def test_target_and_settings_use_the_same_names() -> None:
    assert ServerSettings.__dataclass_fields__.keys() <= FIELDS
    assert {*Target.__dataclass_fields__} - FIELDS == {
        *("without_network", "method", "unsafe", "starts", "places")
    }


def test_options_of_a_command_line_are_printed_and_read_back() -> None:
    given = layer(vars(parse(["check", *SAME]).options))

    assert layer(vars(parse(["check", *words(given, "check")]).options)) == given
    assert {*OPTIONS} - {*given} == {
        *("bundled", "since", "no_baseline", "update_baseline", "report", "json", "save"),
        *("update_budget", "client_http", "client_timeout", "scenario", "spec_version", "shard"),
        *("client_jobs", "scenario_baseline", "steps"),
        *("expects", "config_template", "upstream_port"),
        *("scripts", "verbose", "quiet", "color", "osv"),
        *("attest", "sign", "lock", "locked", "update_lock"),
    }


SERVER = (sys.executable, "-S", str(HERE / "toy_server.py"), ROOT, "read", "note", "hello")
ONE = ("--revision", "2025-11-25")
PING = (*ONE, "--select", "ping-empty-response", "--examples", "0")
STARTED = (
    *("--config", "t.toml", "--trust-config", "--target", "one", "--env", "A=1"),
    *("--cwd", "{root}"),
    *("--root-from", "seed", "--world", "world", "--timeout", "60"),
)
USED = (
    *("--call", 'read={"path": "README.md"}', "--resource", "note:///1", "--prompt", "hello"),
    *("--bindings", 'read={"tool": "read", "path": "path"}'),
)
BOXED = ("--sandbox", "auto", "--online", "--root-size", "64")
SMALL_OVER_HTTP = (sys.executable, "-S", str(HERE / "session_server.py"), "{port}")
HTTP = (
    *("--http", "http://127.0.0.1:{port}/mcp", "--header", "X-Key=env:HOME", "--ca-file", "ca.pem"),
    *("--token-command", "echo one", "--other-token-command", "echo two"),
    *("--intrusive", "--rate", "100", "--sdk", "mcp 1.30.0", "--", *SMALL_OVER_HTTP),
)
ISSUED = (
    *("--http", "http://127.0.0.1:{port}/mcp", "--issuer", "mock", "--scope", "read"),
    *("--env", "ISSUER={issuer}", "--", *SMALL_OVER_HTTP),
)
CHECKED = (
    *("--suite", "conformance", "--level", "MUST", "--attacks", "deep", "--attack-commands"),
    *(
        *("--accept-unbound", "--seed", "1", "--fail-on", "must", "--strict", "--promise"),
        *("audit", "--for", "cursor"),
    ),
    *("--baseline", "b.toml", "--update-baseline", "--jobs", "2", "--deadline", "300"),
    *("--budget", "budgets.toml", "--update-budget", "--advisories", "--osv", "osv.json"),
    *("--report", "junit:j.xml", "--json", "j.json", "--save", "saved", "--scripts", "scripts"),
    *("--verbose", "--color", "never"),
)
JUDGED = (
    *("--level", "MUST", "--strict"),
    *("--fail-on", "must", "--baseline", "b.toml", "--update-baseline", "--since", "old.json"),
    *("--report", "junit:j.xml", "--json", "j.json", "--verbose", "--color", "never"),
)
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBdjCCARugAwIBAgIUMxuEL5IXKhgNWBYG+3agSzMVYi4wCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjkwNDE5MDBaGA8yMTI2MTEwNTA0MTkw
MFowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABIlA
9y4bUmWssbR4wTmMocQFp8yOPyPXXn0vHB7pl7rbz21kb4L4Q37iTSslIR7erzsG
9TCtmQT+xT1baARpo2GjUzBRMB0GA1UdDgQWBBShaA3egO9cMUVqO/ro+J5HTBwQ
FTAfBgNVHSMEGDAWgBShaA3egO9cMUVqO/ro+J5HTBwQFTAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0kAMEYCIQCUBa5PKy2ucJthwSJvUaLRlnu8D2qywO+9
v2xJKwqMHwIhAOLbTWCbzuvS03aeEs2l7vEkQxNfTd/ZuqsEIkiY/y5S
-----END CERTIFICATE-----
"""
"""Of nobody, valid for a hundred years."""

QUIETLY = ("--no-baseline", "--quiet")
CLIENT = ("--scenario", "tools_call")
IDS = ("--select", "client-request-id-unique")
KEPT_AS_JSON = ("--json", "old.json", "--save", "kept")
OF_GATEWAYS = ("--select", "gateway-answers-come")
FOUND = "recorded/tools_call"
GOOD = ("--", sys.executable, "-c", test_drive.GOOD + test_drive.CLOSE)
STEPPED = (
    *("--scenario-baseline", "--steps"),
    shlex.join([sys.executable, "-c", test_drive.GOOD + test_drive.CLOSE, "{server}"]),
)
TRANSPORT = ("--", sys.executable, "-c", test_drive.TRANSPORT)
GOLDEN = (*ONE, "--folder", "kept", "--update")
SIGNED = ("--attest", "s.json", "--sign", "own.pem")
RULES = (*PING, "--suite", "conformance", "--no-baseline", "--quiet")
LOCK = ("--lock", "one.lock", "--update-lock")
RUNS: dict[str, list[tuple[str, ...]]] = {
    "check": [
        (*PING, *STARTED, *USED, *BOXED, *CHECKED),
        (*PING, "--self", "--offline", "--since", "j.json", "--no-baseline"),
        (*PING, "--quick", "--quiet", *HTTP),
        (*PING, *ISSUED),
        (*PING, "--from", "record.json"),
        (*PING, *SIGNED, *LOCK, "--quiet", "--", *SERVER),
        (*PING, "--locked", "--lock", "one.lock", "--quiet", "--", *SERVER),
        (*PING, "--self", "--watch", "seed"),
    ],
    "approve": [
        (*PING, *STARTED, *USED, *BOXED, *CHECKED, *LOCK, *SIGNED),
        (*RULES, "--locked", "--lock", "one.lock", "--since", "j.json", "--", *SERVER),
        (*RULES, "--quick", *LOCK, *HTTP),
        (*RULES, *LOCK, *ISSUED),
        (*RULES, *LOCK, "--offline", "--", *SERVER),
    ],
    "verify": [("s.json", "--report", "j.json", "--key", "own.pub")],
    "recon": [
        (*ONE, *STARTED, *USED, *BOXED, "--json"),
        (*ONE, "--self", "--offline"),
        (*ONE, *HTTP),
        (*ONE, "--sandbox", "off", *ISSUED),
    ],
    "init": [
        (*STARTED, *USED, *BOXED, "--output", "made.toml"),
        ("--offline", "--force", "--", *SERVER),
        ("--force", *HTTP),
        ("--force", "--sandbox", "off", *ISSUED),
    ],
    "load": [(*STARTED, *USED, *BOXED), ("--self", "--offline"), HTTP, ISSUED],
    "golden record": [
        (*GOLDEN, *STARTED, *USED, *BOXED, "--promise", "audit", "--verbose"),
        (*GOLDEN, "--self", "--offline", "--any-version"),
        (*GOLDEN, *HTTP),
        (*GOLDEN, *ISSUED),
        (*ONE, "--folder", "small", "--suite", "conformance", "--", "npx"),
    ],
    "golden verify": [
        (*GOLDEN, *STARTED, *USED, *BOXED, "--promise", "audit", "--verbose", "--create"),
        (*GOLDEN, "--self", "--offline"),
        (*GOLDEN, *HTTP),
        (*GOLDEN, *ISSUED),
    ],
    "bridge": [(*STARTED, "--offline", "--port", "0", "--sessions", "2"), ("--self",)],
    "diff": [("--fail-on", "must", "--format", "text", "--verbose", "j.json", "j.json")],
    "report": [
        (
            *("j.json", "--html", "r.html", "--markdown", "r.md", "--junit", "r.xml"),
            *("--sarif", "r.sarif", "--badge", "r.json"),
        )
    ],
    "list": [("--suite", "all", "--level", "MUST", "ping")],
    "explain": [("ping-empty-response",)],
    "completion": [("bash",)],
    "tap": [
        ("--wrap", ".mcp.json", "--report", "kept"),
        ("--unwrap", ".mcp.json"),
        (
            *("--listen", "0", "--to", "http://127.0.0.1:9/mcp", "--report", "kept"),
            *("--fault", "delay=1"),
        ),
    ],
    "tap show": [
        (FOUND, "--tail", "9", "--method", "*", "--headers", "--until-broken"),
        (FOUND, "--broken", "--html", "page.html"),
        (FOUND, "--unjudged"),
    ],
    "judge": [
        (FOUND, "--side", "server", *ONE, "--select", "jsonrpc", *JUDGED),
        (FOUND, *QUIETLY),
    ],
    "act": [("--list",), ("tools_call", "--report", "kept")],
    "client": [
        (*IDS, "--timeout", "60", "--save", "kept", *ONE, *JUDGED, *BOXED, *GOOD, "{server}"),
        (*CLIENT, *QUIETLY, "--advisories", "--http", *TRANSPORT),
        (*CLIENT, "--spec-version", "2025-11-25", "--jobs", "2", "--shard", "1/1", *STEPPED),
        (*CLIENT, *IDS, "--config", "t.toml", "--trust-config", "--target", "one"),
    ],
    "gateway": [
        (*QUIETLY, *ONE, *OF_GATEWAYS, *KEPT_AS_JSON, "--", "{server}"),
        ("--upstream-port", "8931", "--upstream"),
        (
            *("--config", "t.toml", "--trust-config", "--target", "one", "--env", "A=1", *ONE),
            *("--cwd", "{root}", "--timeout", "60", "--expects", "transparent", *OF_GATEWAYS),
            *("--config-template", "gateway.py", *JUDGED, *BOXED, "--", sys.executable, "{config}"),
        ),
        (
            *("--upstream-port", "0", "--http", "http://127.0.0.1:{port}/mcp", *OF_GATEWAYS, *ONE),
            *("--", sys.executable, "-m", "mcp_touchstone", "bridge", "--port", "{port}"),
            *("--", "{server}"),
        ),
    ],
    "fleet": [
        (
            *("fleet.jsonl", "--list-only", "--out", "rows.jsonl", "--resume", "--no-files"),
            *("--opt-out", "out.txt", "--inside", "none", "--workers", "1", "--engine", "dask"),
            *("--scheduler", "tcp://127.0.0.1:1", "--shard", "1/1", "--work", "work"),
            *("--deadline", "60", "--timeout", "20", "--memory", "0", "--suite", "all"),
            *("--quick", "--for", "cursor", "--trust-config", "--root-size", "64", *PING),
        )
    ],
    "fleet report": [
        ("--html", "f.html", "--csv", "f.csv", "--since", "rows.json", "--names", "rows.json"),
        *([("--parquet", "f.parquet", "rows.json")] if find_spec("duckdb") else []),
    ],
}


def listed(command: str) -> list[set[str]]:
    """Return the names of each option in the help of a command."""
    out = io.StringIO()
    with redirect_stdout(out), pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    rows = re.findall(r"^  (-.*?)(?:  |$)", out.getvalue(), re.MULTILINE)
    found = [set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", row)) for row in rows]
    return [names for names in found if "--help" not in names]


def run_and_stop(command: list[str], sign: str) -> int:
    """Run a command that does not end until it prints a text."""
    with subprocess.Popen(
        [sys.executable, "-m", "mcp_touchstone", *command], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        found = any(sign in line for line in process.stdout)
        process.send_signal(signal.SIGTERM)
    return process.returncode if found else 2


def test_every_command_has_runs() -> None:
    found = {line.split()[0] for line in DESCRIPTION.splitlines() if line.startswith("  ")}

    # `login` needs a browser: tests/transport/test_http_tokens.py
    assert {command.split()[0] for command in RUNS} == found - {"serve", "login"}


@needs_namespaces
@pytest.mark.slow
@pytest.mark.parametrize("command", RUNS)
def test_every_option_in_the_help_of_a_command_can_succeed(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(load, "CALLS", 64)
    for suite, part in ((GATEWAYS, "contents"), (CLIENTS, "tools_call")):
        registry = catalog.load(suite)
        monkeypatch.setattr(registry, "parts", {part: registry.parts[part]})
    for folder in ("seed", "world", "work"):
        (tmp_path / folder).mkdir()
    (tmp_path / "seed" / "README.md").write_text("hello\n")
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    (tmp_path / "osv.json").write_text('{"results": []}')
    (tmp_path / "record.json").write_text(json.dumps(record()))
    (tmp_path / "npx").write_text(f"#!{sys.executable} -S\n{SMALL}")
    (tmp_path / "npx").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    client = json.dumps([*GOOD[1:], "{server}"])
    target = f"[targets.one]\ncommand = {json.dumps(SERVER)}\nclient = {client}\n"
    (tmp_path / "t.toml").write_text(target)
    (tmp_path / "gateway.py").write_text(
        "import subprocess, sys\nsys.exit(subprocess.call([{program}, *{arguments}]))\n"
    )
    (tmp_path / "out.txt").write_text("# nobody\n")
    (tmp_path / "fleet.jsonl").write_text('{"name": "a", "command": ["a"]}\n')
    (tmp_path / "rows.json").write_text(json.dumps(row_of("a")) + "\n")
    if command == "golden verify":
        main(["golden", "record", *ONE, "--folder", "kept", "--config", "t.toml"])
    if command in {"approve", "check", "verify"}:
        key(tmp_path, "own")
    if command == "verify":
        made = ("--json", "j.json", "--attest", "s.json", "--sign", "own.pem")
        main(["check", *PING, "--quiet", *made, "--", *SERVER])
    if command in {"diff", "report"}:
        main(["check", "--self", *PING, "--quiet", "--json", "j.json"])
    if command in {"judge", "tap show", "client"}:
        kept = ("--save", "recorded", "--json", "old.json")
        main(["client", *CLIENT, *ONE, *kept, *GOOD, "{server}"])
    if command == "tap":
        (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": "b"}}}))

    for run in RUNS[command]:
        given = [*command.split(), *run]
        serves = command == "bridge" or "--listen" in run
        sign = "http://" if serves else "watching" if "--watch" in run else ""
        assert (run_and_stop(given, sign) if sign else main(given)) == 0, given

    used = {word for run in RUNS[command] for word in run}
    used |= set() if find_spec("duckdb") else {"--parquet"}
    # tests/tap/test_relay.py, tests/tap/test_client_options.py, tests/gateway/test_by_hand.py
    elsewhere = {"tap": {"--sandbox", "--online"}, "tap show": {"--follow"}, "gateway": {"--to"}}
    used |= elsewhere.get(command, set())
    assert [names for names in listed(command) if not names & used] == []
