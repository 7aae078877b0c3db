"""The SDK of a server is found in files, and nothing of the server runs for that."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.catalog.sdk import NPM, PYPI, Package
from mcp_touchstone.discovery.origin import digests, origins
from mcp_touchstone.discovery.packages import identity, packages
from mcp_touchstone.discovery.sdk import SdkFacts, collect, commands, identify
from mcp_touchstone.sandbox.sandbox import Method, Sandbox, outer, probe, wrap
from mcp_touchstone.transport.family import Family, ProcessFacts

TRAP = "raise SystemExit('the server was imported')\n"


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def environment(place: Path, **packages: str) -> Path:
    """Make a virtual environment with packages; return its interpreter."""
    site = place / "lib/python3.11/site-packages"
    write(place / "pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n")
    for name, version in packages.items():
        write(site / name / "__init__.py", TRAP)
        write(
            site / f"{name}-{version}.dist-info/METADATA",
            f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n\nVersion: 9\n",
        )
    (place / "bin").mkdir(exist_ok=True)
    python = place / "bin/python"
    python.symlink_to(sys.executable)
    return python


def node_package(place: Path, name: str, version: str, **more: object) -> Path:
    folder = place / "node_modules" / name
    write(folder / "package.json", json.dumps({"name": name, "version": version, **more}))
    return folder


def found(*argv: object, cwd: Path, **env: str) -> tuple[str, ...]:
    process = ProcessFacts(tuple(map(str, argv)), cwd)
    return tuple(map(str, identify(collect([process], {"PATH": os.environ["PATH"], **env})).sdks))


def test_a_script_that_imports_the_sdk_runs_on_it(tmp_path: Path) -> None:
    python = environment(tmp_path / ".venv", mcp="1.30.0")
    script = write(tmp_path / "server.py", "from mcp.server.fastmcp import FastMCP\n")

    assert found(python, script, cwd=tmp_path) == ("mcp 1.30.0",)
    assert found(python, "-u", "-X", "utf8", "server.py", cwd=tmp_path) == ("mcp 1.30.0",)
    assert found(".venv/bin/python", "server.py", cwd=tmp_path) == ("mcp 1.30.0",)


def test_an_interpreter_on_path_is_found(tmp_path: Path) -> None:
    python = environment(tmp_path / ".venv", mcp="2.3.0")
    write(tmp_path / "server.py", "import os, mcp\n")

    assert found("python", "server.py", cwd=tmp_path, PATH=str(python.parent)) == ("mcp 2.3.0",)


def test_an_interpreter_on_the_path_of_its_process_is_found(tmp_path: Path) -> None:
    """As ``uvx --with mcp python server.py`` starts it."""
    python = environment(tmp_path / "layer", mcp="2.3.0")
    environment(tmp_path / "own", mcp="1.0.0")
    write(tmp_path / "server.py", "import mcp\n")
    env = {"PATH": str(tmp_path / "own/bin")}

    for path, version in (
        (f"none:{python.parent}", "2.3.0"),
        ("layer/bin", "2.3.0"),
        ("", "1.0.0"),
    ):
        facts = ProcessFacts(("python", "server.py"), tmp_path, path=path)
        assert list(map(str, identify(collect([facts], env)).sdks)) == [f"mcp {version}"]


@pytest.mark.skipif(sys.platform != "linux", reason="others may not show it")
def test_the_path_of_a_process_is_known(tmp_path: Path) -> None:
    env = {"PATH": f"{tmp_path}:/bin"}
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=env, start_new_session=True
    ) as process:
        facts = Family(process, in_sandbox=False).facts()
        process.communicate(b"\n")

    assert [one.path for one in facts] == [env["PATH"]]


def test_a_console_script_leads_to_its_package(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", mcp="1.12.4")
    site = tmp_path / "venv/lib/python3.11/site-packages"
    script = write(tmp_path / "venv/bin/notes", "import sys\nfrom notes.cli import main\n")
    write(site / "notes/__init__.py", "from .server import serve\n" + TRAP)
    write(site / "notes/cli.py", "from notes import serve\n")
    write(site / "notes/server.py", "def serve():\n    from mcp.server import Server\n")

    assert found(python, script, cwd=tmp_path) == ("mcp 1.12.4",)


def test_a_module_is_followed_through_other_packages(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", mcp="1.30.0", kit="1.0")
    site = tmp_path / "venv/lib/python3.11/site-packages"
    write(site / "kit/__init__.py", "from . import (\n    base,\n)\n")
    write(site / "kit/base.py", "import mcp.types\n")
    write(tmp_path / "app/__init__.py")
    write(tmp_path / "app/__main__.py", "import kit\n")

    assert found(python, "-m", "app", cwd=tmp_path) == ("mcp 1.30.0",)


def test_an_editable_install_is_followed(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", mcp="1.30.0")
    write(tmp_path / "src/app/server.py", "from mcp import types\n")
    write(tmp_path / "venv/lib/python3.11/site-packages/app.pth", f"{tmp_path / 'src'}\n")

    assert found(python, "-c", "import app.server", cwd=tmp_path) == ("mcp 1.30.0",)
    assert found(python, "-c", "import sys; import app.server", cwd=tmp_path) == ("mcp 1.30.0",)


def test_a_layer_of_uv_is_followed(tmp_path: Path) -> None:
    environment(tmp_path / "base", mcp="1.30.0")
    python = environment(tmp_path / "layer")
    base = tmp_path / "base/lib/python3.11/site-packages"
    write(
        tmp_path / "layer/lib/python3.11/site-packages/overlay.pth",
        f"import site; site.addsitedir('{base}')\n",
    )

    assert found(python, "-c", "import mcp", cwd=tmp_path) == ("mcp 1.30.0",)


def test_an_sdk_on_an_sdk_is_named_first(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", mcp="1.26.0", fastmcp="3.4.11")
    write(tmp_path / "server.py", "from mcp.types import Tool\nfrom fastmcp import FastMCP\n")
    write(tmp_path / "plain.py", "from mcp.server.fastmcp import FastMCP\n")

    assert found(python, "server.py", cwd=tmp_path) == ("fastmcp 3.4.11", "mcp 1.26.0")
    assert found(python, "plain.py", cwd=tmp_path) == ("mcp 1.26.0",)


def test_an_sdk_that_is_only_installed_is_not_the_servers(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", mcp="1.30.0")
    write(tmp_path / "server.py", "import json, sys\nfor line in sys.stdin: ...\n")

    assert found(python, "server.py", cwd=tmp_path) == ()


def test_a_module_of_the_server_with_the_name_of_the_sdk_is_not_the_sdk(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", mcp="1.30.0")
    write(tmp_path / "server.py", "import mcp.wire\n")
    write(tmp_path / "mcp/wire.py", "import json\n")

    assert found(python, "server.py", cwd=tmp_path) == ()


@pytest.mark.parametrize("name", ["@modelcontextprotocol/sdk", "@modelcontextprotocol/server"])
def test_a_node_script_that_imports_the_sdk_runs_on_it(tmp_path: Path, name: str) -> None:
    node_package(tmp_path, name, "1.29.0")
    write(tmp_path / "dist/index.js", 'import { serve } from "./serve.js";\n')
    write(tmp_path / "dist/serve.js", f'import {{ McpServer }} from "{name}/server/mcp.js";\n')

    assert found("/usr/bin/node", "dist/index.js", cwd=tmp_path) == (f"{name} 1.29.0",)
    assert found("node", "--import", "./x.js", "dist", cwd=tmp_path) == (f"{name} 1.29.0",)


def test_the_link_that_npx_starts_leads_to_the_package(tmp_path: Path) -> None:
    node_package(tmp_path, "@modelcontextprotocol/sdk", "1.32.2")
    server = node_package(tmp_path, "server-notes", "3.0.0")
    write(server / "dist/index.js", 'const { Server } = require("@modelcontextprotocol/sdk/x");\n')
    (tmp_path / "node_modules/.bin").mkdir()
    link = tmp_path / "node_modules/.bin/server-notes"
    link.symlink_to("../server-notes/dist/index.js")

    assert found("node", link, cwd=Path("/")) == ("@modelcontextprotocol/sdk 1.32.2",)


def test_the_sdk_nearest_to_the_server_counts(tmp_path: Path) -> None:
    node_package(tmp_path, "@modelcontextprotocol/sdk", "1.32.2")
    server = node_package(tmp_path, "notes", "3.0.0")
    node_package(server, "@modelcontextprotocol/sdk", "1.12.0")
    script = write(server / "index.js", 'import x from "@modelcontextprotocol/sdk/x.js";\n')

    assert found("node", script, cwd=tmp_path) == ("@modelcontextprotocol/sdk 1.12.0",)


def test_a_framework_leads_to_its_sdk(tmp_path: Path) -> None:
    needs = {"dependencies": {"@modelcontextprotocol/sdk": "^1"}}
    node_package(tmp_path, "fastmcp", "3.0.0", **needs)
    node_package(tmp_path, "@modelcontextprotocol/sdk", "1.20.0")
    write(tmp_path / "server.ts", 'import { FastMCP } from "fastmcp";\n')

    assert found("tsx", "server.ts", cwd=tmp_path) == (
        "fastmcp 3.0.0",
        "@modelcontextprotocol/sdk 1.20.0",
    )


def test_a_script_without_the_sdk_runs_on_none(tmp_path: Path) -> None:
    node_package(tmp_path, "@modelcontextprotocol/sdk", "1.32.2")
    write(tmp_path / "server.js", 'import { createInterface } from "node:readline";\n')

    assert found("node", "server.js", cwd=tmp_path) == ()


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("docker", "run", "-i", "image"),
        ("python",),
        ("python", "missing.py"),
        ("python", "-m"),
        ("python", "-c", "import ...; from . import x; import a.. b"),
        ("node",),
        ("node", "missing.js"),
        ("node", "-e", "1"),
    ],
)
def test_other_processes_run_on_an_unknown_sdk(tmp_path: Path, argv: tuple[str, ...]) -> None:
    facts = collect([ProcessFacts(argv, tmp_path)], {"PATH": ""})

    assert str(identify(facts)) == "unknown"


def test_the_first_process_that_imports_an_sdk_counts(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", mcp="1.30.0")
    write(tmp_path / "server.py", "import mcp\n")
    processes = [
        ProcessFacts(("sh", "-c", "server"), tmp_path),
        ProcessFacts((str(python), "server.py"), tmp_path),
    ]

    assert identify(collect(processes, {})).sdks == (Package("mcp", "1.30.0", PYPI),)


def test_a_command_names_the_interpreter_of_its_script(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", mcp="1.30.0")
    script = write(tmp_path / "run", f"#!{python} -I\nimport mcp\n")
    script.chmod(0o755)
    tool = write(tmp_path / "tool", "#!/usr/bin/env -S node --no-warnings\n")
    tool.chmod(0o755)

    env = {"PATH": os.environ["PATH"]}
    assert commands(["./run", "x"], tmp_path, env)[0].argv == (
        str(python),
        "-I",
        str(tmp_path / "./run"),
        "x",
    )
    assert commands([str(tool)], tmp_path, env)[0].argv == ("node", "--no-warnings", str(tool))
    assert commands(["no-such-program"], tmp_path, env) == []


HOSTILE = {
    "deep": "[" * 200_000,
    "deep members": '{"name":' * 100_000,
    "digits": f'{{"name": "app", "version": {"9" * 100_000}}}',
    "names": json.dumps({"name": [1], "version": {"a": 1}, "dependencies": 5}),
    "an import without an end": "from a import (" * 13_000,
    "blanks": f"from{' ' * 190_000}",
    "a long name": f"import './{'a' * 400}'\nimport {'b' * 400}\n",
    "many parts": f"import app{'.app' * 40_000}\n",
    "many names": f"import {', '.join(f'app.x{n}' for n in range(20_000))}\n",
    "many lines": "/usr\n" * 40_000,
}
"""Name -> the text of a file that anybody may have written."""


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_says_nothing(tmp_path: Path, text: str) -> None:
    python = environment(tmp_path / "venv", mcp="1.30.0")
    site = tmp_path / "venv/lib/python3.11/site-packages"
    for path in (
        tmp_path / "app/server.py",
        tmp_path / "app/app/__init__.py",
        site / "x.pth",
        site / "fastmcp-9.dist-info/METADATA",
        tmp_path / "app/package.json",
        tmp_path / "app/package-lock.json",
        tmp_path / "app/yarn.lock",
        tmp_path / "app/node_modules/fastmcp/package.json",
    ):
        write(path, text)
    write(tmp_path / "app/index.js", f"import 'fastmcp'\n{text}")
    before = time.process_time()

    assert found(python, "app/server.py", cwd=tmp_path) == ()
    assert found("node", "app/index.js", cwd=tmp_path) in {(), ("fastmcp ",)}
    assert time.process_time() - before < 20


@pytest.mark.skipif(os.name != "posix", reason="named pipes are files there")
def test_what_is_no_file_says_nothing(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", mcp="1.30.0")
    site = tmp_path / "venv/lib/python3.11/site-packages"
    script = write(tmp_path / "app/index.js", "import 'fastmcp'\n")
    os.mkfifo(site / "x.pth")
    (site / "fastmcp-9.dist-info").mkdir()
    os.mkfifo(site / "fastmcp-9.dist-info/METADATA")
    for name in ("package.json", "package-lock.json", "yarn.lock", "server.py"):
        os.mkfifo(script.parent / name)
    (site / "y.pth").symlink_to("/dev/zero")
    (site / "z.pth").symlink_to("z.pth")

    assert found(python, "app/server.py", cwd=tmp_path) == ()
    assert found("node", script, cwd=tmp_path) == ()
    (script.parent / "package.json").unlink()
    write(script.parent / "package.json", '{"name": "a", "dependencies": {"fastmcp": ">1"}}')
    assert found("node", script, cwd=tmp_path) == ()


def test_sdks_that_need_each_other_are_named_once(tmp_path: Path) -> None:
    script = write(tmp_path / "server.js", "import 'fastmcp'\n")
    inner = "@modelcontextprotocol/sdk"
    node_package(tmp_path, "fastmcp", "1.0.0", dependencies={inner: "1"})
    node_package(tmp_path, inner, "2.0.0", dependencies={"fastmcp": "1"})

    assert found("node", script, cwd=tmp_path) == ("fastmcp 1.0.0", f"{inner} 2.0.0")


def test_error_texts_are_only_a_hint() -> None:
    line = '{"result":{"content":[{"type":"text","text":"MCP error -32602: Tool x not found"}]}}'
    facts = SdkFacts(lines=('{"result":{}}', line))

    assert identify(facts).sdks == ()
    assert str(identify(facts)) == "unknown (its errors look like those of the TypeScript SDK)"


def test_an_sdk_without_a_version_is_unknown() -> None:
    assert identify(SdkFacts(registry=NPM, imported=frozenset({"fastmcp"}))).sdks == ()


TYPESCRIPT = "@modelcontextprotocol/sdk"


def bundle(place: Path, written: object = "^1.25.1", kind: str = "devDependencies") -> Path:
    """Make a package whose bundle imports nothing; return the bundle."""
    write(place / "package.json", json.dumps({"name": "notes", kind: {TYPESCRIPT: written}}))
    write(place / "dist/package.json", '{"type": "module"}')
    return write(place / "dist/bundle.mjs", "var Server = class {};\n")


@pytest.mark.parametrize("kind", ["dependencies", "devDependencies"])
@pytest.mark.parametrize(
    ("written", "shown"), [("^1.25.1", "^1.25.1"), ("~1.25.1", "^1.25.1"), ("1.25.1", "1.25.1")]
)
def test_a_published_bundle_has_the_range_of_its_package(
    tmp_path: Path, kind: str, written: str, shown: str
) -> None:
    script = bundle(tmp_path / "node_modules/notes", written, kind)
    node_package(tmp_path, TYPESCRIPT, "1.32.2")

    assert found("node", script, cwd=tmp_path) == (f"{TYPESCRIPT} {shown}",)


@pytest.mark.parametrize("written", ["*", "latest", ">=1.2.0 <3", "workspace:^", None, 3])
def test_a_bundle_of_an_unclear_range_is_unknown(tmp_path: Path, written: object) -> None:
    script = bundle(tmp_path / "node_modules/notes", written)

    assert found("node", script, cwd=tmp_path) == ()


def test_a_bundle_of_the_author_has_the_locked_or_installed_version(tmp_path: Path) -> None:
    script = bundle(tmp_path)
    locked = {"packages": {f"node_modules/{TYPESCRIPT}": {"version": "1.29.0"}}}
    write(tmp_path / "package-lock.json", json.dumps(locked))
    assert found("node", script, cwd=tmp_path) == (f"{TYPESCRIPT} 1.29.0",)

    node_package(tmp_path, TYPESCRIPT, "1.30.1")
    assert found("node", script, cwd=tmp_path) == (f"{TYPESCRIPT} 1.30.1",)


def test_a_bundle_that_names_the_sdks_of_both_sides_has_the_one_of_its_own(tmp_path: Path) -> None:
    both = {f"@modelcontextprotocol/{side}": "2.3.1" for side in ("client", "server")}
    place = tmp_path / "node_modules/inspector"
    write(place / "package.json", json.dumps({"name": "inspector", "dependencies": both}))
    process = ProcessFacts(("node", str(write(place / "build/index.js"))), tmp_path)

    known = identify(collect([process], {}))

    assert str(known.of_client) == "@modelcontextprotocol/client 2.3.1"
    assert str(known.of_server) == "@modelcontextprotocol/server 2.3.1"


LOCKS = {
    "pnpm-lock.yaml": f"packages:\n\n  '{TYPESCRIPT}@1.29.0':\n    engines: {{}}\n",
    "pnpm-lock.yaml with peers": f"snapshots:\n  '{TYPESCRIPT}@1.29.0(zod@3.25.0)':\n    x: 1\n",
    "yarn.lock": f'"{TYPESCRIPT}@^1.25.0":\n  version "1.29.0"\n',
    "yarn.lock of yarn 2": f'"{TYPESCRIPT}@npm:^1.25.0":\n  version: 1.29.0\n',
}


@pytest.mark.parametrize("name", LOCKS)
def test_a_bundle_of_the_author_has_the_version_of_any_lock_file(name: str, tmp_path: Path) -> None:
    script = bundle(tmp_path)
    write(tmp_path / name.split(maxsplit=1)[0], LOCKS[name])

    assert found("node", script, cwd=tmp_path) == (f"{TYPESCRIPT} 1.29.0",)


def test_a_lock_file_with_two_versions_decides_nothing(tmp_path: Path) -> None:
    script = bundle(tmp_path, "*")
    both = "".join(f"  '{TYPESCRIPT}@{version}':\n    x: 1\n" for version in ("1.29.0", "1.30.0"))
    write(tmp_path / "pnpm-lock.yaml", both)

    assert found("node", script, cwd=tmp_path) == ()


# --- the packages that advisories are about


def others(*argv: object, cwd: Path, **env: str) -> tuple[str, ...]:
    process = ProcessFacts(tuple(map(str, argv)), cwd)
    known = {"PATH": os.environ["PATH"], **env}
    return tuple(map(str, packages(origins([process], known), known)))


def test_package_of_the_started_module_or_script_is_named(tmp_path: Path) -> None:
    python = environment(tmp_path / ".venv")
    info = tmp_path / ".venv/lib/python3.11/site-packages/mcp_server_git-2025.9.25.dist-info"
    write(info / "METADATA", "Name: mcp-server-git\nVersion: 2025.9.25\n\n")
    files = "../../../bin/mcp-server-git,,\nmcp_server_git/__init__.py,,\n"
    write(info / "RECORD", files)
    write(info.parent / "mcp_server_git/__init__.py")
    script = write(tmp_path / ".venv/bin/mcp-server-git")

    assert others(python, "-m", "mcp_server_git", cwd=tmp_path) == ("mcp-server-git 2025.9.25",)
    assert others(python, script, cwd=tmp_path) == ("mcp-server-git 2025.9.25",)
    assert others(python, "-m", "another", cwd=tmp_path) == ()
    assert others(python, "-c", "import mcp_server_git", cwd=tmp_path) == ()


def test_package_around_a_script_of_node_is_named(tmp_path: Path) -> None:
    name = "@modelcontextprotocol/server-filesystem"
    folder = node_package(tmp_path, name, "2025.3.28")
    script = write(folder / "dist/index.js", "")
    write(tmp_path / "mine.js", "")

    assert others("node", script, cwd=tmp_path) == (f"{name} 2025.3.28",)
    assert others("node", tmp_path / "mine.js", cwd=tmp_path) == ()


def test_package_in_the_folder_of_its_author_is_named(tmp_path: Path) -> None:
    about = '[project]\nname = "mcp-server-git"\nversion = "2025.9.25"\n'
    write(tmp_path / "pyproject.toml", about)
    write(tmp_path / "src/mcp_server_git/__main__.py", "")
    places = {"PYTHONPATH": str(tmp_path / "src")}
    script = write(tmp_path / "run.py", "")

    assert others("python3", script, cwd=tmp_path) == ("mcp-server-git 2025.9.25",)
    module = ("python3", "-m", "mcp_server_git")
    assert others(*module, cwd=tmp_path, **places) == ("mcp-server-git 2025.9.25",)
    write(tmp_path / "pyproject.toml", "[project]\nname = 1\nversion = [")
    assert others("python3", script, cwd=tmp_path) == ()


def test_package_that_a_lock_file_names_is_named(tmp_path: Path) -> None:
    name = "@modelcontextprotocol/node"
    about = {"name": "mine", "dependencies": {name: "^2.0.0"}}
    write(tmp_path / "package.json", json.dumps(about))
    packages = {f"node_modules/{name}": {"version": "2.0.0"}}
    write(tmp_path / "package-lock.json", json.dumps({"packages": packages}))
    script = write(tmp_path / "server.js", "")

    assert others("node", script, cwd=tmp_path) == (f"{name} 2.0.0",)


def test_package_that_a_script_of_node_depends_on_is_named(tmp_path: Path) -> None:
    node_package(tmp_path, "@modelcontextprotocol/node", "2.0.0")
    node_package(tmp_path, "@modelcontextprotocol/client", "2.0.0")
    needed = {"@modelcontextprotocol/node": "^2.0.0"}
    write(tmp_path / "package.json", json.dumps({"name": "mine", "dependencies": needed}))
    script = write(tmp_path / "server.js", "")

    assert others("node", script, cwd=tmp_path) == ("@modelcontextprotocol/node 2.0.0",)


INSIDE = """\
import os, pathlib, sys
at = pathlib.Path("/tmp/cache/environment")
site = at / "lib/python3.11/site-packages"
run = "import sys\\nfrom notes import main\\nprint('ready', flush=True)\\nsys.stdin.read()"
for name, text in {
    at / "bin/notes": run,
    at / "pyvenv.cfg": "home = /usr/bin",
    site / "notes/__init__.py": "import mcp.server\\nmain = 0",
    site / "mcp/server.py": "",
    site / "mcp-9.8.7.dist-info/METADATA": "Name: mcp\\nVersion: 9.8.7",
    site / "notes-3.2.1.dist-info/METADATA": "Name: notes\\nVersion: 3.2.1",
    site / "notes-3.2.1.dist-info/RECORD": "notes/__init__.py,,\\n../../../bin/notes,,",
}.items():
    name.parent.mkdir(parents=True, exist_ok=True)
    name.write_text(text)
