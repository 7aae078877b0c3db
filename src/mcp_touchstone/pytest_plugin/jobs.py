"""Turn the options and ini keys of pytest into jobs: one for each checked server.

They are a layer of the same settings as the command line and configuration files.
"""

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_touchstone.catalog.errors import InputError, UserError
from mcp_touchstone.catalog.loader import CLIENTS, GATEWAYS, load
from mcp_touchstone.catalog.scenario import Registry
from mcp_touchstone.config import files, resolve
from mcp_touchstone.config.settings import (
    ConfigError,
    Layer,
    Settings,
    field_of,
    layer,
    merged,
)
from mcp_touchstone.config.toml_keys import KEYS, OTHERS, untrusted
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.gate import FILE
from mcp_touchstone.gate.baseline_file import Book
from mcp_touchstone.pytest_plugin.options import ALL, FILES, INI_FILES, SETTINGS, given
from mcp_touchstone.report.items import JUDGED
from mcp_touchstone.runtime.input_file import InputFile
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.target.option import OptionType
from mcp_touchstone.target.server_settings import words
from mcp_touchstone.target.target import Target

CLIENT, GATEWAY = OTHERS
JOBS: Final = pytest.StashKey[list["Job"]]()
_VALUED: Final = [name for name, row in ALL.items() if row.kind is not OptionType.FLAG]
_OPTION: Final = re.compile(rf"--({'|'.join([*_VALUED, 'trust-config'])})\b")


@dataclass(frozen=True, slots=True)
class Job:
    """One server, client or gateway and the settings of its check.

    Attributes:
        name: name of its target; empty if it has none.
        choice: the selected rules, before node ids and ``-k`` are applied.
        book: its baseline; None if there is none.
        golden: the folder of its golden recording; None if there is none.
        golden_target: the server, with the sandbox that the recorded scenarios need.
        kind: what it is: a server, a client or a gateway.
        settings: those of a client or a gateway, which is judged instead of a server.
        configuration: the file of its settings; None if there is none.
    """

    name: str
    target: Target
    choice: Choice
    registry: Registry
    book: Book | None
    golden: Path | None = None
    golden_target: Target | None = None
    kind: str = "server"
    settings: Settings | None = None
    configuration: Path | None = None

    @property
    def suffix(self) -> str:
        """The end of the name of each item: the name of the target in brackets."""
        return f"[{self.name}]" if self.name else ""

    @property
    def judged(self) -> str:
        """The id, without that suffix, of the item that fails if the job cannot be judged."""
        return JUDGED.format(kind=self.kind)


def jobs(config: pytest.Config) -> list[Job]:
    """Return the servers to check or to use in fixtures.

    Without options and ini keys, they are the servers of the configuration in the folder.

    Raises:
        pytest.UsageError: an option, an ini key or a configuration is invalid.
    """
    found = config.stash.get(JOBS, None)
    if found is None:
        try:
            several = [*_settings(config)]
            servers = [one for one in several if _has_server(one)]
            found = [_job(one, _golden(config, one)) for one in resolve.with_own_files(servers)]
            clients = [resolve.of_client(one) for one in several if one.client]
            found += [_client(one, alone=not servers) for one in clients]
            found += [_gateway(resolve.of_gateway(one)) for one in several if one.gateway]
            config.stash[JOBS] = found
        except (UserError, ValueError) as error:
            raise pytest.UsageError(safe(_OPTION.sub(r"--mcp-\1", str(error)))) from error
    return found


def _has_server(one: Settings) -> bool:
    """Return whether a server is judged; a URL beside the command of a gateway is the gateway's."""
    return bool(one.command or (one.url and not one.gateway) or not (one.client or one.gateway))


def base(config: pytest.Config) -> Path:
    """Return the folder to which paths in ini keys are relative."""
    return config.invocation_params.dir if config.inipath is None else config.inipath.parent


