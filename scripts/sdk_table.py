"""Judge minimal programs on releases of MCP SDKs, and write what each release does wrong by itself.

``python -m scripts.sdk_table`` installs each release of ``sdks/releases.toml`` into a folder of its
own, judges the minimal server on it with the default suite, and writes the table that ``check``
reads. With ``--clients`` it judges the minimal client, and writes the table of ``client``. It needs
pip, npm and node. ``--missing`` judges only releases that the table lacks; ``--reports`` judges
nothing and reads the reports of an earlier run.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_touchstone.catalog.clause import Catalogue
from mcp_touchstone.catalog.loader import CLIENTS, CONFORMANCE, rows
from mcp_touchstone.catalog.revision import LEGACY
from mcp_touchstone.catalog.sdk import PYPI
from mcp_touchstone.results.sdk_faults import TABLES, kind_of_answer
from scripts.installing import installed

HERE = Path(__file__).resolve().parent / "sdks"
FOLDER = Path.home() / ".cache" / "mcp-touchstone-sdks"
FOUND = {"fail", "warn"}
HTTP = ("--http", "http://127.0.0.1:{port}/mcp")
TOKEN = (*HTTP, "--issuer", "mock", "--scope", "read", "--select", "http/authorization")
SLOW = ("--jobs", "2", "--timeout", "120")
WAYS: dict[str, dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "server": {
        "stdio": ((), ()),
        "http": (HTTP, ("{port}",)),
        "token": (TOKEN, ("{port}", "{issuer}", "{jwks}", "{audience}")),
    },
    "client": {"stdio": (SLOW, ("{server}",)), "http": ((*SLOW, "--http"), ("{server}",))},
}
"""How a program is judged -> options of `check` or `client`, and arguments of the program."""

COMMANDS = {"server": "check", "client": "client"}
PROGRAMS = {"server": HERE, "client": HERE.parent.parent / "tests" / "sdks"}
SUITES = {"server": CONFORMANCE, "client": CLIENTS}

Faults = dict[str, dict[str, dict[str, list[str]]]]


@dataclass(frozen=True, slots=True)
class Release:
    """One release of an SDK.

    Attributes:
        line: the series of releases it belongs to.
        registry: ``pypi`` or ``npm``.
        program: the file of the minimal server or client, in `PROGRAMS`.
        ways: how it is judged, of `WAYS`; always over stdio.
        side: server or client.
    """

    line: str
    name: str
    registry: str
    version: str
    program: str
    ways: tuple[str, ...]
    side: str = "server"

    @property
    def label(self) -> str:
        """Name of its folder and of its report."""
        return f"{self.name.replace('@', '').replace('/', '-')}-{self.version}"


def releases(only: list[str], side: str = "server") -> Iterator[Release]:
    """Read the releases; words of ``only`` are package names or NAME==VERSION."""
    table = tomllib.loads((HERE / "releases.toml").read_text("utf-8"))
    for row in table["sdk"]:
        for version in row["versions"] if side in row else ():
            if not only or row["name"] in only or f"{row['name']}=={version}" in only:
                ways = ("stdio", *row.get("ways", ())) if side == "server" else (*WAYS[side],)
                about = (row["line"], row["name"], row["registry"], version)
                yield Release(*about, row[side], ways, side)


def install(release: Release, folder: Path) -> list[str]:
    """Install a release into a folder, unless it is there; return the command of its program."""
    place = folder / release.label
    join = "==" if release.registry == PYPI else "@"
    program = installed(place, release.registry, f"{release.name}{join}{release.version}")
    for source in PROGRAMS[release.side].glob("*.[mp]*"):
        shutil.copy(source, place)
    return [program, str(place / release.program)]


def judge(side: str, command: list[str], report: Path, *options: str) -> dict[str, Any]:
    """Judge a server or a client; return the report.

    Raises:
        SystemExit: it could not be judged.
    """
    words = [sys.executable, "-m", "mcp_touchstone", COMMANDS[side], "--quiet", "--no-baseline"]
    words += ["--json", str(report), *options, "--", *command]
    report.unlink(missing_ok=True)  # one of an earlier run would pass for that of a crash
    done = subprocess.run(words, stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in {0, 1} or not report.exists():
        raise SystemExit(f"{' '.join(words)}: exit status {done.returncode}")
    found: dict[str, Any] = json.loads(report.read_text("utf-8"))
    return found


def chance(report: dict[str, Any]) -> set[str]:
    """Return the clauses with a finding that depends on chance: declared, or seen to do so."""
    declared = {*tomllib.loads((HERE / "releases.toml").read_text("utf-8"))["chance"]}
    return {
        verdict["clause"]
        for verdict in report["verdicts"]
        for judgement in verdict["judgements"]
        if judgement["outcome"] in FOUND
        and (verdict["clause"] in declared or judgement.get("found", 1) < judgement.get("tried", 1))
    }


def faults(report: dict[str, Any], catalogue: Catalogue) -> Faults:
    """Return the findings of a report: clause -> scenario -> outcome -> revisions.

    A finding that depends on chance counts in each legacy revision of the release, as the others
    were only luckier.
    """
    by_chance = chance(report)
    legacy = {*report["revisions"]["spoken"]} & {*LEGACY}
    found: Faults = {}
    for verdict in report["verdicts"]:
        for judgement in verdict["judgements"]:
            if judgement["outcome"] in FOUND:
                scenarios = found.setdefault(verdict["clause"], {})
                outcomes = scenarios.setdefault(judgement["scenario"], {})
                revisions = outcomes.setdefault(judgement["outcome"], [])
                revisions.append(verdict["revision"])
                if verdict["clause"] in by_chance:
                    revisions += legacy.intersection(catalogue[verdict["clause"]].revisions)
    for scenarios in found.values():
        for outcomes in scenarios.values():
            for outcome, revisions in outcomes.items():
                outcomes[outcome] = sorted({*revisions})
    return found


def answers(report: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Return the kinds of answers in the findings: clause -> scenario -> kinds."""
    found: dict[str, dict[str, set[str]]] = {}
    for verdict in report["verdicts"]:
        for judgement in verdict["judgements"]:
            kinds = {kind_of_answer(line["text"]) for line in judgement["wire"] if line["guilty"]}
            if judgement["outcome"] in FOUND and kinds - {""}:
                scenarios = found.setdefault(verdict["clause"], {})
                scenarios.setdefault(judgement["scenario"], set()).update(kinds - {""})
    return {
        clause: {scenario: sorted(kinds) for scenario, kinds in scenarios.items()}
        for clause, scenarios in found.items()
    }


