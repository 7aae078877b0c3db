"""A step of the GitHub action: judge a server, client or gateway, and write reports and outputs.

Standard library only. Inputs come as variables and never as text of a script, so that nothing in
them is run by a shell.
"""

import json
import os
import re
import secrets
import shlex
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

REPORTS = {
    "json": "report.json",
    "html": "report.html",
    "sarif": "report.sarif",
    "junit": "junit.xml",
    "markdown": "summary.md",
    "badge": "badge.json",
}
OPTIONS = ("config", "target", "suite", "baseline", "since")
FOR_SERVERS = ("command", "url", "headers", "suite", "for", "golden")
OTHERS = ("client", "gateway")
"""Inputs with the command of a client or of a gateway, which is then judged and not a server."""

GOLDEN = "answers differ from the golden recording"
RUNNERS = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
"""Variables that name files through which a step commands the runner: not for a server."""

TOKENS = re.compile(
    r"ACTIONS_(ID_TOKEN|RUNTIME|CACHE|RESULTS)\w*|(GITHUB|GH)_(ENTERPRISE_)?TOKEN", re.IGNORECASE
)
"""Variables with which a server could act as the job: not for it, unless ``headers`` names them."""

STATEMENT, PREDICATE, SUBJECTS = "statement.json", "predicate.json", "subjects.txt"
MOST_SUBJECTS = 1024
"""Subjects that actions/attest takes."""

MOST_NAMED = 5
"""Broken rules that an annotation names."""


class InputError(ValueError):
    """An input cannot be used; the message says which and what to write."""


def given(name: str) -> str:
    """Return an input, empty where there is none."""
    return os.environ.get("INPUT_" + name.upper().replace("-", "_"), "").strip()


def words_of(name: str) -> list[str]:
    """Split an input as a shell would.

    Raises:
        InputError: a quotation has no end.
    """
    try:
        return shlex.split(given(name))
    except ValueError as error:
        raise InputError(f"input {name}: {str(error).lower()}; quote it as in a shell") from error


def arguments(reports: Path) -> list[str]:
    """Return the words behind ``check``, ``client`` or ``gateway``.

    Raises:
        InputError: nothing or too much is named, or an input cannot be read.
    """
    server, other = server_words(), judged()
    for name in FOR_SERVERS if other else ():
        if given(name):
            raise InputError(f"inputs {other} and {name}: {name} is for a server; keep one")
    if other and attests():
        raise InputError(f"inputs {other} and attest: attest is for a server; keep one")
    if all(map(given, OTHERS)):
        raise InputError(f"inputs {' and '.join(OTHERS)}: keep one")
    if other:
        server = ["--", *words_of(other)]
    if not server and not given("config") and not configured(Path()):
        raise InputError(
            "no server is named: give the input `command` or `url`, or write touchstone.toml with "
            "`mcp-touchstone init`"
        )
    words = [f"--{name}={given(name)}" for name in OPTIONS if given(name)]
    words += [f"--for={client}" for client in words_of("for")]
    words += [f"--fail-on={floor}" for floor in words_of("fail-on")]
    words += [f"--report={kind}:{reports / name}" for kind, name in REPORTS.items()]
    words += [f"--attest={reports / STATEMENT}"] if attests() else []
    words += words_of("arguments")
    return [*words, *server]


def judged() -> str:
    """Return "client" or "gateway" if that input is given; empty if a server is judged."""
    return next((name for name in OTHERS if given(name)), "")


def server_words() -> list[str]:
    """Return the words that name the server: a command, a URL, or both.

    Raises:
        InputError: an input cannot be read.
    """
    url, command = given("url"), words_of("command")
    words = [f"--http={url}"] if url else []
    words += [f"--header={header}" for header in words_of("headers")]
    return [*words, "--", *command] if command else words


def configured(folder: Path) -> bool:
    """Whether ``check`` finds a configuration there."""
    if (folder / "touchstone.toml").exists():
        return True
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    except OSError:
        return False
    except (ValueError, RecursionError):
        return True  # `check` says what is wrong with it
    tools = project.get("tool")
    return isinstance(tools, dict) and "mcp-touchstone" in tools


def golden() -> list[str]:
    """Return the words after ``golden verify``; empty if no recording is named.

    Raises:
        InputError: an input cannot be read.
    """
    if not given("golden"):
        return []
    words = [f"--folder={given('golden')}"]
    words += [f"--config={given('config')}"] if given("config") else []
    words += [given("target")] if given("target") else []
    return ["verify", *words, *server_words()]