def _settings(config: pytest.Config) -> Iterator[Settings]:
    _refuse_lost_ini(config)
    own = layer(_options(config))
    command = _command(config, "server")
    others = {name: found for name in OTHERS if (found := _command(config, name))}
    usual = {"usual_baseline": Path(_shown(base(config) / FILE))}
    trusted = _is_typed(config, "trust-config")
    if not trusted:
        _refuse_risks(config, {**own, "command": command, **others})
    file = _named_file(config)
    served = bool(command) or "url" in own
    on = config.getoption("--mcp")
    if file is None and not served and (on or not others):
        file = files.present(base(config))
        if file is None and on:
            raise ConfigError(
                f"there is no {files.FILE} and no [tool.mcp-touchstone] in "
                f"{base(config)} for `--mcp`; `mcp-touchstone init` writes one"
            )
        if file is None:
            return
    names = list(given(config, "target"))
    if file is None:
        if names:
            raise ConfigError(
                f"--target {names[0]}: name the file that defines it with --mcp-config"
            )
        yield merged(usual, own, {"command": command, **others})
        return
    shown = Path(_shown(file))
    chosen: list[str | None] = [*(names or files.targets(shown))]
    for name in chosen or [None]:
        named = served or bool(others)
        known = trusted or _is_typed(config, "config")
        asked = files.ReadOptions(shown, name, os.environ, own, known, named, others=True)
        read = files.find(asked)
        both = merged(*([] if read is None else [read.layer]), own, others)
        if command:
            yield replace(both, command=command)
        elif read is not None:
            yield replace(both, origin=(*read.words, *words(merged(own))))


def _is_typed(config: pytest.Config, name: str) -> bool:
    """Return whether the user gave all values of an option: ``addopts`` of an ini file may too."""
    words = [*config.invocation_params.args, *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))]
    typed = sum(str(word).partition("=")[0] == f"--mcp-{name}" for word in words)
    values = config.getoption(f"--mcp-{name}")
    return typed >= (max(len(values), 1) if isinstance(values, list) else 1)


def _refuse_risks(config: pytest.Config, read: Layer) -> None:
    """Refuse ini keys, and options of ``addopts``, that only the user may set.

    Args:
        read: the values of the options and keys, by field.

    Raises:
        ConfigError: there are some.
    """
    folder = base(config)
    risks = {name: row.risk for name, row in ALL.items()}
    risks |= {"server": KEYS["command"].risk} | {name: KEYS[name].risk for name in OTHERS}
    for name, risk in risks.items():
        texts = [] if _is_typed(config, name) else given(config, name)
        field = "command" if name == "server" else field_of(name)
        value = texts and (texts[0] if name in {*FILES, "golden"} else read.get(field))
        if risk is not None and value and risk.has(value, folder, read):
            raise ConfigError(untrusted(f"{config.inipath}: mcp_{name.replace('-', '_')}"))


def _named_file(config: pytest.Config) -> Path | None:
    named = given(config, "config")
    if not named:
        return None
    option = config.getoption("--mcp-config")
    if not named[0]:
        raise ConfigError(f"{'mcp_config' if option is None else '--mcp-config'}: no file is named")
    return (base(config) if option is None else config.invocation_params.dir) / named[0]


def _refuse_lost_ini(config: pytest.Config) -> None:
    """Reject a program that pytest took for a test folder in its search for the ini file.

    Pytest searches near every word that is a path, before it knows our options.
    """
    here, command = config.invocation_params.dir, config.getoption("--mcp-server")
    read = config.inipath.parent if config.inipath else None
    named = config.getoption("inifilename")  # with -c pytest searches for no file
    if not command or named or not Path(command).exists() or read == here:
        return
    lost = next((name for name in INI_FILES if _configures(here / name)), "")
    if lost:
        raise ConfigError(
            f"--server {command}: pytest takes that for a test folder and reads no {lost} here; "
            f"write --server={command}"
        )


def _configures(path: Path) -> bool:
    try:
        text = InputFile(path).data().decode("utf-8", "replace")
    except InputError:
        return False  # there is none, or pytest itself will refuse it
    return bool(re.search(INI_FILES[path.name], text, re.MULTILINE))