def row(release: Release, report: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a release.

    Args:
        report: the report on stdio.
        others: the reports over HTTP. Their clauses differ, or their findings are the same.
    """
    made = _found(release, report)
    if others:
        verdicts = [verdict for one in others for verdict in one["verdicts"]]
        over_http = _found(release, {**others[0], "verdicts": verdicts})
        table = tomllib.loads((HERE / "releases.toml").read_text("utf-8"))
        known = {*table["switches"], *table["tokens"]}
        made["http"] = {
            part: {
                clause: added
                for clause, value in over_http[part].items()
                if clause not in known and (added := _beyond(value, made[part].get(clause, {})))
            }
            for part in ("answers", "faults")
        }
        made["chance"] = sorted({*made["chance"], *over_http["chance"]})
    made["faults"] = made.pop("faults")
    return made


def _beyond(value: Any, known: Any) -> Any:
    """Return what a value has beyond another: members of objects, and elements of arrays."""
    if isinstance(value, dict):
        found = {name: _beyond(one, known.get(name, type(one)())) for name, one in value.items()}
        return {name: one for name, one in found.items() if one}
    return [one for one in value if one not in known]


def _found(release: Release, report: dict[str, Any]) -> dict[str, Any]:
    return {
        "line": release.line,
        "sdk": release.name,
        "registry": release.registry,
        "version": release.version,
        "revisions": report["revisions"]["spoken"],
        "chance": sorted(chance(report)),
        "answers": answers(report),
        "faults": faults(report, rows(SUITES[release.side])),
    }


def with_chance(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """Keep the faults by chance of the row before: one run may not show them."""
    kept = {
        rule: old["faults"][rule]
        for rule in old.get("chance", ())
        if rule in old["faults"] and rule not in new["faults"]
    }
    return {**new, "chance": sorted({*new["chance"], *kept}), "faults": {**new["faults"], **kept}}


def write(found: list[dict[str, Any]], side: str) -> None:
    """Write the table of a side, with one line for each clause of a release."""
    order = {(one.name, one.version): place for place, one in enumerate(releases([], side))}
    found = sorted(
        (one for one in found if (one["sdk"], one["version"]) in order),
        key=lambda one: order[one["sdk"], one["version"]],
    )
    blocks = []
    for one in found:
        head = [
            f"  {json.dumps(name)}: {json.dumps(one[name])}," for name in one if name != "faults"
        ]
        lines = [
            f"    {json.dumps(rule)}: {json.dumps(one['faults'][rule])}" for rule in one["faults"]
        ]
        body = ",\n".join(lines)
        blocks.append("{\n" + "\n".join(head) + '\n  "faults": {\n' + body + "\n  }\n}")
    text = '{"format": 1, "releases": [\n' + ",\n".join(blocks) + "\n]}\n"
    json.loads(text)
    TABLES[side].write_text(text, encoding="utf-8", newline="\n")


def main() -> int:
    """Judge the releases and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("only", nargs="*", help="package names or NAME==VERSION; default all")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where releases are installed")
    parser.add_argument("--clients", action="store_true", help="judge the minimal clients")
    parser.add_argument("--missing", action="store_true", help="judge what the table lacks")
    parser.add_argument("--reports", action="store_true", help="read existing reports; judge none")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    side = "client" if options.clients else "server"
    file = TABLES[side]
    known = json.loads(file.read_text("utf-8"))["releases"] if file.exists() else []
    table = {(one["sdk"], one["version"]): one for one in known}
    for release in releases(options.only, side):
        key = release.name, release.version
        if options.missing and key in table:
            continue
        command = [] if options.reports else install(release, options.folder.absolute())
        found = []
        for way in release.ways:
            report = options.folder / f"{release.label}-{side}-{way}.json"
            words, arguments = WAYS[side][way]
            if options.reports:
                found.append(json.loads(report.read_text("utf-8")))
            else:
                found.append(judge(side, [*command, *arguments], report, *words))
            summary = found[-1]["summary"]
            if summary["exit_code"] not in {0, 1}:
                raise SystemExit(f"{report}: {summary['trouble'] or 'not all was judged'}")
        table[key] = with_chance(row(release, *found), table.get(key, {}))
        write([*table.values()], side)
        summary = found[0]["summary"]
        print(
            f"{release.label}: {summary['clauses']['fail']} fail, {summary['seconds']:.0f} s",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
