"""Find and read configuration files, and turn them into a layer of settings.

Each function raises ``ConfigError`` if a file cannot be read, used or written; its message is one
line that says how to fix it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.config import toml_keys
from mcp_touchstone.config.client_files import (
    ConfiguredServer,
    Surroundings,
    UntrustedError,
    names,
    read,
)
from mcp_touchstone.config.settings import ConfigError, Layer, field_of
from mcp_touchstone.config.toml_keys import TABLE
from mcp_touchstone.gate import FILE as BASELINE
from mcp_touchstone.runtime.input_file import LARGEST_TOML, InputFile
from mcp_touchstone.runtime.members import Members
from mcp_touchstone.runtime.word_paths import names_file
from mcp_touchstone.transport.http_endpoint import keep

FILE: Final = "touchstone.toml"
PROJECT: Final = "pyproject.toml"
CURE: Final = "correct it, or name another with --config"
MISSING: Final = f"`mcp-touchstone init` writes a {FILE}"
_VSCODE: Final = ".vscode"


@dataclass(frozen=True, slots=True)
class TargetConfig:
    """The configuration of one target in a file.

    Attributes:
        layer: its settings; relative paths are resolved from the folder of the file.
        words: the command line options that select this target again.
    """

    path: Path
    layer: Layer
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The user's input from outside the file that affects how the file is read.

    Attributes:
        config: the file; None searches the working folder.
        target: name of the target; None selects the only one.
        environment: variables of the shell.
        own: what the user set beside it.
        trusted: whether all of the file may be used: the user named it, or said so.
        command: whether the file needs no server: the user named one, or only a client is judged.
        others: whether it needs no server if it names a client or a gateway.
    """

    config: Path | None
    target: str | None
    environment: Mapping[str, str]
    own: Layer = field(default_factory=dict)
    trusted: bool = True
    command: bool = False
    others: bool = False

    @property
    def given(self) -> frozenset[str]:
        """The names of variables and headers that the user set for the server."""
        return frozenset((*self.own.get("env", ()), *self.own.get("header", ())))


def find(asked: ReadOptions) -> TargetConfig | None:
    """Find and read the configuration; return None if there is none and none was named."""
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
    found = toml_keys.read(_table(path), str(path))
    name, table = toml_keys.choose(found, asked.target, str(path))
    folder = path.absolute().parent
    usual = BASELINE if len(found) == 1 else f"touchstone-baseline-{name}.toml"
    layer = {**toml_keys.layer(table, str(path)), "name": name}
    command = toml_keys.command(table)
    if "from" in table:
        _refuse_risks(path, {"from": table["from"]}, asked)
        source = folder / table["from"]
        given = {*asked.given, *layer.get("env", {}), *layer.get("header", {})}
        text = _text(Path(_shown(source)), f"correct `from` in {path}")
        try:
            taken = read(text, table.get("server"), _shown(source), _around(source, asked, given))
        except UntrustedError as error:
            raise ConfigError(f"{path}: {toml_keys.untrusted(str(error), path)}") from error
        command = taken.command
        layer = {
            "cwd": taken.cwd,
            "url": taken.url,
            **layer,
            "env": {**taken.env, **layer.get("env", {})},
            "header": {**_header(taken, name), **layer.get("header", {})},
        }
    others = {one: words for one in toml_keys.OTHERS if (words := toml_keys.command(table, one))}
    named = asked.command or (asked.others and others)
    if not command and not named and not layer.get("url"):
        other = "".join(f"; `mcp-touchstone {one}` judges its {one}" for one in others)
        raise ConfigError(
            f'{path}: it names no server; write command = ["program", "argument"]{other}'
        )
    layer |= {"command": command, **others}
    _refuse_risks(path, layer, asked)
    return _placed(path, layer, folder / usual, asked.target)


def _refuse_risks(path: Path, layer: Layer, asked: ReadOptions) -> None:
    """Refuse what only a file may have that the user trusts.

    Raises:
        ConfigError: the layer has some of it, and the user did not replace it.
    """
    if asked.trusted:
        return
    given = {name: value for name, value in layer.items() if name not in asked.own}
    for name in ("env", "header"):
        left = {one: value for one, value in layer.get(name, {}).items() if one not in asked.given}
        given |= {name: left} if left else {}
    risks = {key: row.risk for key, row in toml_keys.KEYS.items() if row.risk is not None}
    folder = path.absolute().parent
    found = [
        key
        for key, risk in risks.items()
        if (value := given.get(field_of(key))) and risk.has(value, folder, layer)
    ]
    if found:
        raise ConfigError(f"{path}: {toml_keys.untrusted(', '.join(found), path)}")


