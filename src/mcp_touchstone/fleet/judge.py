"""Judge one server of a fleet: install its package, run ``check`` on it, make a row of the report.

``check`` runs in a process of its own, so nothing that happens to it harms the others.
"""

import datetime as dt
import hashlib
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.catalog.loader import SUITES, home
from mcp_touchstone.fleet import containers
from mcp_touchstone.fleet.child import Running, run
from mcp_touchstone.fleet.entry import ListedServer, RegistryType, Start, Trouble
from mcp_touchstone.fleet.install import LONGEST, Installed, InstallError, install, locate
from mcp_touchstone.fleet.records import differences
from mcp_touchstone.results.run import Conclusion
from mcp_touchstone.runtime.disk_limit import DiskLimit
from mcp_touchstone.runtime.input_file import InputFile
from mcp_touchstone.runtime.members import Members
from mcp_touchstone.runtime.scratch import abandoned, clear, held
from mcp_touchstone.sandbox.sandbox import Method, variables
from mcp_touchstone.transport.http_endpoint import Endpoint, EndpointError
from mcp_touchstone.transport.process import now, sleep
from mcp_touchstone.version import __version__

FORMAT: Final = 1
"""Version of the rows; incremented if a reader of the old format would misread a new row."""

SCHEMA: Final = Path(__file__).with_name("schema.json")

GRACE: Final = 30.0
"""Seconds that ``check`` gets beyond its deadline to end its servers and write its report."""

RATE: Final = 1
"""Requests a second to a server on another machine."""

LEAST: Final = 5.0
"""Seconds of a deadline that ``check`` gets at least, however long the installation took."""

INSTALLATION: Final = 4096
"""Limit in MiB of what an installation, and the server without a sandbox, writes to its folder."""

INSTALLED: Final = (RegistryType.NPM, RegistryType.PYPI)

NOT_ATTACKED: Final = {RegistryType.REMOTE: "at a URL", RegistryType.OCI: "in images"}
"""Servers whose files and processes are not ours to look at."""

PAGE: Final = "report.html"
"""The page of one server, in the folder of its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSettings:
    """The settings of a fleet, the same for each server.

    Attributes:
        words: options of ``check``: suite, selection, examples.
        method: how sandboxes are made; None for no sandbox.
        engine: what runs servers in images; empty for nothing.
        deadline: limit for a server in seconds, with its installation.
        startup: limit for its first reply, in seconds.
        jobs: conversations with it at a time.
        memory: greatest size of the data of each of its processes, in bytes; 0 for no limit.
        files: folder for the report and the transcripts of each server; None keeps none.
        work: folder for installations; None for the temporary folder.
        rate: greatest number of requests a second to a server on another machine.
    """

    words: tuple[str, ...] = ()
    method: Method | None = None
    engine: str = ""
    deadline: float = 300.0
    startup: float = 30.0
    jobs: int = 20
    memory: int = 4 << 30
    files: Path | None = None
    work: Path | None = None
    rate: int = RATE

    def document(self) -> dict[str, Any]:
        """Return the settings on which verdicts depend, for the rows."""
        return {
            "check": list(self.words),
            "inside": self.engine or str(self.method or "none"),
            "deadline": self.deadline,
            "startup": self.startup,
        }


@lru_cache
def digest() -> str:
    """Return the SHA-256 of all clauses, threats and scenarios, which decide verdicts."""
    found = hashlib.sha256()
    for folder in SUITES.values():
        for path in sorted((home() / folder).rglob("*")):
            if path.suffix in {".toml", ".py"}:
                found.update(path.relative_to(home()).as_posix().encode())
                found.update(path.read_bytes())
    return found.hexdigest()


def judge(
    entry: ListedServer, plan: FleetSettings, running: Running | None = None
) -> dict[str, Any]:
    """Judge one server; return its row. Never raises for anything of the server's."""
    begun = now()
    row = _blank(entry, plan)
    for folder in abandoned([plan.work or Path(tempfile.gettempdir())]):
        clear(folder)
    try:
        disk = DiskLimit(INSTALLATION)
        with held(plan.work, disk) as work:
            _judge(
                row, entry, plan, work=work, begun=begun, running=running or Running(), disk=disk
            )
        if disk.met:
            row["interrupted"] = f"the server was ended: {disk.met}"
            if row["conclusion"] == Conclusion.PASSED:
                row |= {"conclusion": str(Conclusion.NOT_CHECKED), "gap": disk.met}
    except InstallError as error:
        row["start"] = _start(error.trouble)
    except OSError as error:
        line = f"{error.filename or 'the machine'}: {error.strerror or error}"
        row["start"] = _start(Trouble(Start.HARNESS, line))
    row["seconds"]["total"] = round(now() - begun, 3)
    return row


