"""The settings for starting and checking one server, independent of their source. Reads no file.

The command line, configuration files and pytest each provide a layer. A layer is a part of the
settings, with values of the right types. Layers are merged into one frozen `Settings`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.target.server_settings import ServerSettings

Layer = Mapping[str, Any]
"""Names of fields of `Settings` -> values. Other layers can set the missing fields."""


class ConfigError(UserError, ValueError):
    """A configuration cannot be used. The message names file and key, and says what to write."""


@dataclass(frozen=True, kw_only=True)
class Settings(ServerSettings):
    """The settings for starting one server, checking it and reporting the results.

    Attributes:
        name: name of the target in the configuration; empty if it has none.
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
    """

    name: str = ""
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
