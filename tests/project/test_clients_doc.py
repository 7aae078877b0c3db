"""The configurations in docs/guides/clients.md and the Dockerfile work."""

import json
import os
import re
import shlex
import shutil
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.reference_client import CHECKOUT, Message, Spawned, notification, request

PAGE = CHECKOUT / "docs" / "guides" / "clients.md"
DOCKERFILE = CHECKOUT / "Dockerfile"
PLACEHOLDERS = ("/path/to/project", "${workspaceFolder}", "${CLAUDE_PROJECT_DIR:-.}")
TABLES = ("mcpServers", "servers", "mcp_servers")


class Configured(NamedTuple):
    """One server as a client would start it."""

    title: str
    entry: dict[str, Any]


def configurations() -> list[Configured]:
    """List every server of every block on the page, with the heading above it."""
    found = []
    title = ""
    text = PAGE.read_text("utf-8")
    for heading, language, block in re.findall(
        r"^## ([^\n]+)$|^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
    ):
        title = heading or title
        if language in ("json", "toml"):
            whole = json.loads(block) if language == "json" else tomllib.loads(block)
            (table,) = (whole[name] for name in TABLES if name in whole)
            found += [Configured(title, entry) for entry in table.values()]
    return found


CONFIGURED = configurations()
IDS = [f"{one.title}-{at}" for at, one in enumerate(CONFIGURED)]


def filled_in(value: Any, root: Path) -> Any:
    """Replace the path placeholders with a real directory."""
    if isinstance(value, dict):
        return {name: filled_in(inner, root) for name, inner in value.items()}
    if isinstance(value, list):
        return [filled_in(inner, root) for inner in value]
    if isinstance(value, str):
        for placeholder in PLACEHOLDERS:
            value = value.replace(placeholder, str(root))
    return value


def steps() -> list[list[str]]:
    """List the instructions of the Dockerfile, each with its arguments."""
    text = re.sub(r"\\\n", " ", DOCKERFILE.read_text("utf-8"))
    return [line.split(None, 1) for line in text.splitlines() if line and line[0] != "#"]


class Image:
    """The image of the Dockerfile, reproduced without a container engine."""

    def __init__(self, folder: Path) -> None:
        self.steps = steps()
        self.folder = folder
        self.environment: dict[str, str] = {}
        for word, rest in self.steps:
            if word == "COPY":
                source, target = rest.split()
                self._copy(CHECKOUT / source, folder / target.lstrip("/"))
            elif word == "ENV":
                self.environment |= dict(pair.split("=", 1) for pair in shlex.split(rest))

    @staticmethod
    def _copy(source: Path, target: Path) -> None:
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.md")
            shutil.copytree(source, target, ignore=ignored)
        else:
            target.mkdir(parents=True)
            shutil.copy(source, target)

    def last(self, instruction: str) -> str:
        return [rest for word, rest in self.steps if word == instruction][-1]

    def command(self, mounted: Path, *arguments: str) -> list[str]:
        """Return the command of a container with the directory mounted at /workspace."""
        environment = dict(self.environment, PYTHONPATH=str(self.folder / "opt/mcp"))
        entry = json.loads(self.last("ENTRYPOINT"))
        words = [*entry, *(arguments or json.loads(self.last("CMD")))]
        assert words[0] == "python"
        words = [word.replace("/workspace", str(mounted)) for word in [sys.executable, *words[1:]]]
        variables = [f"{name}={value}" for name, value in environment.items()]
        return ["env", "-i", "-C", str(mounted), *variables, *words]


def container_command(arguments: list[str], folder: Path) -> list[str]:
    """Return the command equivalent to ``docker run``."""
    image = arguments.index("mcp-touchstone-reference")
    assert arguments[:3] == ["run", "--rm", "-i"]
    volume = arguments[arguments.index("-v") + 1]
    mounted, where = volume.split(":")[:2]
    assert where == "/workspace"
    return Image(folder).command(Path(mounted), *arguments[image + 1 :])