def present(folder: Path = Path()) -> Path | None:
    """Return the configuration file in a folder; None if there is none.

    Args:
        folder: the folder, by default the working folder.

    Raises:
        ConfigError: there are two, or pyproject.toml cannot be read.
    """
    own, project = folder / FILE, folder / PROJECT
    table = project.exists() and TABLE in _tool(_document(project), project)
    if own.exists() and table:
        raise ConfigError(f"{FILE} and [tool.{TABLE}] in {PROJECT} are both here; keep one")
    found = own if own.exists() else project if table else None
    if found is not None and found.is_symlink():
        raise ConfigError(f"{found}: it is a link; name the file with --config")
    return found


def targets(path: Path) -> tuple[str, ...]:
    """Return the names of the targets in a .toml file; empty if it defines a single unnamed one."""
    if path.suffix != ".toml":
        return ()
    return tuple(name for name in toml_keys.read(_table(path), str(path)) if name)


def servers(path: Path) -> tuple[str, ...]:
    """Return the names that ``--target`` accepts: targets of a .toml, servers of another file."""
    return targets(path) if path.suffix == ".toml" else names(_text(path), str(path))


def needs_no_trust(path: Path) -> bool:
    """Return whether all of a .toml file of one target is used without being named."""
    try:
        find(ReadOptions(path, None, {}, trusted=False))
    except ConfigError:
        return False
    return True


def may_write(path: Path, *, force: bool) -> None:
    """Check that a configuration may be written to a path.

    Args:
        force: whether an existing file may be replaced.

    Raises:
        ConfigError: the file exists, its folder does not, or pyproject.toml has a configuration.
    """
    if path.exists() and not force:
        raise ConfigError(f"{path} is there already; --force replaces it, --output names another")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"the folder {path.absolute().parent} does not exist; make it first")
    if path == Path(FILE) and not path.exists() and present() is not None:
        raise ConfigError(f"[tool.{TABLE}] is in {PROJECT} already; change it there")


def write(path: Path, text: str) -> None:
    """Write a configuration."""
    try:
        path.write_text(text, "utf-8", newline="\n")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}; name another") from error


def _client(path: Path, asked: ReadOptions) -> TargetConfig:
    taken = read(_text(path), asked.target, str(path), _around(path, asked, asked.given))
    folder = _workspace(path)
    layer = {
        "command": taken.command,
        "env": dict(taken.env),
        "cwd": taken.cwd,
        "url": taken.url,
        "header": _header(taken, asked.target),
        "name": asked.target or "",
    }
    return _placed(path, layer, folder / BASELINE, asked.target)


def _header(taken: ConfiguredServer, name: str | None) -> dict[str, str]:
    return {**taken.variables, **keep(name or "", taken.headers)}


def _placed(path: Path, layer: Layer, baseline: Path, target: str | None) -> TargetConfig:
    """Resolve relative paths from the folder of the baseline.

    They stay relative if that folder is the working folder.
    """
    folder = baseline.parent
    here = folder == Path.cwd()
    found = {name: value for name, value in layer.items() if value is not None}
    found["configuration"] = path
    found["usual_baseline"] = Path(baseline.name) if here else baseline
    if "cwd" in found and "{root}" not in found["cwd"]:
        found["cwd"] = str(folder / found["cwd"])
    elif "cwd" not in found and not here:
        found["cwd"] = str(folder)
    for name in ("baseline", "root_from", "ca_file", "config_template"):
        if name in found and not here:
            found[name] = folder / found[name]
    for name in ("command", *toml_keys.OTHERS):
        words = found.get(name)
        if words and not here and names_file(folder / words[0]):
            found[name] = (str(folder / words[0]), *words[1:])
    chosen = () if target is None else ("--target", target)
    return TargetConfig(path, found, ("--config", str(path), *chosen))


def _around(path: Path, asked: ReadOptions, given: Collection[str]) -> Surroundings:
    environment = asked.environment if asked.trusted else None
    return Surroundings(_workspace(path), Path.home(), environment, given)


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
    table = _tool(document, path).get(TABLE)
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: it has no [tool.{TABLE}]; write one, or name another file")
    return table


def _tool(document: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    return Members(document, str(path)).object("tool").value


def _document(path: Path) -> dict[str, Any]:
    return InputFile(path, CURE, MISSING).toml()


def _text(path: Path, cure: str = CURE) -> str:
    return InputFile(path, cure, MISSING if cure == CURE else cure, most=LARGEST_TOML).text()
