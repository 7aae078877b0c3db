"""Fleets: servers in images, in containers of the engines that run one on this machine."""

import gzip
import hashlib
import http.server
import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from mcp_touchstone import cli
from mcp_touchstone.catalog.loader import CONFORMANCE, rows
from mcp_touchstone.fleet import containers, drive
from mcp_touchstone.fleet.child import Running
from mcp_touchstone.fleet.entry import ListedServer, RegistryType
from mcp_touchstone.fleet.judge import classify, judge
from mcp_touchstone.sandbox import sandbox
from tests.cases import cases
from tests.conftest import eventually
from tests.fleets import PLAN, QUICK, commands_run, in_image
from tests.reference_client import CHECKOUT

pytestmark = pytest.mark.slow

SERVER = Path(__file__).parents[1] / "image_server.py"
PYTHON = os.path.realpath(sys.executable)
TMP = "/tmp"  # noqa: S108  (of a container)
LOADED = "import json, os, signal, sys, contextlib, pathlib, encodings.latin_1"


def output_of(*words: str, given: bytes = b"") -> str:
    """Return the output of a command; skip the test if it fails."""
    try:
        done = subprocess.run(words, input=given, capture_output=True, check=False, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{words[0]}: {error}")
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it failed"]
        pytest.skip(f"{' '.join(words[:2])}: {said[-1]}")
    return done.stdout.decode()


def archive() -> bytes:
    """Return a root file system with this interpreter, the server and its modules."""
    code = f"{LOADED}\nfor m in list(sys.modules.values()): print(getattr(m, '__file__', None))"
    modules = output_of(PYTHON, "-I", "-S", "-c", code).split()
    libraries = re.findall(r"(/\S+) \(0x", output_of("ldd", PYTHON))
    files = {name for name in (PYTHON, *modules, *libraries) if Path(name).is_file()}
    stdlib = Path(os.__file__).parent  # by its files the interpreter finds the folder
    files |= {str(stdlib / "os.py"), *map(str, (stdlib / "lib-dynload").glob("_json*"))}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        above = {str(folder) for file in files for folder in Path(file).parents}
        for name in sorted({"/tmp", "/proc", "/sys", "/dev", "/etc", *above} - {"/"}):  # noqa: S108
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o777
            tar.addfile(folder)
        for file in sorted(files):
            one = tar.gettarinfo(os.path.realpath(file), file)
            one.mode = 0o755
            with Path(file).open("rb") as data:
                tar.addfile(one, data)
        tar.add(SERVER, "/server.py")
    return packed.getvalue()


@pytest.fixture(scope="module", params=containers.ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Name an engine that runs a container here."""
    name: str = request.param
    if why := containers.unavailable(name):
        pytest.skip(f"{name}: {why}")
    return name


@pytest.fixture(scope="module")
def image(engine: str) -> Iterator[str]:
    """Make an image of the server, for a user that is not root."""
    name = f"localhost/mcp-touchstone-test-{uuid.uuid4().hex}:1"
    start = json.dumps([PYTHON, "-I", "-S", "/server.py"])
    words = [engine, "import", "--change", f"ENTRYPOINT {start}", "--change", "USER 1000:1000"]
    output_of(*words, "-", name, given=archive())
    try:
        output_of(*containers.command(engine, named(name), name, "probe", memory=0))
        yield name
    finally:
        subprocess.run([engine, "rmi", "--force", name], capture_output=True, check=False)


def named(image: str) -> ListedServer:
    """Return the server in an image."""
    package, _, version = image.rpartition(":")
    return ListedServer(name="image", registry=RegistryType.OCI, package=package, version=version)


@pytest.fixture
def entry(image: str) -> ListedServer:
    """Return the server in the image."""
    return named(image)


def containers_of(engine: str, image: str) -> list[str]:
    """Return the containers of an image, running or not."""
    words = [engine, "ps", "--all", "--quiet", "--filter", f"ancestor={image}"]
    return subprocess.run(words, capture_output=True, check=True, text=True).stdout.split()


def test_server_in_a_container_may_do_nothing_but_write_to_its_root(
    engine: str, image: str, entry: ListedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = commands_run(monkeypatch)
    monkeypatch.setenv("HTTPS_PROXY", "http://user:word@127.0.0.1:9")
    secret = uuid.uuid4().hex
    given = replace(entry, args=("{root}",), env={"TOKEN": f"{secret} {{root}}"})

    row = judge(given, replace(PLAN, engine=engine, memory=1 << 30))

    assert row["start"] == {"class": "started", "line": ""}
    assert row["verdicts"]["2025-11-25"]["ping-empty-response"] == "pass"
    found = json.loads(row["server"]["version"])
    root = found["token"].removeprefix(f"{secret} ")
    assert found["writes"] == [TMP, root]
    assert found["uid"] == os.geteuid()
    assert (found["capabilities"], found["privileges"]) == (0, "1")
    assert found["devices"] == ["lo"]
    own = {"PATH", "HOME", "HOSTNAME", "TERM", "container", "LC_CTYPE"}  # engine and interpreter
    assert {*found["variables"]} - own == {"TOKEN"}
    assert found["file size"] == str(256 << 20)
    assert not found["first"]
    assert secret not in "".join(commands)
    assert "descriptors" in row["not_seen"]
    assert "cost" not in row
    assert row["sdk"] == []
    assert row["version"] == "1"
    assert containers_of(engine, image) == []


def test_server_without_a_root_runs_as_the_user_of_its_image(
    engine: str, entry: ListedServer
) -> None:
    row = judge(entry, replace(PLAN, engine=engine))

    found = json.loads(row["server"]["version"])
    assert (found["uid"], found["writes"]) == (1000, [TMP])


def test_end_of_a_container_is_not_judged(engine: str, entry: ListedServer) -> None:
    rule = "lifecycle-negotiation-failures"
    row = judge(entry, replace(PLAN, engine=engine, words=("--select", rule, *QUICK[2:])))

    assert row["verdicts"] == {"2025-11-25": {rule: "unseen"}}
    assert {clause.id for clause in rows(CONFORMANCE)} >= containers.ENDINGS


def test_signal_reaches_the_server_in_a_container(
    engine: str, image: str, entry: ListedServer
) -> None:
    words = containers.command(engine, entry, image, "signal", memory=0)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        client.stdin.flush()
        assert json.loads(client.stdout.readline())["result"] == {}
        client.terminate()
        assert client.wait(60) == 128 + signal.SIGTERM

    eventually(lambda: not containers_of(engine, image))


def test_container_of_a_killed_client_is_removed(
    engine: str, image: str, entry: ListedServer
) -> None:
    """The server ignores the end of its input and SIGTERM, so ``check`` kills the client."""
    row = judge(replace(entry, args=("stubborn",)), replace(PLAN, engine=engine))

    assert row["start"]["class"] == "started"
    assert containers_of(engine, image) == []


def test_containers_of_a_killed_fleet_are_removed(engine: str, image: str, tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text(f'[[server]]\noci = "{image}"\nargs = ["stubborn"]\n')
    words = [sys.executable, "-c", "import sys; from mcp_touchstone.cli import main; main()"]
    words += ["fleet", str(tmp_path / "list.toml"), "--inside", engine, "--no-files"]
    words += ["--out", str(tmp_path / "rows.jsonl"), "--work", str(tmp_path), "--suite", "all"]

    with subprocess.Popen(words, stdout=subprocess.DEVNULL, cwd=CHECKOUT) as driver:
        eventually(lambda: containers_of(engine, image))
        driver.send_signal(signal.SIGKILL)
        driver.wait(60)

    eventually(lambda: not containers_of(engine, image))


def test_container_that_the_engine_refuses_is_no_fault_of_the_server(
    engine: str, entry: ListedServer
) -> None:
    (client, *words), name = containers.command(engine, entry, "x", "y", memory=0), "--network"
    assert client == "env"
    words[words.index(name) + 1] = "no-such-network"

    found = classify("the server left (status 125)", [f"{engine}: no such network"])
    assert found.kind == "harness"
    done = subprocess.run([client, *words], capture_output=True, check=False, input=b"")
    assert done.returncode == 125


@cases(
    (['oci = "x/y:1"'], 0), (['oci = "x/y:1"', 'npm = "z"'], 2), (['url = "https://x.example"'], 0)
)
def test_servers_in_images_alone_need_no_bubblewrap(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    servers: list[str],
    status: int,
) -> None:
    missing = "bubblewrap (bwrap) is not installed"
    monkeypatch.setattr(containers, "unavailable", lambda _engine: "")
    monkeypatch.setattr(sandbox, "choose", lambda _how: (None, missing))
    monkeypatch.setattr(drive, "drive", lambda *_, **__: None)
    listed = tmp_path / "list.toml"
    listed.write_text("".join(f"[[server]]\n{server}\n" for server in servers))
    words = ["--inside", "podman", "--out", str(tmp_path / "rows.jsonl")]

    assert cli.main(["fleet", str(listed), *words]) == status

    shown = f"mcp-touchstone: --inside podman: {missing}\n" if status else ""
    assert capsys.readouterr().err == shown


class Images(http.server.BaseHTTPRequestHandler):
    """A registry with one image."""

    blobs: ClassVar[dict[str, tuple[str, bytes]]] = {}

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        if self.path == "/v2/":
            self.say(200, "application/json", b"{}")
        elif "/there/" in self.path and name in self.blobs:
            self.say(200, *self.blobs[name])
        else:
            code = {"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}
            self.say(404, "application/json", json.dumps({"errors": [code]}).encode())

    do_HEAD = do_GET  # noqa: N815

    def say(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Docker-Content-Digest", f"sha256:{hashlib.sha256(data).hexdigest()}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve an image without files on loopback; return the address."""

    def add(kind: str, data: bytes) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        Images.blobs[digest] = (kind, data)
        return {"mediaType": kind, "size": len(data), "digest": digest}

    empty = io.BytesIO()
    tarfile.open(fileobj=empty, mode="w").close()
    layer = f"sha256:{hashlib.sha256(empty.getvalue()).hexdigest()}"
    settings = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": ["/none"], "Env": [tmp_path.name]},
        "rootfs": {"type": "layers", "diff_ids": [layer]},
    }
    docker = "application/vnd.docker"
    kind = f"{docker}.distribution.manifest.v2+json"
    packed = gzip.compress(empty.getvalue())
    config = add(f"{docker}.container.image.v1+json", json.dumps(settings).encode())
    layers = [add(f"{docker}.image.rootfs.diff.tar.gzip", packed)]
    manifest = {"schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers}
    Images.blobs["1"] = (kind, json.dumps(manifest).encode())
    add(*Images.blobs["1"])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Images)
    address = f"127.0.0.1:{server.server_port}"
    insecure = tmp_path / "registries.conf"
    insecure.write_text(f'[[registry]]\nlocation = "{address}"\ninsecure = true\n')
    monkeypatch.setenv("CONTAINERS_REGISTRIES_CONF", str(insecure))
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield address
        server.shutdown()


def test_image_is_pulled_once(engine: str, registry: str, tmp_path: Path) -> None:
    entry = ListedServer(
        name="x", registry=RegistryType.OCI, package=f"{registry}/there", version="1"
    )
    found = containers.pull(engine, entry, tmp_path, Running(), seconds=60)
    Images.blobs.clear()

    assert containers.pull(engine, entry, tmp_path, Running(), seconds=60) == found
    subprocess.run([engine, "rmi", entry.spec(":")], capture_output=True, check=True)


def test_image_that_cannot_be_pulled_is_classified(engine: str, registry: str) -> None:
    plan = replace(PLAN, engine=engine)
    absent = ListedServer(
        name="x", registry=RegistryType.OCI, package=f"{registry}/gone", version="1"
    )
    silent = replace(absent, package="127.0.0.1:9/gone")

    assert judge(absent, plan)["start"]["class"] == "not-found"
    assert judge(silent, plan)["start"]["class"] == "install-error"


def test_image_is_never_attacked() -> None:
    row = judge(in_image(), replace(PLAN, engine="podman", words=("--suite", "security")))

    line = "servers in images are not attacked"
    assert row["start"] == {"class": "unsupported", "line": line}


def test_missing_engine_ends_the_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "list.toml").write_text('[[server]]\noci = "x"\n')
    monkeypatch.setenv("PATH", str(tmp_path))

    assert cli.main(["fleet", str(tmp_path / "list.toml"), "--inside", "docker"]) == 2
    assert capsys.readouterr().err == "mcp-touchstone: --inside docker: docker is not installed\n"