def judge(words: list[str], name: str = "check") -> tuple[int, str]:
    """Run a command of mcp-touchstone; return its exit status and its last line on stderr.

    What it prints holds words of the server, and the runner executes a line that begins with two
    colons: workflow commands are stopped until the last line.
    """
    mute = secrets.token_hex(16)
    print(f"::stop-commands::{mute}", flush=True)
    wanted = {header.partition("=env:")[2] for header in words_of("headers")}
    hidden = {*RUNNERS, *(name for name in os.environ if name.startswith("INPUT_"))}
    hidden |= {name for name in os.environ if TOKENS.fullmatch(name)} - wanted
    own = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [sys.executable, "-I", "-X", "utf8", "-m", "mcp_touchstone", name, *words],
        env={"COLUMNS": "120", **own},
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    print(done.stderr, end="")
    print(f"\n::{mute}::", flush=True)
    return done.returncode, done.stderr.strip().rpartition("\n")[2]


def attests() -> bool:
    """Whether the verdicts are attested."""
    return given("attest").lower() == "true"


def split(statement: Path) -> dict[str, object]:
    """Write what actions/attest takes of a statement beside it; return the outputs that name it.

    https://github.com/actions/attest/blob/v4.2.2/action.yml: a predicate, and a file of checksums.

    Raises:
        InputError: it has too many subjects.
    """
    if not statement.exists():
        return {}
    made = json.loads(statement.read_text("utf-8"))
    lines = [
        # a name of a file may hold a line break, which would make another subject of it
        f"{digest} *{json.dumps(one['name'], ensure_ascii=False)[1:-1]}\n"
        for one in made["subject"]
        for digest in one["digest"].values()
    ]
    if len(lines) > MOST_SUBJECTS:
        raise InputError(
            f"input attest: the package has {len(lines)} files, and actions/attest takes "
            f"{MOST_SUBJECTS}; sign the statement with --attest and --sign instead"
        )
    places = {
        "predicate": statement.with_name(PREDICATE),
        "subjects": statement.with_name(SUBJECTS),
    }
    places["predicate"].write_text(json.dumps(made["predicate"]), "utf-8")
    places["subjects"].write_text("".join(lines), "utf-8")
    return dict(places)


def verdict(reports: Path, complaint: str) -> str:
    """Return the result in one line; for several targets it counts those that failed."""
    try:
        badge = json.loads((reports / REPORTS["badge"]).read_text("utf-8"))
    except (OSError, ValueError):
        return complaint or "nothing was checked"
    return " ".join(str(badge["message"]).split())


def broken(reports: Path) -> list[str]:
    """Return the ids of the rules that fail the gate."""
    found: dict[str, None] = {}
    for path in sorted(reports.glob("report*.json")):
        try:
            report = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            continue
        found |= {row["clause"]: None for row in report["verdicts"] if "counts" in row}
    return list(found)


def append(variable: str, text: str) -> None:
    """Add to a file the runner reads."""
    with Path(os.environ[variable]).open("a", encoding="utf-8", newline="\n") as file:
        file.write(text)


def tell(code: int, said: str, reports: Path, attested: dict[str, object]) -> None:
    """Write the outputs, the job summary and, where the check fails, an annotation."""
    outputs: dict[str, object] = {
        "exit-code": code,
        "verdict": said,
        "reports": reports,
        "sarif": reports / REPORTS["sarif"] if (reports / REPORTS["sarif"]).exists() else "",
        **attested,
    }
    append("GITHUB_OUTPUT", "".join(f"{name}={value}\n" for name, value in outputs.items()))
    if given("summary").lower() != "false":
        page = reports / REPORTS["markdown"]
        plain = f"## MCP: not checked\n\n```text\n{said.replace('```', chr(39) * 3)}\n```\n"
        append("GITHUB_STEP_SUMMARY", page.read_text("utf-8") if page.exists() else plain)
    if code:
        names = broken(reports)
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        said += f": {', '.join(names[:MOST_NAMED])}{more}" if names else ""
        escaped = said.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        print(f"::error title=mcp-touchstone::{escaped}")


def main() -> int:
    """Check the server, client or gateway; return the exit status."""
    reports = Path(tempfile.mkdtemp(prefix="mcp-touchstone-", dir=os.environ["RUNNER_TEMP"]))
    attested: dict[str, object] = {}
    try:
        code, complaint = judge(arguments(reports), judged() or "check")
        said = verdict(reports, complaint)
        recorded = golden()
        if recorded and code in {0, 1}:
            differs, complaint = judge(recorded, "golden")
            code = max(code, differs)
            said += f"; {complaint or GOLDEN}" if differs else ""
        attested = split(reports / STATEMENT)
    except InputError as error:
        code, said = 2, str(error)
    tell(code, said, reports, attested)
    return code


if __name__ == "__main__":
    sys.exit(main())
