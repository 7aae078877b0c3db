"""One server of a fleet: the package, image, command or URL, and how it is started."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from mcp_touchstone.catalog.errors import InputError

ROOT: Final = "{root}"
"""Placeholder for the throw-away folder of a server, as in ``check``."""


class ListError(InputError):
    """A list cannot be used; the message names the file and the place."""


class RegistryType(StrEnum):
    """The source of a server."""

    NPM = "npm"
    PYPI = "pypi"
    OCI = "oci"
    REMOTE = "remote"
    COMMAND = "command"


class Start(StrEnum):
    """The result of starting a server."""

    STARTED = "started"
    NOT_FOUND = "not-found"
    INSTALL_ERROR = "install-error"
    NEEDS_CONFIG = "needs-config"
    NEEDS_NETWORK = "needs-network"
    USAGE = "usage"
    CRASH = "crash"
    SILENT_EXIT = "silent-exit"
    HANG = "hang"
    UNSUPPORTED = "unsupported"
    OPTED_OUT = "opted-out"
    HARNESS = "harness"


@dataclass(frozen=True, slots=True)
class Trouble:
    """A reason why a server is not judged, with the line that shows it."""

    kind: Start
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedServer:
    """One server of a list.

    Attributes:
        package: name of its package; empty without one.
        version: version of the package; empty for the newest.
        script: the program of the package; empty for the usual one.
        command: program and arguments, if it is no package.
        args: arguments after the program of the package.
        cwd: its working folder; None for a throw-away one.
        prefix: folder where its package is installed already; empty to install it.
        trouble: why it cannot be started, if that is known from the list.
        ignored: words of a record that have no effect here: options of a launcher.
        described: name, version and title in its registry record, as published.
    """

    name: str
    registry: RegistryType
    package: str = ""
    version: str = ""
    script: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    cwd: str | None = None
    prefix: str = ""
    trouble: Trouble | None = None
    ignored: tuple[str, ...] = ()
    described: Mapping[str, str] = field(default_factory=dict)
    where: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        """The identity of the server in results: two entries with one key are the same."""
        if self.registry is RegistryType.COMMAND:
            return f"{self.registry}:{self.name}"
        text = self.url or self.spec("@")
        return " ".join(
            [f"{self.registry}:{text}", *([shlex.join(self.args)] if self.args else ())]
        )

    @property
    def host(self) -> str:
        """The host of its URL in lower case; empty without one."""
        try:
            return urlsplit(self.url).hostname or ""
        except ValueError:
            return ""

    @property
    def plain(self) -> str:
        """The name of its package without extras."""
        return self.package.partition("[")[0]

    def spec(self, joint: str) -> str:
        """Return package and version as a package manager reads them."""
        return f"{self.package}{joint}{self.version}" if self.version else self.package

    @property
    def launch(self) -> tuple[str, ...]:
        """The command with which a client would start it."""
        if self.registry is RegistryType.NPM:
            named = ("-p", self.spec("@"), self.script) if self.script else (self.spec("@"),)
            return ("npx", "-y", *named, *self.args)
        if self.registry is RegistryType.PYPI:
            return ("uvx", "--from", self.spec("=="), self.script or self.plain, *self.args)
        if self.registry is RegistryType.OCI:
            variables = [word for name in self.env for word in ("-e", name)]
            return ("docker", "run", "-i", "--rm", *variables, self.spec(":"), *self.args)
        return self.command


def split(text: str, kind: str) -> tuple[str, str]:
    """Split package and version: ``@scope/name@1.0``, ``name==1.0``, ``image:tag``."""
    if kind == "npm":
        name, _, version = text[1:].partition("@")
        return text[:1] + name, "" if version == "latest" else version
    if kind == "pypi":
        name, _, version = text.partition("==" if "==" in text else "@")
        return name.strip(), "" if version == "latest" else version.strip()
    name, colon, version = text.rpartition(":")
    return (name, version) if colon and "/" not in version else (text, "")


PACKAGES: Final = (RegistryType.NPM, RegistryType.PYPI, RegistryType.OCI)


_NAMES: Final = {
    RegistryType.NPM: r"(@[\w~-][\w.~-]*/)?[\w~-][\w.~-]*",
    RegistryType.PYPI: r"[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?(\[[\w,.-]*\])?",
    RegistryType.OCI: r"[A-Za-z0-9][\w.-]*(:[0-9]+(?=/))?(/[\w.-]+)*(@sha256)?",
}
"""Names of packages and images as registries have them: no path, no URL, no repository."""

_VERSION: Final = re.compile(r"([\^~]?\w[\w.!+*-]*)?", re.ASCII)
_ARCHIVE: Final = re.compile(r"\.(tgz|tar|tar\.\w+|zip|whl)(@|$)", re.IGNORECASE)
_TRANSPORTS: Final = re.compile("(dir|oci|docker|containers|ostree|sif|tarball)(-[a-z]+)?")
"""Words that podman reads as another source than a registry, before a colon."""

_NO_WORD: Final = re.compile("[\0\ud800-\udfff]")


def refusal(entry: ListedServer) -> str:
    """Return why the words of an entry cannot be used, or would be misread; empty if neither."""
    given = (*entry.command, *entry.args, *entry.env, *entry.env.values(), entry.cwd or "")
    for word in given:
        if _NO_WORD.search(word):
            return f"{word!r} holds a character that no command can hold"
    words = {"package": entry.package, "version": entry.version, "program": entry.script}
    for what, word in words.items() if entry.registry in PACKAGES else ():
        if word.startswith("-") or not word.isprintable() or re.search(r"\s", word):
            return f"the {what} {word!r} begins with `-`, or holds a blank or a control character"
    name, version = entry.package, entry.version
    if entry.registry in PACKAGES and (
        not re.fullmatch(_NAMES[entry.registry], name, re.ASCII)
        or not _VERSION.fullmatch(version)
        or _ARCHIVE.search(f"{name}@{version}")
        or (entry.registry is RegistryType.OCI and version and _TRANSPORTS.fullmatch(name))
    ):
        return f"{entry.spec('@')!r} is no name and version of a package in a registry"
    return ""


def unless_refused(entry: ListedServer) -> ListedServer:
    """Return an entry; with a trouble if its words cannot be used."""
    why = refusal(entry)
    return replace(entry, trouble=Trouble(Start.UNSUPPORTED, why)) if why else entry