(site / "fastmcp-1.0.0.dist-info").symlink_to(sys.argv[1])
(site / "fastmcp.py").write_text("")
(at / "bin/python").symlink_to(sys.executable)
os.execv(at / "bin/python", [str(at / "bin/python"), "-P", str(at / "bin/notes")])
"""
"""A launcher that makes an environment where it is, as ``uvx`` does, and starts a server there."""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces")
@pytest.mark.parametrize("method", list(Method))
def test_what_a_launcher_installs_in_a_sandbox_is_found_there(
    tmp_path: Path, method: Method
) -> None:
    if why := probe(method):
        pytest.skip(why)
    outside = write(tmp_path / "fastmcp/METADATA", "Name: fastmcp\nVersion: 1.0.0\n").parent
    world = tmp_path / "world"
    world.mkdir()
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{world}/lib"}
    box = Sandbox(method=method, writable=(world,), readable=(Path(sys.base_prefix).resolve(),))
    program = os.path.realpath(sys.executable)
    words = wrap(box, [program, "-c", INSIDE, str(outside)], cwd=world, env=env)
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=outer(env), start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            seen = Family(process, in_sandbox=True).facts()
            known = identity(seen, [program], world, env)
        finally:
            process.kill()

    assert list(map(str, known.sdks)) == ["mcp 9.8.7"]  # and not what a link outside names
    assert known.origin is not None
    assert (known.origin.name, known.origin.version) == ("notes", "3.2.1")
    with pytest.raises(UserError, match="in the sandbox only"):
        digests(known.origin)
