"""Settings: how one server is started and checked, whatever they were read from. Reads no file.

Command line, configuration files and pytest each give a layer: some of the settings, with values of
the right types. Layers are merged into one frozen `Settings`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_touchstone.catalog.errors import UserError

if TYPE_CHECKING:
    from mcp_touchstone.bindings.declared import Declaration
    from mcp_touchstone.target.promises import PromiseTerms
    from mcp_touchstone.target.target import Arguments

Layer = Mapping[str, Any]
"""Names of fields of `Settings` -> values. What is not named is left to other layers."""

STARTUP: Final = 60.0
"""Seconds until the first reply, unless a limit is set."""


class ConfigError(UserError, ValueError):
    """A configuration cannot be used; the message names file and key, and what to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one server is started, what of it is checked, and what is reported.

    Attributes:
        name: the target's name in the configuration; empty where it has none.
        command: program and arguments.
        bundled: use the bundled reference server; there is no command then.
        env: variables set for the server.
        cwd: its working folder; None for the user's.
        root_from: a folder copied into each throw-away root.
        world: the folder in which each throw-away root is made; None for the usual one.
        offline: start it without a network.
        sandbox: ``auto``, ``unshare``, ``bwrap`` or ``off``; empty for auto where tools are called
            that may write, else off.
        online: leave the server the network in its sandbox.
        timeout: seconds until its first reply.
        call: tools that may be called, with arguments that work.
        resource: URIs that can be read.
        prompt: prompts that can be rendered, with arguments that work.
        bindings: what tools do to files, as the user declares it.
        promise: guarantees of the server -> their terms.
        suite: ``conformance``, ``security`` or ``all``.
        select: clauses, chapters, groups or scenarios; empty selects all.
        attacks: attack levels added to ``core``.
        revision: protocol revisions; empty for all that the server supports.
        level: requirement levels; empty for all.
        strict: a broken SHOULD is a failure.
        quick: only what one conversation in the newest revision shows.
        examples: examples of each property; None for the default.
        seed: the random seed of the examples.
        accept_unbound: a security run passes although no tool that handles files was found.
        deadline: seconds for the whole run; 0 for no limit, None for the default.
        jobs: conversations at a time; 0 lets the engine decide.
        fail_on: the lowest severities that fail the run.
        baseline: the file of known failures, where one was named.
        usual_baseline: the file that is used where none was named and this one exists.
        no_baseline: use no baseline.
        update_baseline: write the baseline.
        since: an older JSON report to compare with.
        report: reports to write, as ``KIND:PATH``.
        json: the file of the JSON report.
        save: the folder for the transcripts.
        scripts: the folder for the reproduction scripts.
        verbose: print lines and notes in full.
        quiet: print failures and the count only.
        color: ``auto``, ``always`` or ``never``.
        origin: words of a command line that name this server again without values of its
            configuration; empty where a command line named all of it.
    """

    name: str = ""
    command: tuple[str, ...] = ()
    bundled: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    root_from: Path | None = None
    world: Path | None = None
    offline: bool = False
    sandbox: str = ""
    online: bool = False
    timeout: float = STARTUP
    call: "tuple[tuple[str, Arguments], ...]" = ()
    resource: tuple[str, ...] = ()
    prompt: "tuple[tuple[str, Arguments], ...]" = ()
    bindings: "tuple[Declaration, ...]" = ()
    promise: "Mapping[str, PromiseTerms]" = field(default_factory=dict)
    suite: str = "conformance"
    select: tuple[str, ...] = ()
    attacks: tuple[str, ...] = ()
    revision: tuple[str, ...] = ()
    level: tuple[str, ...] = ()
    strict: bool = False
    quick: bool = False
    examples: int | None = None
    seed: int = 0
    accept_unbound: bool = False
    deadline: float | None = None
    jobs: int = 0
    fail_on: tuple[str, ...] = ()
    baseline: Path | None = None
    usual_baseline: Path | None = None
    no_baseline: bool = False
    update_baseline: bool = False
    since: Path | None = None
    report: tuple[str, ...] = ()
    json: Path | None = None
    save: Path | None = None
    scripts: Path | None = None
    verbose: bool = False
    quiet: bool = False
    color: str = "auto"
    origin: tuple[str, ...] = ()


FIELDS: Final = frozenset(one.name for one in fields(Settings))
ADDED: Final = ("call", "prompt", "bindings")
"""Fields to which a later layer adds; ``env`` is merged by name, and all others are replaced."""


def layer(values: Mapping[str, Any]) -> Layer:
    """Make a layer of parsed options: lists become tuples, and pairs become mappings."""
    found = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in values.items()
        if name in FIELDS
    }
    for name in ("env", "promise"):
        if isinstance(found.get(name), tuple):
            found[name] = dict(found[name])
    return found


def merged(*layers: Layer) -> Settings:
    """Merge layers into settings; a later one takes precedence."""
    found: dict[str, Any] = {}
    for one in layers:
        for name, value in one.items():
            if name in found and name in ADDED:
                found[name] = (*found[name], *value)
            elif name in found and name == "env":
                found[name] = {**found[name], **value}
            else:
                found[name] = value
    return Settings(**found)
