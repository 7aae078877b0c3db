"""What words come to, a configuration put before them: the server, the choice, the baseline.

The command line and the pytest plugin speak the same words, so a project is judged alike by both.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from mcp_touchstone import baseline_file, config, config_file, offline, seeding
from mcp_touchstone.attack import told
from mcp_touchstone.baseline import FILE
from mcp_touchstone.baseline_file import Book
from mcp_touchstone.clause import Level, nearest
from mcp_touchstone.command_line import Refusing, parser
from mcp_touchstone.config import ConfigError
from mcp_touchstone.floor import Floor
from mcp_touchstone.loader import BOTH, rows
from mcp_touchstone.plan import EXAMPLES, Choice, UsageError
from mcp_touchstone.target import Named, Target, absolute, reference, with_arguments
from mcp_touchstone.terms import read as promise
from mcp_touchstone.tier import tiers

NAME: Final = "{target}"
"""Stands in the path of a report or baseline for the name of the target."""


def configured(options: argparse.Namespace, words: Sequence[str]) -> argparse.Namespace:
    """Read the words again behind those of a configuration; a command named here needs none.

    Args:
        options: what the words were parsed to.
        words: the words of the command line.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    if options.config is None and (options.server or options.command == "init"):
        if options.target is not None:
            raise ConfigError(
                f"--target {options.target}: name the file it stands in with --config"
            )
        return options
    given = {pair.partition("=")[0] for pair in options.env}
    found = config_file.find(
        config_file.Asked(options.config, options.target, os.environ, given, bool(options.server))
    )
    if found is None:
        return options
    try:
        of_file = ["check", *config.words(found.settings, config.KEYS)]
        Floor.read(parser(Refusing).parse_args(of_file).fail_on)
    except ValueError as error:
        told = str(error).removeprefix("argument --")
        raise ConfigError(f"{found.path}: {told}; mend it there") from error
    spoken = vars(options)
    known = {k for k in config.KEYS if config.takes(k, spoken.get(k.replace("-", "_"), ...))}
    at = 2 if options.command == "golden" else 1
    filled = parser().parse_args([*words[:at], *config.words(found.settings, known), *words[at:]])
    filled.server = options.server or list(found.command)
    filled.usual = found.baseline
    if not options.server:
        try:
            filled.origin = (*found.words, *target(options).words())
        except UsageError as error:
            raise ConfigError(str(error)) from error
    return filled


def each(options: argparse.Namespace, words: Sequence[str]) -> list[argparse.Namespace]:
    """Give what ``check`` is about: one server, the targets that were named, or all there are.

    ``{target}`` in the path of a report or baseline stands for the name.

    Raises:
        ConfigError: the configuration cannot be used, or two targets would share a file.
    """
    names = _names(options, words)
    found = []
    for name in names:
        one = argparse.Namespace(**{**vars(options), "server": [], "target": name})
        filled = configured(one, words)
        filled.target = name
        found.append(_placed(filled, name, several=len(names) > 1))
    if not found:
        return [configured(options, words)]
    books = [one.baseline for one in found if one.baseline is not None and not one.no_baseline]
    shared = next((path for path in books if books.count(path) > 1), None)
    if shared is not None:
        raise ConfigError(f"several targets share the baseline {shared}; put {NAME} into its name")
    return found


def _names(options: argparse.Namespace, words: Sequence[str]) -> list[str]:
    """Give the targets that are judged; none where a command is, or nothing is configured."""
    if options.target is not None:
        return [] if options.server else [options.target]
    asked = list(dict.fromkeys(options.server))
    if asked and "--" in words:
        return []
    try:
        path = options.config or config_file.present()
        known = () if path is None else config_file.servers(path)
    except ConfigError:
        if asked and options.config is None:
            return []
        raise
    if not asked:
        toml = path is not None and path.suffix == ".toml"
        return [*known] if toml else []
    wrong = [word for word in asked if word not in known]
    misspelt = len(asked) == 1 and "/" not in asked[0] and bool(nearest(asked[0], known))
    if wrong and (len(wrong) < len(asked) or misspelt):
        raise ConfigError(
            f"{path}: no target is called {wrong[0]!r}{nearest(wrong[0], known)}; it names "
            f"{', '.join(known)}; a command stands behind `--`"
        )
    return [] if wrong else asked


