"""Configuration files: find them, read them, make of them what the command line would have said."""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcp_touchstone import config
from mcp_touchstone.baseline import FILE as BASELINE
from mcp_touchstone.config import TABLE, ConfigError, Settings
from mcp_touchstone.sources import Surroundings, names, read

FILE: Final = "touchstone.toml"
PROJECT: Final = "pyproject.toml"
_VSCODE: Final = ".vscode"


@dataclass(frozen=True, slots=True)
class Found:
    """What was configured for one target.

    Attributes:
        path: the file it stands in.
        settings: what it says; ``env``, ``cwd`` and ``baseline`` as they are to be used.
        command: how the server is started; empty where the file does not say.
        baseline: where its baseline lies unless another is named.
        words: the options that name it again.
    """

    path: Path
    settings: Settings
    command: tuple[str, ...]
    baseline: Path
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user said on the command line that a configuration depends on.

    Attributes:
        config: the file; None looks for one in the working folder.
        target: the target; None takes the only one.
        environment: variables of the shell.
        given: variables of the server that the user set.
        command: whether the user named a command, so that none is needed.
    """

    config: Path | None
    target: str | None
    environment: Mapping[str, str]
    given: Collection[str] = ()
    command: bool = False


def find(asked: Asked) -> Found | None:
    """Find and read the configuration; None where there is none and none was named.

    Raises:
        ConfigError: it cannot be read or used; the message is one line that says how to mend it.
    """
    path = present() if asked.config is None else asked.config
    if path is None:
        if asked.target is not None:
            raise ConfigError(
                f"--target {asked.target}: there is no {FILE} here and no [tool.{TABLE}] in "
                f"{PROJECT}; name a file with --config"
            )
        return None
    if path.suffix != ".toml":
        return _client(path, asked)
    found = config.read(_table(path), str(path))
    name, settings = config.choose(found, asked.target, str(path))
    folder = path.absolute().parent
    usual = BASELINE if len(found) == 1 else f"touchstone-baseline-{name}.toml"
    command = config.command(settings)
    if "from" in settings:
        source = folder / settings["from"]
        given = {*asked.given, *settings.get("env", {})}
        taken = read(
            _text(source, f"{path}: from = "),
            settings.get("server"),
            _shown(source),
            _around(source, asked, given),
        )
        command = taken.command
        settings = {"cwd": taken.cwd, **settings, "env": {**taken.env, **settings.get("env", {})}}
    if not command and not asked.command:
        raise ConfigError(f'{path}: it names no server; write command = ["program", "argument"]')
    return _placed(path, settings, command, folder / usual, asked.target)


def present(folder: Path = Path()) -> Path | None:
    """Give the file in a folder, by default the working one; None where there is none.

    Raises:
        ConfigError: there are two.
    """
    own, project = folder / FILE, folder / PROJECT
    table = project.is_file() and TABLE in _document(project).get("tool", {})
    if own.is_file() and table:
        raise ConfigError(f"{FILE} and [tool.{TABLE}] in {PROJECT} are both here; keep one")
    return own if own.is_file() else project if table else None


def targets(path: Path) -> tuple[str, ...]:
    """Give the names of the targets of a .toml; none where it has one without a name.

    Raises:
        ConfigError: it cannot be read or used.
    """
    if path.suffix != ".toml":
        return ()
    return tuple(name for name in config.read(_table(path), str(path)) if name)


def servers(path: Path) -> tuple[str, ...]:
    """Give what can be named with ``--target``: targets of a .toml, servers of a client's file.

    Raises:
        ConfigError: it cannot be read or used.
    """
    return targets(path) if path.suffix == ".toml" else names(_text(path), str(path))


def may_write(path: Path, *, force: bool) -> None:
    """Refuse to replace a configuration unless that was asked for, or to write a second one.

    Raises:
        ConfigError: naming the file.
    """
    if path.exists() and not force:
        raise ConfigError(f"{path} is there already; --force replaces it, --output names another")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"the folder {path.absolute().parent} does not exist; make it first")
    if path == Path(FILE) and not path.exists() and present() is not None:
        raise ConfigError(f"[tool.{TABLE}] is in {PROJECT} already; change it there")


def write(path: Path, text: str) -> None:
    """Write a configuration.

    Raises:
        ConfigError: the file cannot be written.
    """
    try:
        path.write_text(text, "utf-8", newline="\n")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}; name another") from error


def _client(path: Path, asked: Asked) -> Found:
    taken = read(_text(path), asked.target, str(path), _around(path, asked, asked.given))
    folder = _workspace(path)
    settings: Settings = {"env": dict(taken.env), "cwd": taken.cwd}
    return _placed(path, settings, taken.command, folder / BASELINE, asked.target)


def _placed(
    path: Path,
    settings: Settings,
    command: tuple[str, ...],
    baseline: Path,
    target: str | None,
) -> Found:
    """Make paths of a file hold from the working folder."""
    settings = {key: value for key, value in settings.items() if value is not None}
    folder = baseline.parent
    here = folder == Path.cwd()
    if "cwd" in settings and "{root}" not in settings["cwd"]:
        settings["cwd"] = str(folder / settings["cwd"])
    elif "cwd" not in settings and not here:
        settings["cwd"] = str(folder)
    if "baseline" in settings and not here:
        settings["baseline"] = str(folder / settings["baseline"])
    if command and not here and (folder / command[0]).is_file():
        command = (str(folder / command[0]), *command[1:])
    words: tuple[str, ...] = ("--config", str(path))
    words += () if target is None else ("--target", target)
    return Found(path, settings, command, Path(baseline.name) if here else baseline, words)


def _around(path: Path, asked: Asked, given: Collection[str]) -> Surroundings:
    return Surroundings(_workspace(path), Path.home(), asked.environment, given)


def _workspace(path: Path) -> Path:
    folder = path.absolute().parent
    return folder.parent if folder.name == _VSCODE else folder


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _table(path: Path) -> Mapping[str, Any]:
    document = _document(path)
    if path.name != PROJECT:
        return document
    table = document.get("tool", {}).get(TABLE)
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: it has no [tool.{TABLE}]; write one, or name another file")
    return table


def _document(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: it is no TOML: {error}; mend it there") from error


def _text(path: Path, named: str = "") -> str:
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        mend = "name another" if named else f"`mcp-touchstone init` writes a {FILE}"
        raise ConfigError(f"{named}{_shown(path)}: there is no such file; {mend}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: it is no UTF-8 text; save it as such") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; name a file") from error
