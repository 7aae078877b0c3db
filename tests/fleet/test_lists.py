"""Fleets: the formats of lists, registry records, parts, servers that opted out."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone import cli
from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.fleet import drive, install, records, servers
from mcp_touchstone.fleet.entry import ListedServer, ListError, RegistryType, Start, Trouble
from mcp_touchstone.fleet.judge import judge
from mcp_touchstone.fleet.servers import read
from mcp_touchstone.target import values
from tests.cases import cases
from tests.fleets import PLAN, from_record, read_text, record, remote


def test_formats_name_the_same_servers(tmp_path: Path) -> None:
    toml = '[[server]]\nnpm = "@x/y@1.0.0"\nargs = ["{root}"]\n[[server]]\npypi = "z==2"\n'
    lines = '{"npm": "@x/y@1.0.0", "args": ["{root}"]}\n\n{"pypi": "z==2"}\n'
    table = "npm,pypi,args\n@x/y@1.0.0,,{root}\n,z==2,\n"
    clients = {
        "mcpServers": {
            "a": {"command": "npx", "args": ["-y", "@x/y@1.0.0", "{root}"]},
            "b": {"command": "uvx", "args": ["z@2"]},
        }
    }
    texts = {"a.toml": toml, "a.jsonl": lines, "a.csv": table, ".mcp.json": json.dumps(clients)}
    found = [read_text(text, name, tmp_path) for name, text in texts.items()]

    keys = ["npm:@x/y@1.0.0 '{root}'", "pypi:z@2"]
    assert [[entry.key for entry in one] for one in found] == [keys] * 4
    assert found[0][0].launch == ("npx", "-y", "@x/y@1.0.0", "{root}")
    assert found[3][1].launch == ("uvx", "--from", "z==2", "z")


def test_same_server_is_read_once(tmp_path: Path) -> None:
    lines = '{"npm": "a"}\n{"npm": "a", "name": "another name"}\n'

    assert [entry.name for entry in read_text(lines, "a.jsonl", tmp_path)] == ["a"]


@cases(
    ({"command": ["a"]}, {"command": ["b"]}, "give it another name"),
    ({"command": ["a"]}, {"command": ["a"], "env": {"A": "1"}}, "give it another name"),
    ({"npm": "a"}, {"npm": "a", "script": "b"}, "remove one of them"),
)
def test_two_servers_of_one_name_are_refused(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], kept: str
) -> None:
    lines = "".join(json.dumps({"name": "one", **row}) + "\n" for row in (first, second))
    with pytest.raises(ListError) as error:
        read_text(lines, "a.jsonl", tmp_path)

    assert f"{tmp_path}/a.jsonl:2: " in str(error.value)
    assert f"at {tmp_path}/a.jsonl:1" in str(error.value)
    assert kept in str(error.value)


MISREAD = (
    {"npm": "--registry=http://evil.example/"},
    {"npm": "a@-g"},
    {"npm": "a\x1b[2J"},
    {"npm": "a", "script": "--eval"},
    {"npm": "a", "version": "1 -g"},
    {"pypi": "-r/etc/passwd"},
    {"pypi": "a -r b"},
    {"oci": "--privileged"},
    {"oci": "a\nb"},
)


@pytest.mark.parametrize("row", MISREAD)
def test_package_that_would_be_read_as_an_option_is_refused(
    row: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(
        ListError, match=r"a\.json: entry 1: the .* begins with `-`, or holds a blank"
    ):
        read_text(json.dumps([{"name": "a", **row}]), "a.json", tmp_path)


@pytest.mark.parametrize("identifier", ["--registry=http://evil.example/", "a b", "a\nb"])
def test_record_whose_package_would_be_read_as_an_option_is_not_started(
    identifier: str, tmp_path: Path
) -> None:
    """The others of a registry are judged all the same."""
    entry = from_record(tmp_path, identifier=identifier)

    assert entry.trouble is not None
    assert entry.trouble.kind is Start.UNSUPPORTED
    with pytest.raises(ListError, match="begins with `-`"):
        records.record_of(tmp_path / "server.json")


@pytest.mark.parametrize("uv", ["/usr/bin/uv", None])
def test_package_stands_behind_the_options_of_its_manager(
    uv: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: uv)
    for registry in (RegistryType.NPM, RegistryType.PYPI):
        entry = ListedServer(name="a", registry=registry, package="a")
        assert install._steps(entry, tmp_path)[-1][-2:] == ("--", "a")


def test_folder_and_registry_answer_hold_records(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(record()))
    (folder / "b.json").write_text(json.dumps(record(identifier="b")))
    answer = {"servers": [{"server": record(), "_meta": {}}], "metadata": {"count": 1}}

    assert [entry.key for entry in read(folder)] == ["npm:@x/y@1.0.0", "npm:b@1.0.0"]
    (only,) = read_text(json.dumps(answer), "answer.json", tmp_path)
    assert only.key == "npm:@x/y@1.0.0"
    assert only.described == {"name": "io.github.x/y", "version": "1.0.0", "title": ""}


def test_arguments_and_variables_of_a_record_are_used(tmp_path: Path) -> None:
    entry = from_record(
        tmp_path,
        packageArguments=[
            {"type": "positional", "value": "serve"},
            {"type": "named", "name": "--depth", "default": "3"},
            {"type": "named", "name": "--verbose", "isRequired": True, "format": "boolean"},
            {"type": "named", "name": "--colour", "description": "optional"},
            {"type": "positional", "valueHint": "folder", "isRequired": True, "format": "filepath"},
            {
                "type": "named",
                "name": "--mode",
                "value": "{kind}-mode",
                "variables": {"kind": {"default": "fast"}},
            },
        ],
        environmentVariables=[
            {"name": "LEVEL", "default": "info"},
            {"name": "TOKEN", "isSecret": True},
        ],
    )

    words = ("serve", "--depth", "3", "--verbose", "{root}", "--mode", "fast-mode")
    assert entry.args == words
    assert entry.env == {"LEVEL": "info"}
    assert entry.trouble is None


@cases(
    (
        {"environmentVariables": [{"name": "API_KEY", "isRequired": True}]},
        "variable API_KEY is required and has no default",
    ),
    (
        {"packageArguments": [{"type": "positional", "valueHint": "url", "isRequired": True}]},
        "argument url is required and has no default",
    ),
)
def test_required_value_without_default_needs_config(
    tmp_path: Path, package: dict[str, Any], line: str
) -> None:
    row = judge(from_record(tmp_path, **package), PLAN)

    assert row["start"] == {"class": "needs-config", "line": line}
    assert row["registry"] == "npm"


def test_source_of_a_record_is_chosen_by_its_transport(tmp_path: Path) -> None:
    remote = {"name": "a/b", "remotes": [{"type": "streamable-http", "url": "https://x.example/m"}]}
    old = {"name": "a/c", "remotes": [{"type": "sse", "url": "https://x.example/sse"}]}
    http = record(transport={"type": "streamable-http", "url": "http://localhost/mcp"})
    entries = [
        *read_text(json.dumps(remote), "a.json", tmp_path),
        *read_text(json.dumps(old), "b.json", tmp_path),
        *read_text(json.dumps(http), "c.json", tmp_path),
        from_record(tmp_path, registryType="oci", identifier="ghcr.io/x/y", version="2"),
    ]

    assert entries[0].url == "https://x.example/m"
    classes = [judge(entry, PLAN)["start"]["class"] for entry in entries[1:]]
    assert classes == ["unsupported"] * 3
    assert [str(entry.registry) for entry in entries] == ["remote", "command", "command", "oci"]
    assert entries[3].launch == ("docker", "run", "-i", "--rm", "ghcr.io/x/y:2")


@pytest.mark.parametrize(
    ("identifier", "version", "image"),
    [
        ("docker.io/x/y:1.0", "", "docker.io/x/y:1.0"),
        ("docker.io/x/y:1.0", "1.0.0", "docker.io/x/y:1.0"),
        ("docker.io/x/y@sha256:" + "0" * 64, "1.0.0", "docker.io/x/y@sha256:" + "0" * 64),
        ("localhost:5000/x/y", "2", "localhost:5000/x/y:2"),
    ],
)
def test_the_tag_of_an_image_comes_before_the_version_of_the_record(
    tmp_path: Path, identifier: str, version: str, image: str
) -> None:
    entry = from_record(tmp_path, registryType="oci", identifier=identifier, version=version)

    assert entry.launch == ("docker", "run", "-i", "--rm", image)


@pytest.mark.parametrize("kind", ["mcpb", "nuget", "cargo", "go"])
def test_a_package_that_cannot_be_started_is_one_line(tmp_path: Path, kind: str) -> None:
    from_record(tmp_path, registryType=kind, identifier="x")

    with pytest.raises(ListError, match=rf"only a package of npm.* it has {kind} \(stdio\)$"):
        records.record_of(tmp_path / "server.json")


def test_package_and_program_behind_from_are_used(tmp_path: Path) -> None:
    words = [{"type": "named", "name": "--from", "value": "tool[mcp]"}]
    words.append({"type": "positional", "value": "tool-mcp"})
    entry = from_record(tmp_path, registryType="pypi", identifier="tool", runtimeArguments=words)

    assert entry.launch == ("uvx", "--from", "tool[mcp]==1.0.0", "tool-mcp")


def test_client_file_without_a_variable_needs_config(tmp_path: Path) -> None:
    text = json.dumps({"mcpServers": {"a": {"command": "x", "env": {"KEY": "${SECRET}"}}}})

    (without,) = read_text(text, ".mcp.json", tmp_path)
    (given,) = read_text(text, ".mcp.json", tmp_path, SECRET="s")

    why = "a: env.KEY needs the variable SECRET"
    assert without.trouble == Trouble(Start.NEEDS_CONFIG, why)
    assert given.env == {"KEY": "s"}


def test_url_with_headers_in_a_client_file_needs_config(tmp_path: Path) -> None:
    server = {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}

    text = json.dumps({"mcpServers": {"a": server}})
    (found,) = read_text(text, ".mcp.json", tmp_path, TOKEN="t")

    why = "a: headers are not sent by a fleet: Authorization"
    assert found.trouble == Trouble(Start.NEEDS_CONFIG, why)


@pytest.mark.parametrize(
    ("words", "key", "env"),
    [
        (["run", "-i", "--rm", "mcp/time:1", "--utc"], "oci:mcp/time@1 --utc", {}),
        (["run", "--rm", "-i", "-e", "KEY", "--env=A=b=c", "x"], "oci:x", {"KEY": "k", "A": "b=c"}),
        (["run", "-i", "-v", "/home:/home", "x"], "command:a", {"KEY": "k", "OTHER": "o"}),
        (["exec", "-i", "x", "serve"], "command:a", {"KEY": "k", "OTHER": "o"}),
        (["run", "-i"], "command:a", {"KEY": "k", "OTHER": "o"}),
    ],
)
@pytest.mark.parametrize("program", ["docker", "podman"])
def test_command_of_an_engine_is_read_as_its_image(
    program: str, words: list[str], key: str, env: dict[str, str], tmp_path: Path
) -> None:
    given = {"command": program, "args": words, "env": {"KEY": "k", "OTHER": "o"}}
    text = json.dumps({"mcpServers": {"a": given}})

    (entry,) = read_text(text, ".mcp.json", tmp_path)

    assert (entry.key, entry.env) == (key, env)


@cases(
    ("a.toml", "[[server]]\nnpm = 'a'\npypi = 'b'\n", "needs one of"),
    ("a.toml", "x = 1\n", "no [[server]] table"),
    ("a.jsonl", '{"npm": "a", "colour": 1}\n', "'colour' is unknown"),
    ("a.jsonl", "{\n", "a.jsonl:1"),
    ("a.json", '{"a": 1}', "neither mcpServers nor servers"),
)
def test_bad_list_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("[", r"\[")):
        read_text(text, name, tmp_path)


def test_servers_that_opted_out_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        {"url": "https://mcp.Example.org/mcp"},
        {"url": "https://notexample.org/mcp"},
        {"npm": "@x/y@1.0.0"},
        {"npm": "z", "name": "Their Server"},
    ]
    (tmp_path / "list.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "out.txt"
    out.write_text("# asked by mail\nexample.org  # all of it\n\n@x/y\ntheir server\n")

    found = list(servers.without(read(tmp_path / "list.jsonl"), servers.opt_outs(out), out))
    status = cli.main(["fleet", str(tmp_path / "list.jsonl"), "--opt-out", str(out), "--list-only"])

    starts = [judge(entry, PLAN)["start"] for entry in found if entry.trouble]
    assert [one["line"] for one in starts] == [
        "example.org is in out.txt",
        "@x/y is in out.txt",
        "their server is in out.txt",
    ]
    assert {one["class"] for one in starts} == {"opted-out"}
    assert status == 0
    assert "remote:https://notexample.org/mcp\n" in capsys.readouterr().out


def test_a_list_without_servers_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "list.json").write_text("[]")

    assert cli.main(["fleet", str(tmp_path / "list.json"), "--list-only"]) == 0

    assert capsys.readouterr().out == f"{tmp_path / 'list.json'}: it names no server\n"


def test_missing_opt_out_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gone"):
        servers.opt_outs(tmp_path / "gone")


def shards(entries: list[ListedServer]) -> list[list[str]]:
    return [[entry.key for entry in drive.shard(entries, part, 4)] for part in (1, 2, 3, 4)]


def test_shards_are_disjoint_and_complete() -> None:
    entries = [
        ListedServer(name=str(n), registry=RegistryType.NPM, package=f"p{n}") for n in range(200)
    ]
    parts = shards(entries)

    assert sorted(key for part in parts for key in part) == sorted(entry.key for entry in entries)
    assert min(map(len, parts)) > 25


def test_servers_of_a_host_are_in_one_part() -> None:
    entries = [remote(f"https://h.example/{number}") for number in range(20)]

    assert sorted(map(len, shards(entries))) == [0, 0, 0, 20]


@pytest.mark.parametrize("text", ["0/4", "5/4", "3", "a/b", "1/"])
def test_wrong_part_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write I/N"):
        values.shard(text)
    assert values.shard("3/20") == (3, 20)
