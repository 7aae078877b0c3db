"""The settings for starting and checking one server, independent of their source. Reads no file.

The command line, configuration files and pytest each provide a layer. A layer is a part of the
settings, with values of the right types. Layers are merged into one frozen `Settings`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_touchstone.catalog.errors import UserError

if TYPE_CHECKING:
    from mcp_touchstone.bindings.declared import Declaration
    from mcp_touchstone.catalog.sdk import Sdk
    from mcp_touchstone.target.promises import PromiseTerms
    from mcp_touchstone.target.target import Arguments

Layer = Mapping[str, Any]
"""Names of fields of `Settings` -> values. Other layers can set the missing fields."""

STARTUP: Final = 60.0
"""Default limit for the first reply, in seconds."""


class ConfigError(UserError, ValueError):
    """A configuration cannot be used. The message names file and key, and says what to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings for starting one server, checking it and reporting the results.

    Attributes:
        name: name of the target in the configuration; empty if it has none.
        command: program and arguments.
        url: URL of a server that speaks HTTP; empty for stdio.
        header: header -> variable of the environment with its value, for each HTTP request.
        ca_file: certificates to accept beside those of the system; None for none.
        intrusive: send malformed and heavy traffic also to a server on another machine.
        rate: greatest number of HTTP requests a second; 0 for the default.
        sdk: the SDK of the server, as the user names it; None to look for it.
        bundled: use the bundled reference server instead of a command.
        env: variables set for the server.
        cwd: working folder of the server; None for the user's.
        root_from: a folder copied into each throw-away root.
        world: the folder in which each throw-away root is created; None for the default.
        offline: start the server without a network.
        sandbox: ``auto``, ``unshare``, ``bwrap`` or ``off``. Empty selects ``auto`` if tools that
            may write are called, and ``off`` otherwise.
        online: allow the network in the sandbox.
        timeout: limit for the first reply, in seconds.
        call: tools that may be called, with arguments that work.
        resource: URIs that can be read.
        prompt: prompts that can be rendered, with arguments that work.
        bindings: the user's declarations of operations of tools on files.
        promise: guarantees of the server -> their terms.
        suite: ``conformance``, ``security`` or ``all``.
        select: clauses, chapters, groups or scenarios; empty selects all.
        attacks: attack levels added to ``core``.
        attack_commands: also attack tools that run programs; requires a sandbox.
        revision: protocol revisions; empty for all that the server supports.
        level: requirement levels; empty for all.
        strict: a broken SHOULD is a failure.
        quick: check only the newest revision, in one conversation.
        examples: number of examples of each property; None for the default.
        seed: the random seed of the examples.
        accept_unbound: a security run passes although no tool that handles files was found.
        deadline: limit for the whole run, in seconds; 0 for no limit, None for the default.
        jobs: number of conversations at a time; 0 for the default.
        fail_on: the lowest severities that fail the run.
        baseline: the file of known failures; None if none was named.
        usual_baseline: the file that is used if none was named and this one exists.
        no_baseline: use no baseline.
        update_baseline: write the baseline.
        since: an older JSON report to compare with; None for none.
        report: reports to write, as ``KIND:PATH``.
        json: the file for the JSON report; None writes none.
        save: the folder for the transcripts; None writes none.
        scripts: the folder for the reproduction scripts; None writes none.
        verbose: print lines and notes in full.
        quiet: print failures and the count only.
        color: ``auto``, ``always`` or ``never``.
        origin: command line words that select this server again without repeating values from
            its configuration; empty if the command line defines the whole server.
    """

    name: str = ""
    command: tuple[str, ...] = ()
    url: str = ""
    header: Mapping[str, str] = field(default_factory=dict)
    ca_file: Path | None = None
    intrusive: bool = False
    rate: int = 0
    sdk: "Sdk | None" = None
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
    attack_commands: bool = False
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
"""Fields to which a later layer adds values.

The fields ``env`` and ``header`` are merged by name. All other fields are replaced.
"""


def layer(values: Mapping[str, Any]) -> Layer:
    """Build a layer from parsed options; convert lists to tuples, and pairs to mappings."""
    found = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in values.items()
        if name in FIELDS
    }
    for name in ("env", "header", "promise"):
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
            elif name in found and name in {"env", "header"}:
                found[name] = {**found[name], **value}
            else:
                found[name] = value
    return Settings(**found)
