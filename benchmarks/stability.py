"""Whether a run gives the same result each time: many runs on unchanged servers.

    python benchmarks/stability.py [--runs N] [--busy N] [NAME=COMMAND …] [-- OPTIONS OF check]

Without a server it checks two: the reference server, and one that sends a request before each
answer of 2026-07-28, which must fail each time.

The first run of a server shows its exit status and its findings; another one writes a baseline. The
next N runs are without a gate, with ``--baseline`` and with ``--since``, in turns. Each must find
what the first one found, except findings marked ``sometimes``, and exit with the same status; with
0 if a gate accepts what the first one found. ``--busy`` starts processes that use a core each
meanwhile. The exit status is 1 if a run differs.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
SOUND, FAULTY = "reference", "asks-before-each-answer"
SERVERS = {
    SOUND: [sys.executable, "-m", "mcp_touchstone", "serve"],
    FAULTY: [sys.executable, str(HERE / "tests" / "mutants"), "AsksBeforeEachAnswer"],
}
EXPECTED = {SOUND: 0, FAULTY: 1}
"""The exit status of a run without a gate, of the servers above."""

RANDOM = re.compile(r"mcp-touchstone-(held_)?[a-z0-9_]{8}\b|\b[0-9a-f]{12,}\b")
"""Parts of a report that are drawn anew in each run: names of folders, canaries, ids."""

WAITED = re.compile(r"(?<= within )[0-9.]+ s|, and [0-9.]+ s in which it had no core")
"""How long we waited for an answer: a busy machine adds to it."""


def findings(report: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return (rule, revision) -> outcome and texts of a report, without findings by chance."""
    document = json.loads(report.read_text("utf-8"))
    found = {
        (row["clause"], row["revision"]): (row["outcome"], *_texts(row))
        for row in document["verdicts"]
    }
    chance = {(r["clause"], r["revision"]) for r in document["verdicts"] if r.get("sometimes")}
    for row in document["not_applicable"]:
        found[row["clause"], row["revision"]] = ("not applicable", row["why"])
    return {key: value for key, value in found.items() if key not in chance}


def _texts(row: dict[str, Any]) -> list[str]:
    if row["outcome"] == "pass":  # how much was tried may depend on the time
        return []
    return [RANDOM.sub("*", WAITED.sub("", one["actual"])) for one in row["judgements"]]


def chances(report: Path) -> list[str]:
    """Return the findings of a report that are marked as chance."""
    rows = json.loads(report.read_text("utf-8"))["verdicts"]
    return sorted({f"{row['clause']} {row['revision']}" for row in rows if row.get("sometimes")})


def check(words: list[str], server: list[str], report: Path) -> tuple[int, str]:
    """Run the command once; return its exit status and what it printed."""
    command = [sys.executable, "-m", "mcp_touchstone", "check", "-q", "--json", str(report)]
    command += ["--save", str(report.with_suffix(""))]
    done = subprocess.run(
        [*command, *words, "--", *server],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    return done.returncode, done.stdout + done.stderr


def differences(one: Path, two: Path) -> list[str]:
    """Return what differs in two reports, a line for each rule and revision."""
    before, after = findings(one), findings(two)
    by_chance = {*chances(one), *chances(two)}
    return [
        f"{' '.join(key)}: {before.get(key)} -> {after.get(key)}"
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key) and " ".join(key) not in by_chance
    ]


def repeat(name: str, server: list[str], runs: int, options: list[str], folder: Path) -> bool:
    """Check one server several times and return whether all runs agree."""
    baseline, first = folder / f"{name}.toml", folder / f"{name}-0.json"
    status, text = check([*options, "--no-baseline"], server, first)
    print(f"{name}: first run, exit {status}, by chance: ", end="")
    print(", ".join(chances(first)) or "nothing", flush=True)
    same = status == EXPECTED.get(name, status) and status in {0, 1}
    if not same:
        print(f"    {text}", flush=True)
    update = ["--baseline", str(baseline), "--update-baseline"]
    check([*options, *update], server, folder / f"{name}-baseline.json")
    gates = {
        "no gate": (["--no-baseline"], status),
        "since": (["--no-baseline", "--since", str(first)], 0),
        "baseline": (["--baseline", str(baseline)], 0),
    }
    for number in range(1, runs + 1):
        gate = [*gates][number % len(gates)]
        words, expected = gates[gate]
        report, begun = folder / f"{name}-{number}.json", time.monotonic()
        code, text = check([*options, *words], server, report)
        found = differences(first, report) if report.exists() else ["no report"]
        spent = time.monotonic() - begun
        note = f"; by chance: {', '.join(chances(report))}" if report.exists() else ""
        print(f"{name} {number} {gate}: exit {code}, {spent:.0f} s{note}", flush=True)
        for line in [*found, *([text] if code != expected else [])]:
            print(f"    {line}", flush=True)
        same &= code == expected and not found
    return same


def main() -> None:
    """Check all servers of the command line and exit with 1 if a run differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--busy", type=int, default=0, help="processes that use a core each")
    parser.add_argument("--keep", type=Path, help="folder of the reports and transcripts")
    parser.add_argument("servers", nargs="*", metavar="NAME=COMMAND")
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:at])
    loop = [sys.executable, "-c", "while True: pass"]
    load = [subprocess.Popen(loop, preexec_fn=lambda: os.nice(5)) for _ in range(options.busy)]  # noqa: PLW1509
    try:
        with tempfile.TemporaryDirectory() as place:
            folder = options.keep or Path(place)
            folder.mkdir(parents=True, exist_ok=True)
            named = (pair.partition("=") for pair in options.servers)
            servers = {name: shlex.split(command) for name, _, command in named} or SERVERS
            results = [
                repeat(name, server, options.runs, words[at + 1 :], folder)
                for name, server in servers.items()
            ]
    finally:
        for process in load:
            process.kill()
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