def _blank(entry: ListedServer, plan: FleetSettings) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "key": entry.key,
        "name": entry.name,
        "registry": str(entry.registry),
        "package": entry.package,
        "version": entry.version,
        "launch": list(entry.launch) or [entry.url],
        "language": {RegistryType.NPM: "node", RegistryType.PYPI: "python"}.get(entry.registry, ""),
        "tool": {"version": __version__, "catalogue": digest()},
        "settings": plan.document(),
        "when": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "start": _start(Trouble(Start.HARNESS, "it was not judged")),
        "server": {},
        "described": dict(entry.described),
        "differs": [],
        "sdk": [],
        "revisions": [],
        "verdicts": {},
        "sdk_faults": [],
        "interrupted": "",
        "unbound": "",
        "conclusion": "",
        "gap": "",
        "install": "",
        "processes": 0,
        "seconds": {"install": 0.0, "startup": 0.0, "run": 0.0, "total": 0.0},
        "files": "",
        **({"ignored": list(entry.ignored)} if entry.ignored else {}),
    }


def unjudged(entry: ListedServer, plan: FleetSettings, line: str) -> dict[str, Any]:
    """Return the row of a server that could not be judged for a reason of ours."""
    return {**_blank(entry, plan), "start": _start(Trouble(Start.HARNESS, line))}


def _start(trouble: Trouble) -> dict[str, str]:
    return {"class": str(trouble.kind), "line": trouble.line[:LONGEST]}


def _judge(
    row: dict[str, Any],
    entry: ListedServer,
    plan: FleetSettings,
    *,
    work: Path,
    begun: float,
    running: Running,
    disk: DiskLimit,
) -> None:
    trouble = entry.trouble or _unsupported(entry, plan)
    if trouble is not None:
        row["start"] = _start(trouble)
        return
    command = entry.command
    if entry.registry in INSTALLED:
        installed = _installed(entry, plan, work, running, disk)
        command = (installed.program, *entry.args)
        row["version"] = installed.version
        row["seconds"]["install"] = round(now() - begun, 3)
    elif entry.registry is RegistryType.OCI:
        image = containers.pull(plan.engine, entry, work, running, seconds=plan.deadline)
        command = containers.command(plan.engine, entry, image, work.name, memory=plan.memory)
        row["version"] = entry.version or image
        row["seconds"]["install"] = round(now() - begun, 3)
        row["not_seen"] = list(containers.NOT_SEEN)
    files = work / "files" if plan.files is None else plan.files / _slug(entry.key)
    files.mkdir(parents=True, exist_ok=True)
    row["files"] = "" if plan.files is None else str(files)
    left = max(plan.deadline - (now() - begun), LEAST)
    words = _words(entry, plan, command, work=work, files=files, left=left)
    _check(row, words, entry, plan, work=work, files=files, left=left, running=running, disk=disk)


