"""Every option that takes a file gets files that a stranger may have left: one line, exit 2."""

import argparse
import json
import os
import resource
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from mcp_touchstone.catalog.loader import GATEWAYS, load
from mcp_touchstone.cli import main
from mcp_touchstone.config.arguments import Parser
from mcp_touchstone.config.commands import COMMANDS
from tests.report.test_comparison import report

SERVER: Final = ("--self", "--quick", "--select", "ping-empty-response")

NONE: Final = ("--", "none")

JUDGED: Final = ("judge", "recordings", "--side", "server")

READ: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "check --from": ("f.json", ("check", "--from", "FILE")),
    "check --since": ("f.json", ("check", *SERVER, "--since", "FILE")),
    "check --baseline": ("f.toml", ("check", *SERVER, "--baseline", "FILE")),
    "check --budget": ("f.toml", ("check", *SERVER, "--budget", "FILE")),
    "check --osv": ("f.json", ("check", *SERVER, "--osv", "FILE")),
    "check --lock": ("f.json", ("check", *SERVER, "--locked", "--lock", "FILE")),
    "check --sign": ("f.pem", ("check", *SERVER, "--attest", "a.json", "--sign", "FILE")),
    "check --config": ("f.toml", ("check", "--config", "FILE")),
    "check --ca-file": ("f.pem", ("check", "https://127.0.0.1:9/mcp", "--ca-file", "FILE")),
    "verify statement": ("f.json", ("verify", "FILE")),
    "verify --key": ("f.pem", ("verify", "signed.json", "--key", "FILE")),
    "init --config": ("f.json", ("init", "--output", "none.toml", "--config", "FILE")),
    "init --ca-file": ("f.pem", ("init", "https://127.0.0.1:9/mcp", "--ca-file", "FILE")),
    "recon --config": ("f.json", ("recon", "--config", "FILE")),
    "recon --ca-file": ("f.pem", ("recon", "https://127.0.0.1:9/mcp", "--ca-file", "FILE")),
    "diff old": ("f.json", ("diff", "FILE", "FILE")),
    "diff new": ("f.json", ("diff", "report.json", "FILE")),
    "report run": ("f.json", ("report", "FILE", "--html", "out.html")),
    "load --config": ("f.toml", ("load", "--config", "FILE")),
    "load --ca-file": ("f.pem", ("load", "https://127.0.0.1:9/mcp", "--ca-file", "FILE")),
    "golden record --config": ("f.json", ("golden", "record", "--config", "FILE")),
    "golden record --ca-file": (
        "f.pem",
        ("golden", "record", "https://127.0.0.1:9/mcp", "--ca-file", "FILE"),
    ),
    "golden verify --config": ("f.json", ("golden", "verify", "--config", "FILE")),
    "golden verify --ca-file": (
        "f.pem",
        ("golden", "verify", "https://127.0.0.1:9/mcp", "--ca-file", "FILE"),
    ),
    "bridge --config": ("f.json", ("bridge", "--config", "FILE")),
    "fleet list": ("f.jsonl", ("fleet", "--list-only", "FILE")),
    "fleet --opt-out": ("f.txt", ("fleet", "--list-only", "list.jsonl", "--opt-out", "FILE")),
    "fleet report rows": ("f.jsonl", ("fleet", "report", "FILE")),
    "fleet report --since": ("f.jsonl", ("fleet", "report", "FILE", "--since", "FILE")),
    "tap --wrap": ("f.json", ("tap", "--wrap", "FILE", "--report", "out")),
    "tap --unwrap": ("f.json", ("tap", "--unwrap", "FILE")),
    "tap show folder": ("f.jsonl", ("tap", "show", "FILE")),
    "judge folder": ("f.jsonl", ("judge", "FILE")),
    "judge --since": ("f.json", ("judge", "recordings", "--since", "FILE")),
    "judge --baseline": ("f.toml", (*JUDGED, "--baseline", "FILE")),
    "client --since": ("f.json", ("client", "--since", "FILE", "--", "none", "{server}")),
    "client --baseline": ("f.toml", ("client", "--baseline", "FILE", "--", "none", "{server}")),
    "client --config": ("f.toml", ("client", "--config", "FILE")),
    "gateway --since": ("f.json", ("gateway", "--since", "FILE", "--", "{server}")),
    "gateway --baseline": ("f.toml", ("gateway", "--baseline", "FILE", "--", "{server}")),
    "gateway --config": ("f.toml", ("gateway", "--config", "FILE")),
    "gateway --config-template": (
        "f.txt",
        ("gateway", "--config-template", "FILE", "--", "none", "{config}"),
    ),
}
"""Command and option that read a file -> a name for it, and a command line."""

READ.update(
    {
        f"approve {option}": (
            name,
            (
                "approve",
                *(w for w in words[1:] if w not in SERVER),
                *(NONE if "--self" in words else ()),
            ),
        )
        for option, (name, words) in [
            (key.removeprefix("check "), row)
            for key, row in READ.items()
            if key.startswith("check ")
        ]
        if option != "--from"
    }
)

