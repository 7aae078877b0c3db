"""Run servers in OCI images, in containers of Podman or Docker.

Each conversation starts a container: ``check`` starts the client of the engine as it starts any
server. What it knows of the process that it started is then about the client (``NOT_SEEN``).
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mcp_touchstone.fleet.child import Running, afterwards, run
from mcp_touchstone.fleet.entry import ROOT, ListedServer, Start
from mcp_touchstone.fleet.install import LONGEST, InstallError
from mcp_touchstone.sandbox.sandbox import FILE_SIZE, PROCESSES, variables

if sys.platform == "linux":
    import resource

ENGINES: Final = ("podman", "docker")

ENDINGS: Final = frozenset(
    {
        "lifecycle-negotiation-failures",
        "lifecycle-shutdown-on-stdin-close",
        "stdio-exit-on-eof",
        "stdio-server-initiated-close",
    }
)
"""Rules that look at the end of the process: the client ends later, and never by a signal."""

NOT_SEEN: Final = (
    "SDK",
    "end of the process",
    "CPU time",
    "memory",
    "descriptors",
    "opened files",
    "processes left behind",
)
"""What is not observed of a server in a container."""

LABEL: Final = "mcp-touchstone"
"""Label of our containers; its value names the check that started them."""

MOST: Final = 1 << 20
"""Greatest number of descriptors of a process."""

PATIENCE: Final = 60.0
"""Seconds for a command of the engine that needs no network."""

PASSED: Final = re.compile(
    r"CONTAINERS?_\w+|STORAGE_\w+|REGISTRY_AUTH_FILE|DOCKER_\w+|XDG_RUNTIME_DIR"
)
"""Variables that the client of an engine gets beside the usual ones."""

MOVED: Final = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
"""Variables that ``check`` changes, and that the client needs as they were."""

PROXIES: Final = re.compile(r"(?i)(https?|no|all)_proxy")
"""Variables that it gets to pull an image, and not to run one: Podman would pass them on."""

ABSENT: Final = re.compile(
    r"(?i)manifest unknown|name unknown|manifest for \S+ not found"
    r"|repository does not exist|access to the resource is denied"
)
"""Output of an engine for an image that does not exist, or is not public."""

ENGINE_FAILED: Final = "(status 125)"
"""End of ``run`` if the engine could not start the container; other statuses are the server's."""

_REMOVE: Final = """
ids=$("$0" ps --all --quiet --filter "label=$1")
if [ -n "$ids" ]; then
    "$0" kill $ids
    "$0" rm --force $ids
fi
"""


def unavailable(engine: str) -> str:
    """Return the reason an engine cannot be used on this machine; empty if it can."""
    if shutil.which(engine) is None:
        return f"{engine} is not installed"
    words, env = [engine, "info"], environment(os.environ)
    output, status = run(words, cwd=Path.cwd(), env=env, seconds=PATIENCE, running=Running())
    return "" if status == 0 else _last(output, f"`{engine} info` failed")


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the user that the client of an engine gets."""
    passed = {name: value for name, value in env.items() if PASSED.fullmatch(name)}
    moved = {name: env[name] for name in MOVED if name in env}
    return {**variables(env, network=True), **moved, **passed}


def pull(engine: str, entry: ListedServer, cwd: Path, running: Running, *, seconds: float) -> str:
    """Pull the image of a server, unless the machine has it; return its id.

    Raises:
        InstallError: the image does not exist, or cannot be pulled.
    """
    image = entry.spec(":")
    proxies = {name: value for name, value in os.environ.items() if PROXIES.fullmatch(name)}
    env = {**environment(os.environ), **proxies}

    def ask(*words: str, limit: float = PATIENCE) -> tuple[str, int | None]:
        return run((engine, *words), cwd=cwd, env=env, seconds=limit, running=running)

    inspect = ("image", "inspect", "--format", "{{.Id}}", "--", image)
    output, status = ask(*inspect)
    if status:
        output, status = ask("pull", "--quiet", "--", image, limit=seconds)
        if status is None:
            line = f"the image was not pulled within {seconds:.0f} s"
            raise InstallError(Start.INSTALL_ERROR, line)
        if status:
            raise _failure(output, status)
        output, status = ask(*inspect)
    if status != 0:
        raise InstallError(Start.HARNESS, _last(output, f"{image}: it is pulled and not there"))
    return _last(output, "")


def _failure(output: str, status: int) -> InstallError:
    line = _last(output, f"exit status {status}")
    if "no space left" in output.lower():
        return InstallError(Start.HARNESS, "no space left on the device")
    return InstallError(Start.NOT_FOUND if ABSENT.search(output) else Start.INSTALL_ERROR, line)


def _last(output: str, otherwise: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return (lines or [otherwise])[-1][:LONGEST]


def command(
    engine: str, entry: ListedServer, image: str, label: str, *, memory: int
) -> tuple[str, ...]:
    """Return the command that runs a server in a container, for ``check``.

    Values of variables are not in it. A server that is given the throw-away root runs as the owner
    of that folder.

    Args:
        image: its image, which the machine has.
        memory: limit for the container in bytes; 0 for none.
    """
    words = [*_client(entry), engine, "run", "--interactive", "--rm", "--init"]
    words += ["--pull", "never", "--log-driver", "none", "--label", f"{LABEL}={label}"]
    words += ["--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    words += ["--read-only", "--tmpfs", "/tmp"]  # noqa: S108  (the container's own)
    words += ["--pids-limit", str(PROCESSES)]
    words += [word for limit in _limits() for word in ("--ulimit", limit)]
    words += ["--memory", f"{memory}b"] if memory else []
    words += [word for name in entry.env for word in ("--env", name)]
    if any(ROOT in word for word in (*entry.args, *entry.env.values(), entry.cwd or "")):
        words += ["--mount", f"type=bind,source={ROOT},target={ROOT}", "--user", _owner(engine)]
    words += ["--workdir", entry.cwd] if entry.cwd else []
    return (*words, "--", image, *entry.args)


def _client(entry: ListedServer) -> list[str]:
    """Return ``env`` with the words that undo what ``check`` changes in the environment."""
    names = [name for name in MOVED if name not in entry.env]
    unset = [word for name in names if name not in os.environ for word in ("-u", name)]
    return ["env", *unset, *(f"{name}={os.environ[name]}" for name in names if name in os.environ)]


def _limits() -> Iterator[str]:
    """Yield limits of each process, as options of ``run``.

    An engine sets higher limits of its own. Where it may not raise ours, it starts nothing then.
    """
    yield f"fsize={FILE_SIZE}:{FILE_SIZE}"
    yield f"nproc={PROCESSES}:{PROCESSES}"
    if sys.platform == "linux":
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
        yield f"nofile={most}:{most}"


def _owner(engine: str) -> str:
    """Return user and group in a container to which a folder of ours belongs.

    Without root, Podman maps us to root of the container.
    """
    return "0:0" if engine == "podman" else f"{os.geteuid()}:{os.getegid()}"


@contextmanager
def removed(engine: str, label: str) -> Iterator[Sequence[int]]:
    """Remove the containers with a label at the end, also if this program is killed.

    Yields descriptors that the process that starts the containers must inherit: they are removed
    when it has ended.
    """
    words = ("sh", "-c", _REMOVE, engine, f"{LABEL}={label}")
    with afterwards(words, environment(os.environ), PATIENCE) as descriptor:
        yield (descriptor,)
