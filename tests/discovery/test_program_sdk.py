"""The SDK of a compiled server is read from its program, and nothing of it runs for that."""

import io
import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.discovery import program_sdk
from mcp_touchstone.discovery.packages import packages
from mcp_touchstone.discovery.sdk import collect, identify
from mcp_touchstone.transport.family import ProcessFacts
from tests.cases import cases

GO_BEGIN = bytes.fromhex("3077af0c9274080241e1c107e6d618e6")
GO_END = bytes.fromhex("f932433186182072008242104116d8f2")
POM = "META-INF/maven/io.modelcontextprotocol.sdk/{}/pom.properties"


def found(*argv: object, cwd: Path) -> tuple[str, ...]:
    process = ProcessFacts(tuple(map(str, argv)), cwd)
    return tuple(map(str, identify(collect([process], {"PATH": str(cwd)})).sdks))


def program(path: Path, data: bytes) -> Path:
    """Write a file that fails if it runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o755)
    return path


def go(*lines: str, before: int = 3_000_000) -> bytes:
    rows = "\n".join(["path\tnotes", "mod\tnotes\t(devel)\t", *lines, ""])
    return b"\x7fELF" + bytes(before) + GO_BEGIN + rows.encode() + GO_END + bytes(100)


def test_module_of_a_server_in_go_is_named(tmp_path: Path) -> None:
    row = b"path\tx\nmod\tgithub.com/googleapis/mcp-toolbox\tv1.2.0\th1:x=\n"
    place = program(tmp_path / "toolbox", b"\x7fELF" + GO_BEGIN + row + GO_END)
    process = ProcessFacts((str(place), "--stdio"), tmp_path)

    assert list(map(str, packages([(process, None)], {"PATH": str(tmp_path)}))) == [
        "github.com/googleapis/mcp-toolbox v1.2.0"
    ]


@cases((1 << 20) - 4 - 8, (1 << 20) - 4, (1 << 20) - 4 - 16, (2 << 20) - 4 - 8)
def test_list_of_modules_may_begin_anywhere(tmp_path: Path, before: int) -> None:
    row = "dep\tgithub.com/modelcontextprotocol/go-sdk\tv1.0.0\th1:x="
    place = program(tmp_path / "notes", go(row, before=before))

    assert found(place, cwd=tmp_path) == ("github.com/modelcontextprotocol/go-sdk v1.0.0",)


def test_program_is_searched_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = "dep\tgithub.com/modelcontextprotocol/go-sdk\tv1.{}.0\th1:x="
    place = program(tmp_path / "notes", go(row.format(0)))
    search, searched = program_sdk._search, list[Any]()

    def counted(*given: Any) -> program_sdk.Versions:
        searched.append(given)
        return search(*given)

    monkeypatch.setattr(program_sdk, "_search", counted)

    assert found(place, cwd=tmp_path) == found(place, cwd=tmp_path) != ()
    assert len(searched) == 1

    program(place, go(row.format(10)))
    assert found(place, cwd=tmp_path) == ("github.com/modelcontextprotocol/go-sdk v1.10.0",)


def elf(section: bytes, content: bytes) -> bytes:
    """Return an ELF file with one section beside that of the names."""
    names = b"\0" + section + b"\0.shstrtab\0"
    body = content + names
    start, table = 64, 64 + len(body)
    head = struct.pack(
        "<16sHHIQQQIHHHHHH",
        *(b"\x7fELF\x02\x01\x01", 2, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2),
    )
    row = "<IIQQQQIIQQ"
    rows = struct.pack(row, *[0] * 10)
    rows += struct.pack(row, 1, 1, 0, 0, start, len(content), 0, 0, 1, 0)
    rows += struct.pack(
        row, len(section) + 2, 3, 0, 0, start + len(content), len(names), 0, 0, 1, 0
    )
    return head + body + rows


def crates(**versions: str) -> bytes:
    rows = [{"name": name, "version": version} for name, version in versions.items()]
    return zlib.compress(json.dumps({"packages": rows}).encode())


def jar(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return target.getvalue()


def java_sdk(artifact: str, version: str) -> bytes:
    words = f"#Maven\ngroupId=io.modelcontextprotocol.sdk\nversion={version}\n"
    return jar({POM.format(artifact): words.encode()})


def test_a_go_program_names_its_modules(tmp_path: Path) -> None:
    own = "dep\tgithub.com/modelcontextprotocol/go-sdk\tv1.8.0\th1:x="
    program(tmp_path / "notes", go("dep\tgolang.org/x/net\tv0.1.0\th1:y=", own))

    assert found("./notes", cwd=tmp_path) == ("github.com/modelcontextprotocol/go-sdk v1.8.0",)
    assert found("notes", "--stdio", cwd=tmp_path) == found("./notes", cwd=tmp_path)


def test_a_replaced_module_has_the_version_of_its_replacement(tmp_path: Path) -> None:
    own = "dep\tgithub.com/mark3labs/mcp-go\tv0.33.0\n=>\texample.org/fork\tv0.34.1\th1:x="
    program(tmp_path / "notes", go(own))

    assert found("./notes", cwd=tmp_path) == ("github.com/mark3labs/mcp-go v0.34.1",)


def test_an_auditable_rust_program_names_its_crates(tmp_path: Path) -> None:
    program(tmp_path / "notes", elf(b".dep-v0", crates(serde="1.0.0", rmcp="0.8.1")))
    program(tmp_path / "plain", elf(b".comment", crates(rmcp="0.8.1")))

    assert found("./notes", cwd=tmp_path) == ("rmcp 0.8.1",)
    assert found("./plain", cwd=tmp_path) == ()


def test_a_jar_names_its_sdk_and_so_does_a_jar_in_it(tmp_path: Path) -> None:
    program(tmp_path / "java", b"#!/bin/false\n")
    program(tmp_path / "flat.jar", java_sdk("mcp-core", "0.17.0"))
    inner = {"BOOT-INF/lib/mcp-core-0.16.0.jar": java_sdk("mcp-core", "0.16.0")}
    program(tmp_path / "boot.jar", jar({"BOOT-INF/lib/netty.jar": b"no jar", **inner}))
    program(tmp_path / "lib/mcp-0.10.0.jar", java_sdk("mcp", "0.10.0"))

    sdk = "io.modelcontextprotocol.sdk:"
    assert found("java", "-Xmx1g", "-jar", "flat.jar", cwd=tmp_path) == (f"{sdk}mcp-core 0.17.0",)
    assert found("java", "-jar", "boot.jar", "x", cwd=tmp_path) == (f"{sdk}mcp-core 0.16.0",)
    assert found("java", "-cp", "a.jar:lib/*", "Main", cwd=tmp_path) == (f"{sdk}mcp 0.10.0",)


def test_a_net_program_has_its_packages_beside_it(tmp_path: Path) -> None:
    program(tmp_path / "dotnet", b"#!/bin/false\n")
    program(tmp_path / "Notes", b"\x7fELF")
    libraries: dict[str, object] = {
        "ModelContextProtocol/0.4.0-preview.1": {},
        "ModelContextProtocol.Core/0.4.0": {},
    }
    program(tmp_path / "Notes.deps.json", json.dumps({"libraries": libraries}).encode())

    both = ("ModelContextProtocol 0.4.0-preview.1", "ModelContextProtocol.Core 0.4.0")
    assert found("./Notes", cwd=tmp_path) == both
    assert found("dotnet", "Notes.dll", cwd=tmp_path) == both


@cases(
    b"",
    b"\x7fELF\x02\x01" + b"\xff" * 300,
    GO_BEGIN + b"dep\tgithub.com/mark3labs/mcp-go\tv0.33.0",
    go("dep\tgithub.com/mark3labs/mcp-go\tv1\x1b[31m"),
    go("dep\tgithub.com/mark3labs/mcp-go\tv" + "1" * 100_000),
    elf(b".dep-v0", b"no zlib"),
    elf(b".dep-v0", zlib.compress(b"[" * 5_000_000)),
    elf(b".dep-v0", zlib.compress(b'{"packages": [7, {"name": []}, null]}')),
)
def test_a_hostile_program_says_nothing(tmp_path: Path, data: bytes) -> None:
    program(tmp_path / "notes", data)

    assert found("./notes", cwd=tmp_path) == ()


@cases(
    b"PK\x01\x02" * 100_000,
    jar({POM.format("mcp"): b"version=" + b"9" * 1000}),
    jar({"lib/mcp.jar": jar({"lib/mcp.jar": java_sdk("mcp", "1.0.0")})}),
)
def test_a_hostile_jar_says_nothing(tmp_path: Path, data: bytes) -> None:
    program(tmp_path / "java", b"#!/bin/false\n")
    program(tmp_path / "notes.jar", data)

    assert found("java", "-jar", "notes.jar", cwd=tmp_path) == ()


def test_a_jar_unpacks_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_sdk, "MOST_INFO", 1000)
    program(tmp_path / "java", b"#!/bin/false\n")
    program(tmp_path / "notes.jar", jar({POM.format("mcp"): b"#" * 2000 + b"\nversion=1.0.0\n"}))

    assert found("java", "-jar", "notes.jar", cwd=tmp_path) == ()


def test_a_sparse_program_is_not_searched_for_long(tmp_path: Path) -> None:
    with (tmp_path / "notes").open("wb") as file:
        file.truncate(1 << 40)
    (tmp_path / "notes").chmod(0o755)

    assert found("./notes", cwd=tmp_path) == ()
