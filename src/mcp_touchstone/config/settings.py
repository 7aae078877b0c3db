"""The settings for starting and checking one server, independent of their source. Reads no file.

Each option is declared once, at the field that it sets: here, or in `ServerSettings`. The command
line, configuration files and pytest each provide a layer. A layer is a part of the settings, with
values of the right types. Layers are merged into one frozen `Settings`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.target import values
from mcp_touchstone.target.option import LEAVES, RUN, Option, OptionType, option, options
from mcp_touchstone.target.server_settings import HOW, PROMISES, USED, ServerSettings

Layer = Mapping[str, Any]
"""Names of fields of `Settings` -> values. Other layers can set the missing fields."""

CHECK: Final = ("check",)
JUDGE: Final = ("check", "judge", "client", "gateway")
CLIENT: Final = ("client",)
GATEWAY: Final = ("gateway",)
FLEET: Final = ("check", "fleet")
SCOPE: Final = "scope"
GENERATED: Final = "property-based tests"
GATE: Final = "what fails the run"
REPORTS: Final = "reports"
GROUPS: Final = ("", SCOPE, GENERATED, PROMISES, GATE, HOW, USED, REPORTS)
"""Headings of options in the order of ``--help``; the first ones have none."""

SHARED_REPORTS: Final = ("badge", "junit", "markdown", "sarif")
"""Kinds of reports that can hold several targets; other kinds have one file per target."""

SEVERITIES: Final = (
    "must",
    "should",
    "may",
    "critical",
    "high",
    "medium",
    "low",
    "info",
    "sdk",
    "profile",
    "never",
)
"""Words of ``--fail-on``."""


_scope: Final = partial(option, group=SCOPE, commands=CHECK)
_gate: Final = partial(option, group=GATE, commands=CHECK)
_report: Final = partial(option, group=REPORTS, commands=CHECK, in_files=False)


class ConfigError(InputError):
    """A configuration cannot be used. The message names file and key, and says what to write."""


def fail_on(*words: str) -> str:
    """Check that words of ``--fail-on`` can be combined; return the last."""
    from mcp_touchstone.results.threshold import Floor  # noqa: PLC0415  (only if it is read)

    Floor.read(words)
    return words[-1]


def expectation(word: str) -> str:
    """Check what a gateway is meant to change; return the word."""
    from mcp_touchstone.judging.expected import Expected  # noqa: PLC0415  (only if it is read)

    Expected.read((word,))
    return word


def rules() -> list[str]:
    """Return the ids of all clauses and threats, for completion."""
    from mcp_touchstone.catalog.loader import BOTH, rows  # noqa: PLC0415  (for completion only)

    return [clause.id for clause in rows(BOTH)]


def clients(text: str) -> str:
    """Check the names of clients in a word such as ``vscode,cursor``; return the word."""
    from mcp_touchstone.profiles import load  # noqa: PLC0415  (only if it is read)

    load.chosen((text,))
    return text


def known_clients() -> list[str]:
    """Return the names of all profiles, and the word for all of them."""
    from mcp_touchstone.profiles import load  # noqa: PLC0415  (for help and completion only)

    return [*load.names(), load.DIRECTORIES, load.ALL]


@dataclass(frozen=True, kw_only=True)
class Settings(ServerSettings):
    """The settings for starting one server, checking it and reporting the results.

    Attributes:
        name: name of the target in the configuration; empty if it has none.
        configuration: the file of the configuration; None if there is none.
        client: program and arguments of a client under test; empty if there is none.
        gateway: the same of a gateway under test beside a server.
        usual_baseline: the file that is used if none was named and this one exists.
    """

    name: str = ""
    configuration: Path | None = None
    client: tuple[str, ...] = ()
    gateway: tuple[str, ...] = ()
    client_http: bool = option(
        "reach our server over HTTP; its URL replaces {server}, or is the last argument",
        names=("--http",),
        commands=CLIENT,
        in_pytest=True,
    )
    client_timeout: float = option(
        "limit for the client in each scenario (default: 30)",
        "SECONDS",
        values.seconds,
        kind=OptionType.NUMBER,
        default=30.0,
        names=("--timeout",),
        commands=CLIENT,
        in_pytest=True,
    )
    scenario: tuple[str, ...] = option(
        "run the client in this scenario only; repeatable; `act --list` lists them",
        "NAME",
        kind=OptionType.TEXTS,
        commands=CLIENT,
        in_pytest=True,
    )
    steps: dict[str, str] = option(
        "take the steps with these commands, a process for each: METHOD=COMMAND, or a COMMAND for "
        "all other methods. It has {server} or {server_line} (one word), and {tool}, {prompt}, "
        "{uri}, {level}, {arguments} (JSON), {pairs} (name=value), {method}, or {action} and "
        "{content} (JSON) for the answer to an elicitation, or {client_id} and {client_secret}; "
        "repeatable",
        "METHOD=COMMAND",
        values.step,
        kind=OptionType.TABLE,
        write=lambda found: [f"{method}={command}" for method, command in found.items()],
        commands=CLIENT,
        in_files=False,
    )
    spec_version: str = option(
        "run every scenario in this revision, which is then the only one of our server:",
        "DATE",
        values.revision,
        default="",
        commands=CLIENT,
        complete=lambda: rev.ALL,
        in_pytest=True,
    )
    client_jobs: int = option(
        "clients at a time, each in a scenario of its own (default: 1)",
        "N",
        values.whole(1, values.MOST_CLIENTS),
        kind=OptionType.NUMBER,
        default=1,
        names=("--jobs",),
        commands=CLIENT,
        in_pytest=True,
    )
    shard: tuple[int, int] | None = option(
        "run each N-th scenario only, from the I-th on; N runs have all of them",
        "I/N",
        values.shard,
        commands=CLIENT,
        in_files=False,
    )
    expects: tuple[str, ...] = option(
        "what the gateway is meant to change: prefix=TEXT, uris=TEXT with {uri}, hides=TOOL, "
        "adds=TOOL, drops=CAPABILITY, revision=DATE; or transparent, if each change is a failure; "
        "repeatable",
        "WORD",
        expectation,
        kind=OptionType.TEXTS,
        commands=GATEWAY,
        in_pytest=True,
    )
    config_template: Path | None = option(
        "the gateway is configured by a file: this text, in which {server}, {url}, {program} and "
        "{arguments} are replaced; {config} in the command is the file",
        "FILE",
        Path,
        commands=GATEWAY,
        in_pytest=True,
        risk=LEAVES,
    )
    upstream_port: int = option(
        "port of our server over HTTP (default: any free one); a gateway that runs already must "
        "know it: http://127.0.0.1:PORT/mcp",
        "PORT",
        values.whole(0, 65535),
        kind=OptionType.NUMBER,
        default=0,
        commands=GATEWAY,
    )
    suite: str = _scope(
        "conformance (default), security or all. The security suite calls tools that write, in "
        "throw-away folders; to attack file tools it needs {root} in the command",
        "NAME",
        values.suite,
        default="conformance",
        commands=FLEET,
        complete=lambda: values.SUITES,
        in_pytest=True,
    )
    select: tuple[str, ...] = _scope(
        "clause, chapter (ping), group (basic), section of the specification "
        "(basic/transports#session-management) or scenario; globs are allowed; repeatable",
        "WORD",
        kind=OptionType.TEXTS,
        names=("--select", "--section"),
        complete=rules,
        commands=(*FLEET, "judge", "client", "gateway"),
        in_pytest=True,
    )
    revision: tuple[str, ...] = _scope(
        "use this protocol revision only; repeatable:",
        "DATE",
        values.revision,
        kind=OptionType.TEXTS,
        commands=("check", "recon", "golden", "fleet", "judge", "client", "gateway"),
        complete=lambda: rev.ALL,
        in_pytest=True,
    )
    level: tuple[str, ...] = _scope(
        "check clauses of this level only (MUST includes MUST NOT); repeatable:",
        "LEVEL",
        values.level,
        kind=OptionType.TEXTS,
        complete=lambda: values.LEVELS,
        commands=JUDGE,
    )
    for_: tuple[str, ...] = _scope(
        "also say what these clients and directories do with the server; repeatable, or joined by "
        "commas:",
        "CLIENT",
        clients,
        kind=OptionType.TEXTS,
        complete=known_clients,
        in_pytest=True,
        names=("--for",),
        commands=FLEET,
    )
    advisories: bool = _scope(
        "also say which advisories on its SDK and its packages the run found open or closed",
        commands=(*CHECK, *CLIENT),
    )
    osv: Path | None = _scope(
        "the same, also for the packages in this file of `osv-scanner --format json`",
        "FILE",
        Path,
        in_files=False,
    )
    strict: bool = _gate(
        "a broken SHOULD is a failure, and faults of the server's SDK count",
        in_pytest=True,
        commands=JUDGE,
    )
    attacks: tuple[str, ...] = _scope(
        "also run this group of attacks; `core` always runs; repeatable:",
        "LEVEL",
        values.attacks,
        kind=OptionType.TEXTS,
        complete=lambda: values.ATTACKS,
    )
    attack_commands: bool = _scope(
        "also attack tools that run programs from a list or inside a folder; requires a sandbox",
        in_pytest=True,
    )
    quick: bool = _scope(
        "check the newest revision only, in one conversation, without calling tools",
        commands=FLEET,
        in_pytest=True,
    )
    fail_on: tuple[str, ...] = _gate(
        "lowest severity that fails the run. Conformance: must (default), should, may. Security: "
        "critical, high, medium, low, info. Give one of each, or never; sdk counts the faults of "
        "the server's SDK too, profile what is lost in a client of --for",
        "SEVERITY",
        fail_on,
        kind=OptionType.TEXTS,
        commands=(*JUDGE, "diff"),
        complete=lambda: SEVERITIES,
        in_pytest=True,
    )
    since: Path | None = _gate(
        "fail only where it is worse than in this report, and show what changed",
        "OLD.json",
        Path,
        in_files=False,
        commands=JUDGE,
    )
    baseline: Path | None = _gate(
        "file of known failures (default: touchstone-baseline.toml, if it exists)",
        "FILE",
        Path,
        in_pytest=True,
        commands=JUDGE,
        risk=LEAVES,
    )
    usual_baseline: Path | None = None
    no_baseline: bool = _gate(
        "ignore known failures", in_files=False, in_pytest=True, commands=JUDGE
    )
    update_baseline: bool = _gate(
        "write current failures into the baseline, remove fixed ones, and keep all reasons",
        in_files=False,
        commands=JUDGE,
    )
    scenario_baseline: bool = _gate(
        "fail if a scenario is not judged to its end, unless the baseline has an entry for it",
        commands=CLIENT,
        in_pytest=True,
    )
    budget: Path | None = _gate(
        "fail if the lists or the largest result cost a model more tokens than in this file",
        "FILE",
        Path,
        risk=LEAVES,
    )
    update_budget: bool = _gate(
        "write what they cost now into the file of --budget (budgets.toml)", in_files=False
    )
    attest: Path | None = _report(
        "write an in-toto statement on the run: package, report, verdicts", "FILE", Path
    )
    sign: Path | None = _report(
        "sign the statement of --attest with this private key (PEM); requires the extra sign",
        "KEY",
        Path,
    )
    locked: bool = _gate(
        "fail if the server, its package or what it can do changed since it was approved",
        in_files=False,
    )
    update_lock: bool = _gate("accept what changed: write it into the lock", in_files=False)
    lock: Path | None = _gate(
        "the lock of --locked and --update-lock (touchstone.lock)", "FILE", Path, in_files=False
    )
    accept_unbound: bool = _scope(
        "pass a security run although no tool that handles files was found", in_pytest=True
    )
    deadline: float | None = option(
        "limit for the whole run; the verdicts until then are reported (default: none; 1200 where "
        "CI is set; 0 for none)",
        "SECONDS",
        values.deadline,
        kind=OptionType.NUMBER,
        group=HOW,
        commands=CHECK,
        in_pytest=True,
    )
    jobs: int = option(
        "conversations at a time (default: 20 for each processor core, at most 64)",
        "N",
        values.whole(1, values.MOST_JOBS),
        kind=OptionType.NUMBER,
        default=0,
        group=HOW,
        commands=CHECK,
    )
    examples: int | None = option(
        "examples of each property in each revision (default 10; 0 for none)",
        "N",
        values.whole(0, values.MOST_EXAMPLES),
        kind=OptionType.NUMBER,
        group=GENERATED,
        commands=FLEET,
        in_pytest=True,
    )
    seed: int = option(
        "random seed (default 0); the same seed generates the same examples",
        "N",
        values.whole(0, values.MOST_EXAMPLES),
        kind=OptionType.NUMBER,
        default=0,
        group=GENERATED,
        commands=CHECK,
        in_pytest=True,
    )
    report: tuple[str, ...] = _report(
        "write a report; repeatable; badge, html, json, junit, markdown or sarif",
        "KIND:PATH",
        kind=OptionType.TEXTS,
        commands=JUDGE,
    )
    json: Path | None = _report("the same as --report json:FILE", "FILE", Path, commands=JUDGE)
    save: Path | None = _report(
        "write every transcript to this folder",
        "DIR",
        Path,
        commands=("check", "client", "gateway"),
    )
    scripts: Path | None = _report(
        "write a shell script for each security finding to this folder", "DIR", Path
    )
    verbose: bool = _report(
        "print lines, notes and differences in full",
        names=("-v", "--verbose"),
        commands=(*JUDGE, "golden", "diff"),
    )
    quiet: bool = _report(
        "print failures and the count only", names=("-q", "--quiet"), commands=JUDGE
    )
    color: str = _report(
        "auto (default), always or never",
        "WHEN",
        values.color,
        default="auto",
        complete=lambda: values.COLORS,
        commands=JUDGE,
    )


OPTIONS: Final = options(Settings)
"""Field of `Settings` -> its option."""

SOURCES: Final = {
    "config": Option(
        kind=OptionType.TEXT,
        metavar="FILE",
        names=("--config",),
        group=HOW,
        read=Path,
        commands=(*RUN, "bridge", "client", "gateway"),
        help="file that defines the server: TOML, .mcp.json, or a file of Claude Desktop or VS "
        "Code (default: touchstone.toml or pyproject.toml in the working folder)",
    ),
    "target": Option(
        kind=OptionType.TEXT,
        metavar="NAME",
        names=("--target", "--server"),
        group=HOW,
        commands=(*RUN, "bridge", "client", "gateway"),
        help="name of the server in that file",
    ),
    "trust_config": Option(
        kind=OptionType.FLAG,
        names=("--trust-config",),
        group=HOW,
        commands=(*RUN, "bridge", "client", "gateway", "fleet"),
        help="use all of a configuration that you did not name: also variables, headers, programs "
        "outside of the sandbox, and a weaker sandbox. Read it first: it is code",
    ),
}
"""The options that name a configuration; they are no settings."""

FIELDS: Final = frozenset(one.name for one in fields(Settings))
ADDED: Final = ("call", "prompt", "bindings")
"""Fields to which a later layer adds values.

