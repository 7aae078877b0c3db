"""What options and ini keys of pytest come to: one job for each server that is judged.

They are turned into the words of ``mcp-touchstone check``, so both doors judge alike.
"""

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from mcp_touchstone import config_file, options
from mcp_touchstone.baseline import FILE, BaselineError
from mcp_touchstone.baseline_file import Book
from mcp_touchstone.clause import CatalogueError
from mcp_touchstone.command_line import Refusing, parser
from mcp_touchstone.config import ConfigError
from mcp_touchstone.gate import Choice, UsageError
from mcp_touchstone.loader import load
from mcp_touchstone.scenario import Registry
from mcp_touchstone.target import Target

LISTS: Final = ("select", "revision", "call", "resource", "prompt", "promise", "fail-on")
SINGLE: Final = ("suite", "timeout", "examples", "seed")
FLAGS: Final = ("strict", "quick")
INI: Final = ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_OPTION: Final = re.compile(r"(?:^argument )?(?<!`)--([a-z][a-z-]*)")
JOBS: Final = pytest.StashKey[list["Job"]]()


@dataclass(frozen=True, slots=True)
class Job:
    """One server and how it is judged.

    Attributes:
        name: of its target; empty where it has none.
        target: the server.
        choice: what is judged, node ids and ``-k`` apart.
        registry: the suites.
        book: its baseline; None where there is none.
    """

    name: str
    target: Target
    choice: Choice
    registry: Registry
    book: Book | None

    @property
    def suffix(self) -> str:
        """What stands behind the name of an item."""
        return f"[{self.name}]" if self.name else ""


def jobs(config: pytest.Config) -> list[Job]:
    """Give what is judged, or what fixtures may use: without options the file that is there.

    Raises:
        pytest.UsageError: an option, an ini key or a configuration is wrong.
    """
    found = config.stash.get(JOBS, None)
    if found is None:
        try:
            found = config.stash[JOBS] = list(_jobs(config))
        except (
            ConfigError, UsageError, BaselineError, CatalogueError, ValueError,
        ) as error:  # fmt: skip
            raise pytest.UsageError(_OPTION.sub(r"--mcp-\1", str(error))) from error
    return found


def base(config: pytest.Config) -> Path:
    """Give the folder the configuration of pytest speaks of."""
    return config.invocation_params.dir if config.inipath is None else config.inipath.parent


def _named_file(config: pytest.Config) -> Path | None:
    option, key = config.getoption("--mcp-config"), config.getini("mcp_config")
    if option:
        return config.invocation_params.dir / str(option)
    return base(config) / str(key) if key else None


def _jobs(config: pytest.Config) -> Iterator[Job]:
    command = config.getoption("--mcp-server") or config.getini("mcp_server")
    _refuse_lost_ini(config)
    file = _named_file(config)
    if file is None and not command:
        file = config_file.present(base(config))
        if file is None and config.getoption("--mcp"):
            raise ConfigError(
                f"there is no {config_file.FILE} and no [tool.mcp-touchstone] in "
                f"{base(config)} for `--mcp`; `mcp-touchstone init` writes one"
            )
        if file is None:
            return
    words = [*_words(config), *_command(command)]
    named = list(config.getoption("--mcp-target") or config.getini("mcp_target"))
    if file is None:
        if named:
            raise ConfigError(f"--target {named[0]}: name the file it stands in with --config")
        yield _job("", words, config)
        return
    words[1:1] = ["--config", _shown(file)]
    for name in named or config_file.targets(file) or [""]:
        told = ["--target", name] if name else []
        yield _job(name, [words[0], *told, *words[1:]], config)


def _refuse_lost_ini(config: pytest.Config) -> None:
    """Refuse a program that pytest took for a test folder, when it looked for its ini file.

    It looks before it knows our options, at all words that are paths.
    """
    here, command = config.invocation_params.dir, config.getoption("--mcp-server")
    if not command or here.is_relative_to(config.rootpath) or not Path(command).exists():
        return
    lost = next((name for name in INI if (here / name).is_file()), "")
    if lost:
        raise ConfigError(
            f"--server {command}: pytest takes that for a test folder and reads no {lost} here; "
            f"write --server={command}"
        )


def _words(config: pytest.Config) -> Iterator[str]:
    """Give options and ini keys as words; an option replaces the key."""
    yield "check"
    for name in LISTS:
        for value in _given(config, name):
            yield f"--{name}={value}"
    for name in SINGLE:
        value = config.getoption(f"--mcp-{name}")
        text = config.getini(f"mcp_{name}") if value is None else str(value)
        if text:
            yield f"--{name}={text}"
    for name in FLAGS:
        if config.getoption(f"--mcp-{name}") or config.getini(f"mcp_{name}"):
            yield f"--{name}"
    baseline = config.getoption("--mcp-baseline") or config.getini("mcp_baseline")
    if config.getoption("--mcp-no-baseline"):
        yield "--no-baseline"
    elif baseline:
        folder = config.invocation_params.dir
        if not config.getoption("--mcp-baseline"):
            folder = base(config)
        yield f"--baseline={_shown(folder / baseline)}"


def _given(config: pytest.Config, name: str) -> list[str]:
    return list(config.getoption(f"--mcp-{name}") or config.getini(f"mcp_{name.replace('-', '_')}"))


def _command(command: str) -> list[str]:
    if not command:
        return []
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise pytest.UsageError(f"mcp_server: {error}") from error
    if not words:
        raise pytest.UsageError("mcp_server: the command is empty")
    return ["--", *words]


def _job(name: str, words: list[str], config: pytest.Config) -> Job:
    told = options.configured(parser(Refusing).parse_args(words), words)
    if not hasattr(told, "usual"):
        told.usual = Path(_shown(base(config) / FILE))
    found = options.target(told)
    choice = options.choice(told)
    registry = load(told.suite)
    choice.check(registry)
    return Job(name, found, choice, registry, options.book(told, found))


def _shown(path: Path) -> str:
    """Give a path as a person at the working folder would write it."""
    try:
        return os.path.relpath(path)
    except ValueError:  # another drive
        return str(path)
