"""Judge servers and clients on releases with and without the fault of an advisory.

``python -m scripts.advisory_runs`` installs each release of ``advisory_servers/runs.toml`` into a
folder of its own, judges the server or client on it with the rules that show the advisory, and
writes ``advisory_runs.jsonl``, from which the site makes its page of known advisories. Clients are
those of ``tests/sdks``. It needs pip, npm and node. ``--only ID`` judges the runs of one advisory
and keeps the rows of the others. The exit status is 1 if a run did not show what ``runs.toml``
expects.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.advisories.table import CLIENT, SERVER, by_name
from mcp_touchstone.catalog.loader import SECURITY, rows
from scripts.installing import installed

HERE: Final = Path(__file__).resolve().parent
SERVERS: Final = HERE / "advisory_servers"
CLIENTS: Final = HERE.parent / "tests" / "sdks"
DATA: Final = HERE / "advisory_runs.jsonl"
FOLDER: Final = Path.home() / ".cache" / "mcp-touchstone-advisories"
HTTP: Final = ("--http", "http://127.0.0.1:{port}/mcp")
ISSUED: Final = ("ISSUER={issuer}", "AUDIENCE={audience}")
ABSENT: Final = "not affected"
"""What a run shows if the advisory does not apply to the release."""
FOUND: Final = "found, although not affected"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One server or client to judge.

    Attributes:
        side: ``server`` or ``client``.
        packages: the packages that it needs, as pip or npm names them.
        words: arguments of the server, after its port; for a client, words of its environment.
        options: options of ``check`` or ``client``.
        shows: the expected state of the advisory; empty if it does not apply to the release.
    """

    advisory: str
    side: str
    program: str
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
    for run in table["run"]:
        if only not in {"", run["advisory"]}:
            continue
        side = CLIENT if CLIENT in run else SERVER
        program = next(one for one in table[side] if one["file"] == run[side])
        for case in run["cases"]:
            yield Case(
                run["advisory"],
                side,
                program["file"],
                case["release"],
                program["registry"],
                tuple(name.format(case["release"], **case) for name in program["packages"]),
                tuple(case.get("words", ())),
                tuple(run.get("options", ())),
                case["shows"],
            )


def command(case: Case) -> list[str]:
    """Install what a server or client needs; return its command."""
    name = "+".join(case.packages).replace("@", "-").replace("/", "-").replace("=", "")
    place = FOLDER / name
    program = installed(place, case.registry, *case.packages)
    folder = CLIENTS if case.side == CLIENT else SERVERS
    shutil.copyfile(folder / case.program, place / case.program)
    words = ("{server}",) if case.side == CLIENT else ("{port}", *case.words)
    return [program, str(place / case.program), *words]


def shown(case: Case, report: Path) -> Shown:
    """Judge a server or client; return what the run showed.

    Raises:
        SystemExit: it could not be judged.
    """
    advisory = by_name()[case.advisory]
    command_name = "client" if case.side == CLIENT else "check"
    words = [sys.executable, "-m", "mcp_touchstone", command_name, "--quiet", "--no-baseline"]
    words += ["--advisories", "--json", str(report)]
    if case.side == SERVER:
        suite = "security" if advisory.shown_by[0] in rows(SECURITY) else "conformance"
        words += ["--accept-unbound", "--suite", suite, *HTTP]
    words += [word for rule in advisory.shown_by for word in ("--select", rule)]
    words += case.options
    if "--issuer" in case.options:
        words += [word for setting in ISSUED for word in ("--env", setting)]
    report.unlink(missing_ok=True)
    env = {**os.environ, **{f"STEPS_{word.upper()}": "1" for word in case.words}}
    subprocess.run([*words, "--", *command(case)], stdout=subprocess.DEVNULL, env=env, check=False)
    if not report.exists():
        raise SystemExit(f"{shlex.join(words)}: no report")
    document: Json = json.loads(report.read_text("utf-8"))
    about = {one["id"]: one for one in document.get("advisories", ())}.get(case.advisory)
    package = next((one["name"] for one in document["target"]["sdk"]), "unknown")
    outcomes = {one["clause"]: one["outcome"] for one in document["verdicts"]}
    found = [rule for rule in advisory.shown_by if outcomes.get(rule) in {"fail", "warn"}]
    passed = [rule for rule in advisory.shown_by if outcomes.get(rule) == "pass"]
    state = FOUND if found else ABSENT
    about = about or {"state": state, "rules": found or passed}
    return Shown(
        case.advisory,
        package,
        case.release,
        " ".join(case.words),
        about["state"],
        tuple(about.get("rules", ())),
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
        "A server or client on each release, written as an application would be, was judged by "
        "`python -m scripts.advisory_runs`. *Words* say how it was written: "
        "`scripts/advisory_servers` has the servers, and says what each word means. The clients "
        "are in `tests/sdks`; `issuer` binds their credentials to the issuer that gave them.\n"
    )
    yield "| advisory | release | words | the run showed |"
    yield "|---|---|---|---|"
    for one in kept():
        rules = f" ({', '.join(one.rules)})" if one.rules else ""
        words = f"`{one.words}`" if one.words else ""
        yield f"| {one.advisory} | {one.package} {one.release} | {words} | {one.state}{rules} |"
    for row in tomllib.loads((SERVERS / "runs.toml").read_text("utf-8"))["untried"]:
        yield f"| {row['advisory']} | {row['package']} | | not tried: {row['why']} |"


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