def _options(config: pytest.Config) -> dict[str, Any]:
    """Read options and ini keys; an option replaces its key."""
    found: dict[str, Any] = {}
    for name, row in SETTINGS.items():
        texts = given(config, name)
        if texts and name not in FILES:
            read = [_read(config, name, text) for text in texts]
            field = field_of(name)
            found[field] = read if row.kind.is_repeatable else read[-1]
    baseline = given(config, "baseline")
    if baseline and not found.get("no_baseline"):
        option = config.getoption("--mcp-baseline")
        folder = config.invocation_params.dir if option else base(config)
        found["baseline"] = Path(_shown(folder / baseline[0]))
    return found


def _read(config: pytest.Config, name: str, text: str) -> Any:
    row = SETTINGS[name]
    if row.kind is OptionType.FLAG:
        return True
    try:
        return row.read(text)
    except ValueError as error:
        option = config.getoption(f"--mcp-{name}")
        source = f"--mcp-{name}" if option else f"mcp_{name.replace('-', '_')}"
        raise ConfigError(f"{source}: {error}") from error


def _command(config: pytest.Config, name: str) -> tuple[str, ...]:
    """Return the command of the server, client or gateway; empty if a configuration names it."""
    texts = given(config, name)
    if not texts:
        return ()
    source = f"mcp_{name}" if config.getoption(f"--mcp-{name}") is None else f"--mcp-{name}"
    text = texts[0]
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise ConfigError(f"{source}: {error}") from error
    if not words:
        raise ConfigError(f"{source}: the command is empty; is a variable not set?")
    return words


def _golden(config: pytest.Config, settings: Settings) -> Path | None:
    """Return the folder of the recording of a server; None if no folder is named."""
    found = given(config, "golden")
    if not found:
        if config.getoption("--mcp-golden-update"):
            raise ConfigError("--mcp-golden-update: name the folder with --mcp-golden DIR")
        return None
    named = config.getoption("--mcp-golden") is not None
    folder = config.invocation_params.dir if named else base(config)
    path = folder / found[0].replace("{target}", settings.name)
    if not path.is_dir():
        raise ConfigError(
            f"--mcp-golden {found[0]}: there is no such folder; `mcp-touchstone golden record "
            f"--folder {found[0]}` makes it"
        )
    return path


def _job(settings: Settings, golden: Path | None) -> Job:
    target = resolve.target(settings)
    choice = resolve.choice(settings)
    if choice.floor.profile:
        raise ConfigError("--fail-on profile: no test is about a client; `check` has that option")
    registry = load(settings.suite)
    choice.check(registry)
    book = resolve.book(settings)
    file = settings.configuration
    if golden is None:
        return Job(settings.name, target, choice, registry, book, configuration=file)
    from mcp_touchstone.golden.recorder import recorded_suite  # noqa: PLC0415  (only when used)

    suite = recorded_suite(golden) or settings.suite
    recorded = resolve.target(replace(settings, suite=suite))
    return Job(settings.name, target, choice, registry, book, golden, recorded, configuration=file)


def _client(settings: Settings, *, alone: bool) -> Job:
    """Return the job of a client; beside a server, the selection of rules is for that."""
    settings = settings if alone else replace(settings, select=())
    return _judged(CLIENT, settings, resolve.client_target(settings))


def _gateway(settings: Settings) -> Job:
    """Return the job of a gateway."""
    from mcp_touchstone.gateway import scene  # noqa: PLC0415  (only when used)

    return _judged(GATEWAY, settings, scene.way(settings).target)


def _judged(kind: str, settings: Settings, target: Target) -> Job:
    """Return the job of a client or a gateway, which is judged instead of a server."""
    choice, registry = resolve.choice(settings), load({CLIENT: CLIENTS, GATEWAY: GATEWAYS}[kind])
    choice.check(registry)
    return Job(
        settings.name,
        target,
        choice,
        registry,
        resolve.book(settings),
        kind=kind,
        settings=settings,
        configuration=settings.configuration,
    )


def _shown(path: Path) -> str:
    """Return a path relative to the working folder, if that is possible."""
    try:
        return os.path.relpath(path)
    except ValueError:  # another drive
        return str(path)
