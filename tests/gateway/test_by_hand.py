"""A gateway that was configured by hand, or by a file, and one that cannot be judged."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_touchstone.cli import main
from mcp_touchstone.sandbox import sandbox
from mcp_touchstone.transport.http_endpoint import free_port
from tests.commands import touchstone

pytestmark = pytest.mark.slow

OURS = (sys.executable, "-m", "mcp_touchstone")
RULES = ("--select", "gateway-answers-come", "--revision", "2025-11-25", "--no-baseline")


def test_gateway_with_the_printed_command_is_judged_at_its_url() -> None:
    port, upstream = str(free_port()), ("--upstream-port", str(free_port()))
    printed = touchstone("gateway", *upstream, "--upstream")
    command = printed.stdout.splitlines()[0].removeprefix("command").split()
    words = (*OURS, "bridge", "--port", port, "--", *shlex.split(" ".join(command)))
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as gateway:
        assert gateway.stdout is not None
        url = next(line for line in gateway.stdout if "http://" in line).split()[-1]

        judged = touchstone("gateway", *RULES, *upstream, "--to", url)
        gateway.terminate()

    assert printed.returncode == 0
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert "1 clause checked" in judged.stdout


def test_our_server_is_printed_for_a_port_only() -> None:
    printed = touchstone("gateway", "--upstream")

    assert printed.returncode == 2
    assert printed.stderr.splitlines() == [
        "mcp-touchstone: gateway --upstream: name the port with --upstream-port PORT"
    ]


def written(folder: Path, **keys: object) -> None:
    """Write a configuration of a gateway into a folder."""
    table = {"revision": ["2025-11-25"], "select": ["gateway-answers-come"], **keys}
    lines = (f"{key.replace('_', '-')} = {json.dumps(value)}" for key, value in table.items())
    (folder / "touchstone.toml").write_text("\n".join(lines))


def test_a_gateway_is_judged_that_a_file_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "of-it"
    folder.mkdir()
    (folder / "its.json").write_text('{"run": [{program}, "", {arguments}]}')
    (folder / "gateway.py").write_text(
        "import json, os, sys\n_, *words = sys.argv\nrun = json.load(open(words[0]))['run']\n"
        "os.execv(run[0], [run[0], *run[2]])\n"
    )
    written(folder, gateway=["{python}", "gateway.py", "{config}"], config_template="its.json")
    at = ("--config", "of-it/touchstone.toml", "--no-baseline")

    assert main(["gateway", *at]) == 0
    assert "1 clause checked" in capsys.readouterr().out
    if not sandbox.probe(sandbox.Method("unshare")):
        assert main(["gateway", *at, "--sandbox", "unshare"]) == 0
        assert "1 clause checked" in capsys.readouterr().out
    assert main(["check", *at]) == 2
    assert "`mcp-touchstone gateway` judges its gateway" in capsys.readouterr().err


def test_no_gateway_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["gateway"]) == 2
    assert main(["gateway", "--sandbox", "auto", "--", "a", "{url}"]) == 2
    assert main(["gateway", "--sandbox", "auto", "--to", "http://127.0.0.1:1/mcp"]) == 2
    written(tmp_path, client=["a", "{server}"])
    assert main(["gateway"]) == 2

    assert capsys.readouterr().err.splitlines() == [
        (
            "mcp-touchstone: no gateway is named: write its command after `--` (gateway -- "
            "COMMAND {server}), or gateway = [...] into touchstone.toml"
        ),
        "mcp-touchstone: --sandbox: it keeps the gateway from {url}; add --online",
        "mcp-touchstone: --sandbox auto: we did not start this gateway; drop it",
        'mcp-touchstone: touchstone.toml: it names no gateway; write gateway = ["program"]',
    ]