def _installed(
    entry: ListedServer, plan: FleetSettings, work: Path, running: Running, disk: DiskLimit
) -> Installed:
    if entry.prefix:
        return locate(entry, Path(entry.prefix))
    prefix = work / "package"
    prefix.mkdir()
    found = install(entry, prefix, running, method=plan.method, seconds=plan.deadline, disk=disk)
    shutil.rmtree(prefix / "home", ignore_errors=True)
    return found


def _unsupported(entry: ListedServer, plan: FleetSettings) -> Trouble | None:
    if entry.registry is RegistryType.OCI and not plan.engine:
        return Trouble(Start.UNSUPPORTED, "an image: use --inside podman or --inside docker")
    if entry.registry in NOT_ATTACKED and _suite(plan) == "security":
        return Trouble(
            Start.UNSUPPORTED, f"servers {NOT_ATTACKED[entry.registry]} are not attacked"
        )
    if entry.registry is not RegistryType.REMOTE:
        return None
    try:
        Endpoint(entry.url)
    except EndpointError as error:
        return Trouble(Start.UNSUPPORTED, str(error))
    return None


def _suite(plan: FleetSettings) -> str:
    """Return the suite that ``check`` runs; empty for the default."""
    pairs = itertools.pairwise(plan.words)
    return next((value for name, value in pairs if name == "--suite"), "")


def _slug(key: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9._@-]+", "_", key)[:80]
    return f"{plain}-{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _words(
    entry: ListedServer,
    plan: FleetSettings,
    command: Sequence[str],
    *,
    work: Path,
    files: Path,
    left: float,
) -> list[str]:
    report, page, transcripts = files / "report.json", files / PAGE, files / "transcripts"
    for old in (report, page, *(transcripts.glob("*") if transcripts.is_dir() else ())):
        old.unlink(missing_ok=True)
    words = [sys.executable, "-m", "mcp_touchstone", "check", "--quiet", "--no-baseline"]
    words += ["--json", str(report), "--report", f"html:{page}", "--save", str(transcripts)]
    words += ["--deadline", f"{left:.0f}", "--timeout", f"{min(plan.startup, left):g}", *plan.words]
    if entry.registry is RegistryType.REMOTE:
        words += [] if Endpoint(entry.url).local else ["--rate", str(plan.rate)]
        return [*words, "--suite", "conformance", "--jobs", "1", entry.url]
    words += ["--jobs", str(plan.jobs)]
    if entry.registry is RegistryType.OCI:
        words += ["--suite", "conformance", "--sandbox", "off"]
    else:
        words += ["--sandbox", str(plan.method or "off"), "--cwd", entry.cwd or "{root}"]
    if entry.env:
        # in a file, because every user of the machine can read the words of a command
        text = "".join(f"{json.dumps(name)} = {json.dumps(v)}\n" for name, v in entry.env.items())
        settings = work / "touchstone.toml"
        settings.write_text(f"[env]\n{text}", "utf-8")
        words += ["--config", str(settings)]
    return [*words, "--", *command]


def _check(
    row: dict[str, Any],
    words: Sequence[str],
    entry: ListedServer,
    plan: FleetSettings,
    *,
    work: Path,
    files: Path,
    left: float,
    running: Running,
    disk: DiskLimit,
) -> None:
    """Run ``check``; fill the row from its report, with how the server started."""
    cwd = work / "cwd"
    cwd.mkdir()
    begun = now()
    in_image = entry.registry is RegistryType.OCI
    env = variables(os.environ, network=False)
    with containers.removed(plan.engine, work.name) if in_image else nullcontext(()) as kept:
        errors, status = run(
            words,
            cwd=cwd,
            env={**env, **containers.environment(os.environ)} if in_image else env,
            seconds=left + GRACE,
            running=running,
            memory=plan.memory,
            disk=disk,
            inherits=kept,
        )
    row["seconds"]["run"] = round(now() - begun, 3)
    if "--rate" in words:
        sleep(1 / plan.rate)  # before the next server, which may be on the same host
    try:
        report = Members.of(InputFile(files / "report.json", named=False).json(), "its report")
        _fill(row, report, entry)
    except InputError as error:
        row["start"] = _start(_without_report(errors.strip() or str(error), status))
        return
    if row["revisions"]:
        row["start"] = _start(Trouble(Start.STARTED, ""))
        return
    row["interrupted"] = ""
    trouble = report.object("summary").word("trouble")
    row["start"] = _start(
        _refused(trouble)
        if entry.registry is RegistryType.REMOTE
        else classify(trouble, _output(files / "transcripts"))
    )


