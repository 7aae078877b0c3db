"""The option --sandbox: its defaults, its output, and calls without a sandbox."""

import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mcp_touchstone.cli import main
from mcp_touchstone.config import resolve
from mcp_touchstone.config.parser import parse
from mcp_touchstone.engine.attack_setup import NO_GUESSING
from mcp_touchstone.engine.choice import UsageError
from mcp_touchstone.engine.runner import survey
from mcp_touchstone.report.digest import hint
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.sandbox import sandbox
from mcp_touchstone.sandbox.sandbox import Method, Sandbox, probe
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.transport.process import LaunchError, ServerProcess
from mcp_touchstone.wire.transcript import Transcript
from tests.cases import cases
from tests.fakes.catalogue import FAKES
from tests.fakes.matrix import attacked, near, target_of, tripped

if TYPE_CHECKING:
    from mcp_touchstone.results.run import Run

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces"),
    pytest.mark.slow,
]

WHY = "bwrap: No permissions"


def target(*words: str) -> Target:
    (settings,) = resolve.settings(parse([*words, "--", "x", "{root}"]))
    return resolve.target(settings, explores=words[0] == "recon")


@pytest.fixture
def possible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "choose", lambda _wanted: (Method.UNSHARE, ""))


@pytest.fixture
def impossible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "choose", lambda _wanted: (None, WHY))


@pytest.mark.usefixtures("possible")
def test_security_suite_and_recon_use_a_sandbox_by_default() -> None:
    assert target("check", "--suite", "security").method is Method.UNSHARE
    assert target("check", "--suite", "all").method is Method.UNSHARE
    assert target("recon").method is Method.UNSHARE
    assert target("check").method is None
    assert target("check", "--sandbox", "auto").method is Method.UNSHARE
    assert target("check", "--suite", "security", "--sandbox", "off").method is None


@pytest.mark.usefixtures("possible")
def test_sandbox_has_no_network_without_online() -> None:
    assert target("check", "--sandbox", "auto").online is False
    online = target("check", "--sandbox", "auto", "--online")
    assert online.online is True
    assert online.words()[:3] == ["--sandbox", "auto", "--online"]
    with pytest.raises(UsageError, match="--online excludes --offline"):
        target("check", "--sandbox", "auto", "--online", "--offline")
    with pytest.raises(UsageError, match="without --sandbox"):
        target("check", "--online")


def hints(
    server: Target, said: str, spoken: Mapping[str, Mapping[str, Any]] | None = None
) -> list[str]:
    """Return the hints on a server that said something and spoke some revisions."""
    subject = Subject.of(server, stderr=said, reported=spoken or {})
    return hint(cast("Run", SimpleNamespace(subject=subject)))


@pytest.mark.usefixtures("possible")
def test_server_that_may_not_write_gets_a_hint() -> None:
    said = "OSError: [Errno 30] Read-only file system: 'server.log'"

    assert "--cwd {root}" in hints(target("check", "--suite", "security"), said)[0]
    assert hints(target("check"), said) == []


@cases((Method.BWRAP, True), (Method.UNSHARE, False))
def test_launcher_that_cannot_lock_its_cache_gets_a_hint(method: Method, is_hinted: bool) -> None:
    """Bubblewrap before 0.11 has no overlays, so caches are read-only in its sandbox."""
    given = Target(command=("uvx", "server"), method=method)
    said = 'Could not acquire lock\nRead-only file system (os error 30) at path "/root/.cache/uv"'
    (found,) = hints(given, said)
    assert ("--sandbox unshare" in found and "0.11" in found) is is_hinted


@cases(
    ("Packages were unavailable because the network was disabled", True),
    ("npm error code ENOTCACHED", True),
    ("TypeError: x is not a function", False),
)
def test_server_that_is_in_no_cache_gets_a_hint(said: str, is_hinted: bool) -> None:
    given = Target(command=("uvx", "server"), method=Method.UNSHARE)
    assert any("once without the sandbox" in line for line in hints(given, said)) is is_hinted
    assert hints(Target(command=("uvx", "server")), said) == []


@cases(
    ("Error: Not a valid Obsidian vault: .obsidian is missing", True),
    ("refusing to serve a system directory", True),
    ("no such thing: /tmp/mcp-touchstone-x1/root", True),
    ("TypeError: x is not a function", False),
)
def test_server_that_refuses_its_folder_gets_a_hint(said: str, is_hinted: bool) -> None:
    given = Target(command=("server", ROOT))
    spoken: Mapping[str, Mapping[str, Any]]
    for spoken in ({}, {"2025-11-25": {}}):
        found = hints(given, said, spoken)
        assert [("--root-from" in line and "--world" in line) for line in found] == (
            [True] if is_hinted and not spoken else []
        )


def test_bridge_refuses_the_sandbox_of_a_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.toml").write_text('command = "x"\nsandbox = "auto"\n')

    assert main(["bridge", "--config", str(tmp_path / "t.toml")]) == 2
    assert "server outside" in capsys.readouterr().err