OTHERS: Final = {
    "--attest",
    "--watch",
    "--root-from",
    "--world",
    "--json",
    "--save",
    "--scripts",
    "--output",
    "--html",
    "--markdown",
    "--junit",
    "--sarif",
    "--badge",
    "--folder",
    "--out",
    "--work",
    "--csv",
    "--parquet",
    "--report",
}
"""Options whose file is written or edited, or whose folder is made or copied."""

TEXTUAL: Final = {"f.txt", "f.pem"}
"""Files in which any text is allowed, or is judged by somebody else."""

DEEP: Final = "[" * 200_000
BAD: Final[dict[str, bytes]] = {
    "nothing": b"",
    "a mark and nothing": b"\xef\xbb\xbf",
    "no UTF-8": b"\xff\xfe{\x00}\x00",
    "deep JSON": DEEP.encode(),
    "deep members": b'{"a":' * 100_000,
    "deep TOML": b"a = " + DEEP.encode(),
    "a long key": b"a" + b".a" * 100_000 + b" = 1\n",
    "a great number": f'{{"format": {10**400}}}\n'.encode(),
    "more digits": f'{{"recording": {"9" * 100_000}}}\n'.encode(),
    "an odd number": b'{"format": 1e999, "key": NaN, "recording": -Infinity}\n',
    "odd TOML": f"a = nan\nb = inf\nc = {10**400}\n".encode(),
    "a list": b"[[], 5]\n",
    "a text": b'"text"\n',
    "null": b"null\n",
}


def options(parser: argparse.ArgumentParser, name: str) -> Iterator[str]:
    """Yield the options and arguments of a command whose value is a path."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below, one in action.choices.items():
                yield from options(one, f"{name} {below}")
        elif callable(action.type):
            try:
                is_path = isinstance(action.type("x"), Path)
            except argparse.ArgumentTypeError:
                continue
            if is_path:
                yield f"{name} {action.option_strings[0] if action.option_strings else action.dest}"


def all_options() -> set[str]:
    found: set[str] = set()
    for name, build in COMMANDS.items():
        build(parser := Parser(prog=name))
        found |= set(options(parser, name))
    return found


def test_each_option_with_a_path_is_known_here() -> None:
    assert {one for one in all_options() if one.rpartition(" ")[2] not in OTHERS} == set(READ)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a working folder with what the command lines name besides the bad file."""
    monkeypatch.chdir(tmp_path)
    gateways = load(GATEWAYS)
    monkeypatch.setattr(gateways, "parts", {"contents": gateways.parts["contents"]})
    (tmp_path / "report.json").write_text(json.dumps(report()))
    (tmp_path / "list.jsonl").write_text('{"npm": "a"}\n')
    envelope = {"payloadType": "application/vnd.in-toto+json", "payload": "e30=", "signatures": []}
    (tmp_path / "signed.json").write_text(json.dumps(envelope))
    (tmp_path / "recordings").mkdir()
    head, row = {"recording": 1}, {"at": 0, "from": "client", "text": "{}"}
    text = "".join(f"{json.dumps(one)}\n" for one in (head, row))
    (tmp_path / "recordings" / "a.jsonl").write_text(text)
    return tmp_path


def peak() -> int:
    """Return the greatest memory of this process so far, in KiB; earlier tests count, too."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def said(words: tuple[str, ...], path: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run a command; return its status and its standard error."""
    status = main([path if word == "FILE" else word for word in words])
    return status, capsys.readouterr().err


@pytest.mark.parametrize("option", READ)
def test_a_malformed_file_is_one_line(
    option: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, words = READ[option]
    for what, data in BAD.items():
        if name in TEXTUAL and what != "no UTF-8":
            continue
        (folder / name).write_bytes(data)
        status, error = said(words, name, capsys)
        is_empty = what in {"nothing", "a mark and nothing"}
        if is_empty and name in {"f.toml", "f.jsonl"} and name not in error:
            assert "Traceback" not in error
            continue  # an empty TOML is a table without keys, an empty list has no servers
        assert status == 2, (what, error)
        assert error.count("\n") == 1, (what, error)
        assert name in error or is_empty, (what, error)
        assert len(error) < 1000, (what, error)


@pytest.mark.skipif(os.name != "posix", reason="named pipes and devices are files there")
@pytest.mark.parametrize("option", READ)
def test_what_is_no_file_is_one_line(
    option: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, words = READ[option]
    path, before = folder / name, peak()
    made: dict[str, Callable[[], object]] = {
        "a folder": path.mkdir,
        "a named pipe": lambda: os.mkfifo(path),
        "a device": lambda: path.symlink_to("/dev/zero"),
        "a link to itself": lambda: path.symlink_to(path),
        "no file": lambda: None,
        "a sparse file": partial(sparse, path),
    }
    for what, make in made.items():
        if what == "a folder" and option in {"fleet list", "tap show folder", "judge folder"}:
            continue
        make()
        status, error = said(words, name, capsys)
        assert (status, error.count("\n")) == (2, 1), (what, error)
        assert name in error, (what, error)
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
    assert peak() - before < 600 << 10