def _placed(options: argparse.Namespace, name: str, *, several: bool) -> argparse.Namespace:
    """Put the name of a target into the paths of its files."""
    for key in ("json", "save", "since", "baseline"):
        path = getattr(options, key)
        if path is not None:
            if several and key != "baseline":
                _must_differ(f"--{key} {path}")
            setattr(options, key, Path(str(path).replace(NAME, name)))
    for word in options.report if several else ():
        _must_differ(f"--report {word}")
    options.report = [word.replace(NAME, name) for word in options.report]
    return options


def _must_differ(told: str) -> None:
    if NAME not in told:
        raise ConfigError(f"{told}: several targets are judged; put {NAME} into its name")


def target(options: argparse.Namespace) -> Target:
    """Give the server that is named; without a command the bundled one.

    Raises:
        UsageError: a variable, or the arguments of a tool or prompt, cannot be read.
    """
    env = {}
    terms = dict(map(promise, getattr(options, "promise", ())))
    for pair in options.env:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise UsageError(f"--env {pair}: write NAME=VALUE")
        env[name] = value
    try:
        named = Named(
            calls=tuple(map(with_arguments, getattr(options, "call", ()))),
            resources=tuple(getattr(options, "resource", ())),
            prompts=tuple(map(with_arguments, getattr(options, "prompt", ()))),
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    if not options.server:
        ours = reference(startup=options.timeout, env=env, named=named)
        return replace(ours, seed=_seed(options), apart=_apart(options))
    return Target(
        command=absolute(tuple(options.server)),
        env=env,
        cwd=options.cwd,
        startup=options.timeout,
        named=named,
        promises=frozenset(terms),
        terms=terms,
        told=tuple(map(told.read, getattr(options, "bindings", ()))),
        origin=getattr(options, "origin", ()),
        seed=_seed(options),
        apart=_apart(options),
    )


def _apart(options: argparse.Namespace) -> tuple[str, ...]:
    """Give what keeps the server from the network, where that is asked for.

    Raises:
        UsageError: nothing here can.
    """
    if not getattr(options, "offline", False):
        return ()
    try:
        return offline.way()
    except offline.OfflineError as error:
        raise UsageError(f"--offline: {error}") from error


def _seed(options: argparse.Namespace) -> Path | None:
    """Give the folder that is copied into each root.

    Raises:
        UsageError: it is none, or too large.
    """
    folder: Path | None = getattr(options, "root_from", None)
    if folder is None:
        return None
    try:
        seeding.check(folder)
    except (seeding.SeedError, OSError) as error:
        raise UsageError(f"--root-from: {error}") from error
    return folder.absolute()


def choice(options: argparse.Namespace) -> Choice:
    """Give what is judged.

    Raises:
        UsageError: ``--fail-on`` cannot be read.
    """
    levels = [level for level in Level if level.value.split()[0] in options.level]
    return Choice(
        select=tuple(options.select),
        revisions=tuple(options.revision),
        levels=tuple(levels),
        strict=options.strict,
        jobs=options.jobs,
        examples=EXAMPLES if options.examples is None else options.examples,
        seed=options.seed,
        quick=options.quick,
        floor=floor(options),
        tiers=tiers(tuple(options.attacks)),
    )


def floor(options: argparse.Namespace) -> Floor:
    """Give what fails the gate.

    Raises:
        UsageError: ``--fail-on`` cannot be read.
    """
    try:
        return Floor.read(options.fail_on)
    except ValueError as error:
        raise UsageError(f"--fail-on: {error}") from error


def book(options: argparse.Namespace, judged: Target) -> Book | None:
    """Give the baseline; one that was not named is not the bundled server's.

    Raises:
        UsageError: options exclude each other.
        BaselineError: the file cannot be read, is wrong, or is not there though it was named.
    """
    if options.no_baseline:
        if options.baseline or options.update_baseline:
            raise UsageError("--no-baseline excludes --baseline and --update-baseline; drop one")
        return None
    if judged.bundled and not options.baseline and not options.update_baseline:
        return None
    return baseline_file.find(
        options.baseline,
        getattr(options, "usual", Path(FILE)),
        lambda: rows(BOTH),
        update=options.update_baseline,
    )