@pytest.mark.usefixtures("impossible")
def test_unavailable_sandbox_disables_guessed_calls() -> None:
    found = target("check", "--suite", "security")
    assert (found.method, found.guesses) == (None, False)
    assert WHY in found.shelter
    off = target("check", "--suite", "security", "--sandbox", "off")
    assert off.guesses
    assert off.shelter == "off: the server can do all that you can"
    assert target("check").guesses
    assert target("check").shelter == ""


@pytest.mark.usefixtures("impossible")
def test_attack_commands_requires_a_sandbox(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "--suite", "security", "--attack-commands"]

    for more, said in (([], WHY), (["--sandbox", "off"], "drop --sandbox off")):
        assert main([*words, *more, "--", "x"]) == 2
        assert capsys.readouterr().err == (
            f"mcp-touchstone: --attack-commands requires a sandbox{'; ' if more else ': '}{said}\n"
        )


@pytest.mark.usefixtures("impossible")
def test_unavailable_named_sandbox_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=f"--sandbox bwrap: {WHY}"):
        target("check", "--sandbox", "bwrap")


def test_auto_selects_the_first_available_method(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = {Method.BWRAP: "", Method.UNSHARE: ""}
    monkeypatch.setattr(sandbox, "probe", reasons.__getitem__)
    assert sandbox.choose("auto") == (Method.UNSHARE, "")
    assert sandbox.choose("bwrap") == (Method.BWRAP, "")
    reasons[Method.UNSHARE] = "is refused"
    assert sandbox.choose("auto") == (Method.BWRAP, "")
    reasons[Method.BWRAP] = "is missing"
    assert sandbox.choose("auto") == (None, "is refused; is missing")
    assert sandbox.choose("unshare") == (None, "is refused")


def test_only_the_needed_variables_are_inherited() -> None:
    env = {"PATH": "/bin", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "x", "SSH_AUTH_SOCK": "/s"}
    env |= {"npm_config_cache": "/c", "npm_config__authToken": "x", "NODE_OPTIONS": "--require x"}
    kept = sandbox.variables(env, network=True)
    assert set(kept) == {"PATH", "LC_ALL", "npm_config_cache"}
    assert sandbox.variables(env, network=False)["UV_OFFLINE"] == "1"


def test_no_tool_is_called_by_guessing_without_a_sandbox() -> None:
    alone = replace(target_of("Resolves"), unsafe=WHY)
    profile, _ = survey(alone, ["2025-11-25"], words=())
    assert profile.bindings is not None
    assert (profile.bindings.calls, profile.bindings.why) == (0, NO_GUESSING)
    assert f"no file tool is attacked: {NO_GUESSING}" in profile.remarks

    named = replace(alone, call=(("read_file", None),))
    profile, _ = survey(named, ["2025-11-25"], words=())
    assert profile.bindings is not None
    assert {binding.tool for binding in profile.bindings.found} == {"read_file"}


def works(method: Method) -> Method:
    if why := probe(method):
        pytest.skip(f"{method}: {why}")
    return method


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("name", ["Joined", "FetchesPaths", "ShowsItsConfiguration", "Resolves"])
def test_verdicts_are_the_same_in_a_sandbox(name: str, method: Method) -> None:
    run = attacked(name, near(name), works(method))

    assert set(tripped(run)) == FAKES[name].trips


@pytest.mark.parametrize("method", list(Method))
def test_missing_program_is_named(method: Method, tmp_path: Path) -> None:
    box = Sandbox(method=works(method), writable=(tmp_path,))
    record = Transcript("2025-11-25", clock=time.monotonic)
    (tmp_path / "plain").touch()
    for command, said in (
        ("no-such-program", "there is no program 'no-such-program'"),
        (str(tmp_path / "plain"), "may not be run"),
    ):
        with pytest.raises(LaunchError, match=said):
            ServerProcess([command], record, env={"PATH": "/usr/bin"}, cwd=tmp_path, sandbox=box)


def test_first_lines_name_the_sandbox(capsys: pytest.CaptureFixture[str]) -> None:
    method = works(Method.UNSHARE)
    words = ["check", "--self", "--sandbox", str(method), "--select", "ping-empty-response"]
    assert main(words) == 0
    assert "sandbox" in (first := capsys.readouterr().out)
    assert "unshare: only its own files and processes, without the network" in first


def test_new_files_in_the_working_folder_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    fake = Path(__file__).parents[1] / "fakes"
    command = f'echo > left.txt; exec {sys.executable} {fake} Resolves "$1"'
    words = ["--select", "ping-empty-response", "--", "sh", "-c", command, "sh", "{root}"]
    main(["check", *words])
    out = capsys.readouterr().out
    assert (
        "new files  in your working folder, of the server or of another program\n  left.txt\n"
        in out
    )
    (tmp_path / "left.txt").unlink()
    works(Method.UNSHARE)
    main(["check", "--sandbox", "unshare", *words])
    assert "new files" not in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_recon_lists_the_inherited_variables(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    works(Method.UNSHARE)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("SOME_TOKEN", "x")
    assert main(["recon", "--self", "--sandbox", "unshare", "--revision", "2025-11-25"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if "inherits" in line)
    assert " PATH," in row
    assert "SOME_TOKEN" not in row