def _fill(row: dict[str, Any], report: Members, entry: ListedServer) -> None:
    """Fill the row from a report; leave it as it is if the report is none."""
    in_image = entry.registry is RegistryType.OCI
    summary, target = report.object("summary"), report.object("target")
    servers = [Members.of(one, "server").value for one in target.object("server").value.values()]
    server = servers[-1] if servers else {}
    sdks = list(target.objects("sdk"))
    spoken = list(report.object("revisions").texts("spoken"))
    verdicts: dict[str, dict[str, str]] = {}
    of_sdk, failed, counted = dict[str, None](), set[str](), 0
    for one in report.objects("verdicts"):
        clause, outcome = one.get("clause", str), one.get("outcome", str)
        is_ending = in_image and clause in containers.ENDINGS
        found = verdicts.setdefault(one.get("revision", str), {})
        found[clause] = "unseen" if is_ending else outcome
        counted += one.get("counts", bool, default=False) and not is_ending
        if one.has("sdk"):
            of_sdk[clause] = None
        elif outcome == "fail":
            failed.add(clause)
    conclusion = summary.get("conclusion", str)
    if in_image and conclusion == Conclusion.FAILED and not counted:
        conclusion = str(Conclusion.PASSED)
    is_interrupted = summary.get("interrupted", bool)
    startup = summary.number("startup_seconds", float) if spoken else 0.0
    registry = sdks[0].word("registry") if sdks else ""
    row |= {
        "server": server,
        "differs": differences(replace(entry, version=row["version"]), server),
        "sdk": [one.value for one in sdks],
        "language": row["language"] or {"npm": "node", "pypi": "python"}.get(registry, ""),
        "revisions": spoken,
        "interrupted": summary.word("trouble") or ("interrupted" if is_interrupted else ""),
        "unbound": summary.word("unbound"),
        "conclusion": conclusion,
        "gap": summary.word("gap"),
        "install": report.object("installation").word("word"),
        "processes": summary.number("processes", int),
        **({"cost": summary.object("cost").value} if summary.has("cost") and not in_image else {}),
        "verdicts": verdicts,
        "sdk_faults": [clause for clause in of_sdk if clause not in failed],
    }
    row["seconds"]["startup"] = startup


def _without_report(errors: str, status: int | None) -> Trouble:
    lines = [line.removeprefix("mcp-touchstone: ") for line in errors.splitlines() if line.strip()]
    line = lines[-1] if lines else ""
    if "there is no program" in line:
        return Trouble(Start.NOT_FOUND, line)
    if ": the server speaks " in line or line.startswith("nothing selected applies"):
        return Trouble(Start.UNSUPPORTED, line)
    ended = "check did not end in time" if status is None else f"check ended with status {status}"
    return Trouble(Start.HARNESS, f"{ended}: {line}" if line else ended)


def _output(transcripts: Path) -> list[str]:
    """Return the error output of the first process that wrote some, or else its output.

    Empty lines and messages are left out.
    """
    paths = sorted(transcripts.glob("*.txt"))
    texts: list[str] = []
    for path in paths:
        with suppress(InputError):
            data = InputFile(path, named=False).data()
            texts.append(COLOUR.sub("", data.decode("utf-8", "replace")))
    for text in texts:
        lines = [line.rstrip() for line in text.partition("\n# stderr\n")[2].splitlines()]
        if any(lines):
            return [line for line in lines if line]
    found = (re.findall(r"(?m)^ *\d+ +[\d.]+ ← (?!\{)(.*\S)", text) for text in texts)
    return next(filter(None, found), [])


