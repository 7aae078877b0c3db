"""A sandboxed command gets only the user files that it needs."""

import json
import os
import sys
from pathlib import Path

import pytest

from mcp_touchstone.sandbox import command_files
from mcp_touchstone.sandbox.command_files import Needs, needs, sandbox_for
from mcp_touchstone.sandbox.sandbox import Method

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sandboxes are made on Linux")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    (made / ".ssh").mkdir(parents=True)
    (made / ".ssh" / "id").write_text("secret")
    return made


def file(path: Path, text: str = "", mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    return file(path, text, 0o755)


def link(path: Path, target: Path | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


def needed(
    home: Path, *command: str | Path, cwd: Path | None = None, **env: str | Path
) -> tuple[set[str], set[str], Needs]:
    env = {"PATH": "/usr/bin", **env}
    got = needs(
        [str(word) for word in command],
        cwd=cwd or home,
        env={name: str(value) for name, value in env.items()},
        home=home,
    )
    readable = {str(path.relative_to(home)) for path in got.readable if path.is_relative_to(home)}
    copied = {str(path.relative_to(home)) for path in got.copied if path.is_relative_to(home)}
    for path in (*got.readable, *got.copied):
        assert not (home / ".ssh" / "id").is_relative_to(path)
    return readable, copied, got


def test_system_program_needs_no_user_files(home: Path) -> None:
    readable, copied, got = needed(home, "sh", "-c", "true")
    assert (readable, copied) == (set(), set())
    assert list(got.skipped) == [home]


def test_program_in_home_is_readable_without_its_siblings(home: Path) -> None:
    file(home / "bin" / "other")
    program(home / "bin" / "tool")
    assert needed(home, "tool", PATH=home / "bin")[:2] == ({"bin/tool"}, set())


def test_script_makes_its_project_readable(home: Path) -> None:
    file(home / "work" / "shop" / "package.json", "{}")
    script = file(home / "work" / "shop" / "dist" / "server.js")
    file(home / "work" / "node_modules" / "hoisted" / "index.js")
    readable, copied, _ = needed(home, "sh", script)
    assert copied == set()
    assert {"work/shop", "work/node_modules"} <= readable
    assert "work" not in readable


def test_script_directly_in_home_is_readable_alone(home: Path) -> None:
    script = file(home / "server.py")
    assert needed(home, "sh", script)[0] == {"server.py"}


def test_option_value_is_treated_as_a_path(home: Path) -> None:
    config = file(home / "settings" / "server.toml")
    assert "settings" in needed(home, "sh", f"--config={config}")[0]


def test_shell_command_string_is_split_into_words(home: Path) -> None:
    script = file(home / "a" / "server.py")
    program(home / "bin" / "tool")
    readable = needed(home, "sh", "-c", f"exec tool '{script}'", PATH=f"/usr/bin:{home}/bin")[0]
    assert {"a", "bin/tool"} <= readable


def test_working_directory_is_copied_with_its_project(home: Path) -> None:
    file(home / "shop" / "pyproject.toml")
    inner = home / "shop" / "src"
    inner.mkdir()
    assert needed(home, "sh", cwd=inner)[1] == {"shop", "shop/src"}


def test_venv_adds_its_interpreter_and_editable_projects(home: Path) -> None:
    python = program(home / ".pyenv" / "versions" / "3.12" / "bin" / "python3.12", "\x7fELF")
    file(home / ".pyenv" / "versions" / "3.12" / "lib" / "python3.12" / "os.py")
    venv = home / "shop" / ".venv"
    file(venv / "pyvenv.cfg")
    link(venv / "bin" / "python3", python)
    link(venv / "bin" / "python", "python3")
    packages = venv / "lib" / "python3.12" / "site-packages"
    file(home / "library" / "pyproject.toml")
    source = home / "library" / "src"
    source.mkdir()
    file(packages / "library.pth", f"{source}\nimport nothing\n")
    direct_url = {"url": f"file://{home}/other%20one", "dir_info": {"editable": True}}
    file(home / "other one" / "setup.py")
    file(packages / "other-1.dist-info" / "direct_url.json", json.dumps(direct_url))
    server = program(venv / "bin" / "server", f"#!{venv}/bin/python\n")
    readable = needed(home, server)[0]
    assert {"shop/.venv", ".pyenv/versions/3.12", "library", "other one"} <= readable


def test_nvm_node_adds_its_packages_and_npm_cache(home: Path) -> None:
    prefix = home / ".nvm" / "versions" / "node" / "v22"
    program(prefix / "bin" / "node", "\x7fELF")
    file(prefix / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js")
    link(prefix / "bin" / "npx", "../lib/node_modules/npm/bin/npx-cli.js")
    (prefix / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js").chmod(0o755)
    file(home / "dev" / "linked" / "package.json")
    link(prefix / "lib" / "node_modules" / "linked", home / "dev" / "linked")
    (home / ".npm").mkdir()
    readable, copied, _ = needed(home, "npx", "-y", "some-server", PATH=prefix / "bin")
    assert {".nvm/versions/node/v22", "dev/linked"} <= readable
    assert copied == {".npm"}


def test_uvx_adds_its_configured_cache_directory(home: Path) -> None:
    (home / "elsewhere").mkdir()
    assert needed(home, "uvx", "x", UV_CACHE_DIR=home / "elsewhere")[1] == {"elsewhere"}


@pytest.mark.parametrize("word", ["x" * 300, "{" + "/x" * 3000, "a\0b/c", f"--plan={'y' * 300}/z"])
def test_argument_that_is_no_path_names_no_file(home: Path, word: str) -> None:
    assert needed(home, "/bin/sh", word, cwd=file(home / "app/x").parent)[0] == set()


@pytest.mark.parametrize("text", ["[" * 60_000, '{"url": 5}', '{"url": "file:///%00"}', "[]"])
def test_hostile_metadata_of_a_package_say_nothing(home: Path, text: str) -> None:
    packages = home / "app/.venv/lib/python3.11/site-packages"
    file(home / "app/.venv/pyvenv.cfg")
    file(packages / "one.dist-info/direct_url.json", text)
    file(packages / "one.pth", f"/{'x' * 300}\n/a\0b\n{home / 'app/kept'}\n")
    os.mkfifo(packages / "two.pth")
    (packages / "two.dist-info").mkdir()
    os.mkfifo(packages / "two.dist-info/direct_url.json")
    link(packages / "three.pth", "/dev/zero")
    link(packages / "four.pth", "four.pth")
    file(home / "app/kept/x")

    assert "app/kept" in needed(home, "/bin/sh", cwd=home / "app")[0]


@pytest.mark.parametrize("mark", [".git/HEAD", "pyproject.toml", "README.md"])
@pytest.mark.parametrize(
    "kind", ["pth", "editable", "package", "packages", "environment", "script", "folder", "python"]
)
def test_repository_shows_nothing_that_only_its_files_name(
    home: Path, mark: str, kind: str
) -> None:
    clone, private = home / "clone", home / "private"
    file(clone / mark)
    file(clone / "sub/server.py")
    file(private / "key", "secret")
    file(private / "package.json")
    packages = clone / ".venv/lib/python3.11/site-packages"
    if kind == "environment":
        file(private / "pyvenv.cfg")
        link(clone / ".venv", private)
    else:
        file(clone / ".venv/pyvenv.cfg")
        program(clone / ".venv/bin/run", "#!/bin/sh\n")
    if kind == "pth":
        file(packages / "one.pth", f"{private}\n")
    if kind == "editable":
        record = {"url": f"file://{private}", "dir_info": {"editable": True}}
        file(packages / "one.dist-info/direct_url.json", json.dumps(record))
    if kind == "package":
        link(clone / "node_modules/one", private)
    if kind == "packages":
        link(clone / "node_modules", "../private")
    if kind == "script":
        link(clone / "main.py", private / "key")
    if kind == "folder":
        link(clone / "data", private)
    if kind == "python":
        link(clone / ".venv/bin/python", private / "key")

    words = ("sh", ".venv/bin/run", "main.py", "./data", "./data/key", clone / "sub/server.py")
    readable, copied, got = needed(home, *words, cwd=clone)

    assert not [one for one in {*readable, *copied} if one.startswith("private")]
    assert [*got.skipped] or kind == "python"
    named = needed(home, *words, private, cwd=clone, PYTHONPATH=private)
    assert "private" in named[0]


def test_links_of_the_users_own_programs_are_followed(home: Path) -> None:
    for tool in (home / ".pyenv", home / ".nvm"):
        file(tool / ".git/HEAD")
    python = home / ".pyenv/versions/3.12"
    program(python / "bin/python3.12", "\x7fELF")
    file(home / "dev/pyproject.toml")
    file(python / "lib/python3.12/site-packages/dev.pth", f"{home / 'dev'}\n")
    node = home / ".nvm/versions/node/v22"
    program(node / "bin/node", "\x7fELF")
    file(home / "linked/package.json")
    link(node / "lib/node_modules/linked", home / "linked")

    readable = needed(home, python / "bin/python3.12", node / "bin/node", cwd=home)[0]

    assert {"dev", "linked"} <= readable


def test_shim_adds_its_version_manager(home: Path) -> None:
    program(home / ".pyenv" / "shims" / "python")
    program(home / ".pyenv" / "libexec" / "pyenv")
    assert ".pyenv" in needed(home, "python", PATH=home / ".pyenv" / "shims")[0]


def test_dot_local_is_not_readable_as_a_whole(home: Path) -> None:
    local = home / ".local"
    program(local / "bin" / "tool")
    file(local / "share" / "keyrings" / "secret")
    file(local / "lib" / "python3.12" / "site-packages" / "tool.py")
    assert needed(home, "tool", PATH=local / "bin")[0] == {
        ".local/bin/tool",
        ".local/lib/python3.12",
    }


def test_pythonpath_folders_are_readable(home: Path) -> None:
    (home / "lib one").mkdir()
    assert needed(home, "sh", PYTHONPATH=f"{home}/lib one{os.pathsep}{home}/none")[0] == {"lib one"}


def test_home_named_as_an_argument_is_skipped(home: Path) -> None:
    readable, copied, got = needed(home, "sh", home, home.parent, "/")
    assert (readable, copied) == (set(), set())
    assert {home, home.parent, Path("/")} <= set(got.skipped)


def test_symlinks_on_the_path_are_recreated(home: Path, tmp_path: Path) -> None:
    script = file(tmp_path / "disk" / "code" / "server.py")
    alias = link(home / "code", tmp_path / "disk" / "code")
    got = needed(home, "sh", alias / "server.py")[2]
    assert script.parent in got.readable
    assert got.links[alias] == str(tmp_path / "disk" / "code")


def test_symlink_loop_is_tolerated(home: Path) -> None:
    link(home / "loop", "loop")
    needed(home, "sh", home / "loop")


def test_installation_is_shown_with_changes_that_vanish(home: Path, tmp_path: Path) -> None:
    script = file(home / "work" / "shop" / "server.py")
    file(home / "work" / "shop" / "pyproject.toml")
    tool = program(home / "bin" / "tool")
    world = tmp_path / "world"
    world.mkdir()
    box = sandbox_for(
        Method.UNSHARE,
        ["sh", str(script), str(tool)],
        world=world,
        cwd=world,
        env={"PATH": "/usr/bin"},
        home=home,
    )

    assert script.parent in box.copied
    assert not [path for path in box.readable if path.is_dir()]
    assert tool in box.readable


def test_installation_in_a_system_folder_is_copied_if_the_user_may_change_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt = tmp_path / "opt"
    script = file(opt / "app" / "dist" / "server.js")
    file(opt / "app" / "package.json")
    tool = program(opt / "bin" / "tool")
    packages = opt / "lib" / "node_modules"
    packages.mkdir(parents=True)
    monkeypatch.setattr(command_files, "SYSTEM", (opt,))

    assert {*needed(home, script, tool)[2].copied} == {opt / "app", packages}

    monkeypatch.setattr(os, "access", lambda *_: False)
    assert {*needed(home, script)[2].copied} == set()