def converse(command: list[str], environment: dict[str, str], cwd: Path) -> tuple[Message, Message]:
    """Open a session as a client does; return the tools by name and the reply to a read."""
    variables = [f"{name}={value}" for name, value in environment.items()]
    with Spawned(command=["env", *variables, *command], cwd=cwd) as client:
        client.open("2025-11-25")
        client.send(notification("notifications/initialized"), request(1, "tools/list"))
        tools = {tool["name"]: tool for tool in client.hear()["result"]["tools"]}
        assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in tools)
        arguments = {"path": "only-here.txt"}
        client.send(request(2, "tools/call", {"name": "file_read", "arguments": arguments}))
        answer = client.hear()["result"]
        client.end_input()
        assert client.exit_code() == 0
        if "--log-level" not in command and "CEDARSCRIPT_LOG_LEVEL" not in environment:
            assert client.stderr() == ""
    return tools, answer


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "a project"
    root.mkdir()
    (root / "only-here.txt").write_text("found it\n")
    return root


@pytest.mark.skipif(os.name == "nt", reason="starts the servers through env")
@pytest.mark.parametrize("configured", CONFIGURED, ids=IDS)
def test_documented_configurations_start_a_working_server(
    configured: Configured, project: Path, tmp_path: Path
) -> None:
    entry = filled_in(configured.entry, project)
    program, arguments = entry["command"], entry["args"]
    if program == "docker":
        command = container_command(arguments, tmp_path / "image")
    else:
        assert Path(program).name == "mcp-touchstone"
        command = [sys.executable, "-m", "mcp_touchstone", *arguments]
    rest = json.dumps([arguments, entry.get("env", {})])
    assert "${" not in rest
    assert "/path/to" not in rest

    where = project if program == "docker" else tmp_path
    tools, answer = converse(command, entry.get("env", {}), where)

    assert "found it" in json.dumps(answer)
    assert set(entry.get("enabled_tools", ())) <= tools.keys()
    assert entry.get("type", "stdio") == "stdio"


def test_page_documents_all_clients() -> None:
    titles = [configured.title for configured in CONFIGURED]

    assert titles == [
        *("Claude Desktop", "Claude Code", "VS Code", "VS Code", "Codex", "A container")
    ]


def test_configurations_use_only_variables_of_their_client() -> None:
    for title, entry in CONFIGURED:
        variables = set(re.findall(r"\$\{[^}]+\}", json.dumps(entry)))
        known = {"VS Code": {"${workspaceFolder}"}, "Claude Code": {"${CLAUDE_PROJECT_DIR:-.}"}}
        assert variables <= known.get(title, set()), title


def test_image_has_a_slim_base_and_an_unprivileged_user(tmp_path: Path) -> None:
    image = Image(tmp_path / "image")

    assert (image.steps[0], image.last("FROM")) == (["ARG", "BASE=python:3.12-slim"], "$BASE")
    assert not image.last("USER").startswith(("0", "root"))
    assert json.loads(image.last("CMD")) == ["--root", image.last("WORKDIR")]
    order = [word for word, _rest in image.steps]
    assert order.index("USER") > max(at for at, word in enumerate(order) if word in ("RUN", "COPY"))
    assert image.last("ARG") == 'EXTRA=""'


@pytest.mark.skipif(os.name == "nt", reason="starts the server through env")
def test_module_in_the_served_directory_is_not_imported(project: Path, tmp_path: Path) -> None:
    for name in ("json.py", "threading.py", "reference_server.py"):
        (project / name).write_text("raise SystemExit('imported')\n")

    _tools, answer = converse(Image(tmp_path / "image").command(project), {}, project)

    assert "found it" in json.dumps(answer)


def test_docker_build_context_is_limited_to_copied_paths() -> None:
    lines = (CHECKOUT / ".dockerignore").read_text().split()
    copied = {rest.split()[0] for word, rest in steps() if word == "COPY"}

    assert lines[0] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == copied


def test_workflow_builds_and_tests_the_image() -> None:
    script = CHECKOUT / ".ci" / "image"

    assert "run: .ci/image" in (CHECKOUT / ".github/workflows/image.yml").read_text()
    assert script.stat().st_mode & stat.S_IXUSR
    assert '"method":"initialize"' in script.read_text()