The fields ``env`` and ``header`` are merged by name. All other fields are replaced.
"""


def key(field: str) -> str:
    """Return the key of a field in files; ``for`` is no name of a field in Python."""
    return field.strip("_").replace("_", "-")


def field_of(key: str) -> str:
    """Return the field of a key in files."""
    name = key.replace("-", "_")
    return name if name in OPTIONS or f"{name}_" not in OPTIONS else f"{name}_"


def words(given: Layer, command: str) -> list[str]:
    """Return the values of a layer that are options of a command as words of a command line."""
    rows = {name: row for name, row in OPTIONS.items() if name in given and command in row.commands}
    return [word for name, row in rows.items() for word in row.words(given[name])]


def layer(given: Mapping[str, Any]) -> Layer:
    """Build a layer from parsed options; convert lists to tuples, and pairs to mappings."""
    found = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in given.items()
        if name in FIELDS
    }
    for name, row in OPTIONS.items():
        if row.kind.is_named and isinstance(found.get(name), tuple):
            found[name] = dict(found[name])
    return found


def merged(*layers: Layer) -> Settings:
    """Merge layers into settings; a later one takes precedence."""
    found: dict[str, Any] = {}
    for one in layers:
        for name, value in one.items():
            if name in found and name in ADDED:
                found[name] = (*found[name], *value)
            elif name in found and name in {"env", "header"}:
                found[name] = {**found[name], **value}
            else:
                found[name] = value
    return Settings(**found)
