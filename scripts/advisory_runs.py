"""Judge servers on releases with and without the fault of an advisory, and keep what a run said.

``python -m scripts.advisory_runs`` installs each release of ``advisory_servers/runs.toml`` into a
folder of its own, judges the server on it with the rules that show the advisory, and writes
``advisory_runs.jsonl``, from which the site makes its page of known advisories. It needs pip, npm
and node. ``--only ID`` judges the runs of one advisory and keeps the rows of the others. The exit
status is 1 if a run did not show what ``runs.toml`` expects.
"""

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.advisories.table import by_name
from mcp_touchstone.catalog.loader import SECURITY, rows
from scripts.installing import installed

HERE: Final = Path(__file__).resolve().parent
SERVERS: Final = HERE / "advisory_servers"
DATA: Final = HERE / "advisory_runs.jsonl"
FOLDER: Final = Path.home() / ".cache" / "mcp-touchstone-advisories"
HTTP: Final = ("--http", "http://127.0.0.1:{port}/mcp")
ISSUED: Final = ("ISSUER={issuer}", "AUDIENCE={audience}")
ABSENT: Final = "not affected"
"""What a run shows if the advisory does not apply to the release."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One server to judge.

    Attributes:
        packages: the packages that it needs, as pip or npm names them.
        words: arguments of the server, after its port.
        options: options of ``check``.
        shows: the expected state of the advisory; empty if it does not apply to the release.
    """

    advisory: str
    server: str
    release: str
    registry: str
    packages: tuple[str, ...]
    words: tuple[str, ...]
    options: tuple[str, ...]
    shows: str


@dataclass(frozen=True, slots=True)
class Shown:
    """What a run showed; a row of ``advisory_runs.jsonl``."""

    advisory: str
    package: str
    release: str
    words: str
    state: str
    rules: tuple[str, ...]


def cases(only: str) -> Iterator[Case]:
    """Read the cases, all or those of one advisory."""
    table = tomllib.loads((SERVERS / "runs.toml").read_text("utf-8"))
    servers = {one["file"]: one for one in table["server"]}
    for run in table["run"]:
        if only not in {"", run["advisory"]}:
            continue
        server = servers[run["server"]]
        for case in run["cases"]:
            yield Case(
                run["advisory"],
                server["file"],
                case["release"],
                server["registry"],
                tuple(name.format(case["release"], **case) for name in server["packages"]),
                tuple(case.get("words", ())),
                tuple(run.get("options", ())),
                case["shows"],
            )


def command(case: Case) -> list[str]:
    """Install what a server needs; return its command."""
    name = "+".join(case.packages).replace("@", "-").replace("/", "-").replace("=", "")
    place = FOLDER / name
    program = installed(place, case.registry, *case.packages)
    shutil.copyfile(SERVERS / case.server, place / case.server)
    return [program, str(place / case.server), "{port}", *case.words]


def shown(case: Case, report: Path) -> Shown:
    """Judge a server; return what the run showed.

    Raises:
        SystemExit: it could not be judged.
    """
    advisory = by_name()[case.advisory]
    threats = rows(SECURITY)
    suite = "security" if advisory.shown_by[0] in threats else "conformance"
    words = [sys.executable, "-m", "mcp_touchstone", "check", "--quiet", "--no-baseline"]
    words += ["--advisories", "--accept-unbound", "--json", str(report), "--suite", suite, *HTTP]
    words += [word for rule in advisory.shown_by for word in ("--select", rule)]
    words += case.options
    if "--issuer" in case.options:
        words += [word for setting in ISSUED for word in ("--env", setting)]
    report.unlink(missing_ok=True)
    subprocess.run([*words, "--", *command(case)], stdout=subprocess.DEVNULL, check=False)
    if not report.exists():
        raise SystemExit(f"{shlex.join(words)}: no report")
    document: Json = json.loads(report.read_text("utf-8"))
    about = {one["id"]: one for one in document.get("advisories", ())}.get(case.advisory)
    package = next((one["name"] for one in document["target"]["sdk"]), "unknown")
    return Shown(
        case.advisory,
        package,
        case.release,
        " ".join(case.words),
        ABSENT if about is None else about["state"],
        () if about is None else tuple(about.get("rules", ())),
    )


def kept() -> list[Shown]:
    """Read the rows."""
    lines = DATA.read_text("utf-8").splitlines() if DATA.exists() else []
    found = map(json.loads, lines)
    return [Shown(**{**row, "rules": tuple(row["rules"])}) for row in found]


def page() -> Iterator[str]:
    """Write what the runs showed: a row for each."""
    yield "\n## Releases that were judged\n"
    yield (
        "A server on each release, written as an application would be, was judged by "
        "`python -m scripts.advisory_runs`. *Words* say how it was written: "
        "`scripts/advisory_servers` has the servers, and says what each word means.\n"
    )
    yield "| advisory | release | words | the run showed |"
    yield "|---|---|---|---|"
    for one in kept():
        rules = f" ({', '.join(one.rules)})" if one.rules else ""
        words = f"`{one.words}`" if one.words else ""
        yield f"| {one.advisory} | {one.package} {one.release} | {words} | {one.state}{rules} |"


def main(words: Sequence[str]) -> int:
    """Judge all servers; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", metavar="ID", help="judge the runs of one advisory")
    options = parser.parse_args(words)
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = [one for one in kept() if options.only and one.advisory != options.only]
    wrong = 0
    for case in cases(options.only):
        row = shown(case, FOLDER / "report.json")
        made.append(row)
        expected = case.shows or ABSENT
        verdict = "as expected" if row.state == expected else f"expected {expected!r}"
        wrong += row.state != expected
        text = f"{row.advisory} {row.package} {row.release} {row.words}: {row.state}, {verdict}"
        sys.stdout.write(f"{text}\n")
    text = "".join(f"{json.dumps(asdict(row))}\n" for row in made)
    DATA.write_text(text, "utf-8")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