COLOUR: Final = re.compile(r"(\x1b|\\x1b)\[[\d;]*m")
"""A colour of a terminal, as such or written out in a transcript."""


# --- classes of failures


_SETTING: Final = (
    r"env(ironment)?[ _-]?var\w*|api[ _-]?key|access[ _-]?token|token|credentials?|config\w*"
    r"|password|secret|keys? file|(?-i:[A-Z][A-Z0-9]*_[A-Z0-9_]+)"
)

SIGNS: Final = {
    Start.INSTALL_ERROR: (
        r"ModuleNotFoundError|ImportError|Cannot find (module|package)|ERR_MODULE_NOT_FOUND"
    ),
    Start.USAGE: (
        r"(?i)^\s*(\[\w+\]\s*)?usage\b|arguments? (is|are) required|required arguments?"
        r"|missing (required )?argument|no such option|unknown (option|command|argument)"
        r"|command[- ]line argument|required command|not enough [\w -]*arguments"
    ),
    Start.NEEDS_NETWORK: (
        r"ENOTFOUND|EAI_AGAIN|ENETUNREACH|ECONNREFUSED|getaddrinfo|Name or service not known"
        r"|Temporary failure in name resolution|Network is unreachable|Connection refused"
        r"|ConnectError|Failed to resolve|fetch failed|No address associated"
    ),
    Start.NEEDS_CONFIG: (
        rf"(?i)\b({_SETTING})s?\b.*\b(required|missing|must|undefined|needed|not \w+|could not)\b"
        rf"|\b(required?|missing|set|provide|specify|invalid|no|cannot find)\b.*\b({_SETTING})s?\b"
        r"|login required"
    ),
}
"""Class -> how its lines look. Words of servers vary, so this sorts and decides no verdict."""


NOISE: Final = re.compile(
    r"\s+(at |File |\^|~)|\s{4,}\S|\(node:\d+\) |\(Use `node |Node\.js v\d|[{}]\s*$"
)
"""Lines of a stack trace, warnings of Node, and its version."""


def classify(trouble: str, lines: Sequence[str]) -> Trouble:
    """Classify a server that did not answer, with the line that shows it.

    Args:
        trouble: the reason in the report of ``check``.
        lines: output of the server.
    """
    if "--root-size" in trouble:  # what the server said of its end is a consequence
        return Trouble(Start.CRASH, trouble)
    plain = [line for line in lines if not NOISE.match(line)]
    last = (plain or lines or [""])[-1].strip()
    for kind, pattern in SIGNS.items():
        found = next((line for line in plain if re.search(pattern, line)), None)
        if found is not None:
            return Trouble(kind, found.strip())
    ends = {
        containers.ENGINE_FAILED: Start.HARNESS,
        "no answer": Start.HANG,
        "(status 0)": Start.SILENT_EXIT,
    }
    kind = next((kind for words, kind in ends.items() if words in trouble), Start.CRASH)
    return Trouble(kind, last or trouble)


def _refused(trouble: str) -> Trouble:
    """Classify a server at a URL that did not answer."""
    if re.search(r"\b(401|403)\b", trouble):
        return Trouble(Start.NEEDS_CONFIG, trouble)
    if re.search(r"\b404\b|no host of this name", trouble):
        return Trouble(Start.NOT_FOUND, trouble)
    return classify(trouble, [])


def matches(row: Mapping[str, Any], plan: FleetSettings) -> str:
    """Return why a row does not belong to a fleet with these settings; empty if it does."""
    tool = row.get("tool") or {}
    if tool.get("version") != __version__ or tool.get("catalogue") != digest():
        return "another version of mcp-touchstone"
    if row.get("settings") != plan.document():
        return "other settings"
    return ""
