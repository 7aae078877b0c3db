"""The SDK that a server is built on. Pure values; ``discovery.sdk`` finds them."""

import re
from dataclasses import dataclass, replace
from typing import Final

PYPI: Final = "pypi"
NPM: Final = "npm"
GO: Final = "go"
CRATES: Final = "crates.io"
MAVEN: Final = "maven"
NUGET: Final = "nuget"

LAYERS: Final = {
    PYPI: ("fastmcp", "mcp"),
    NPM: (
        "fastmcp",
        "@modelcontextprotocol/server",
        "@modelcontextprotocol/client",
        "@modelcontextprotocol/sdk",
    ),
    GO: ("github.com/mark3labs/mcp-go", "github.com/modelcontextprotocol/go-sdk"),
    CRATES: ("rust-mcp-sdk", "rmcp"),
    MAVEN: (
        "org.springframework.ai:spring-ai-mcp",
        "io.quarkiverse.mcp:quarkus-mcp-server-core",
        "io.modelcontextprotocol.sdk:mcp",
        "io.modelcontextprotocol.sdk:mcp-core",
    ),
    NUGET: (
        "ModelContextProtocol.AspNetCore",
        "ModelContextProtocol",
        "ModelContextProtocol.Core",
    ),
}
"""Registry -> its SDKs, each before those that it is built on."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package of a registry, and its version.

    Attributes:
        registry: a key of ``LAYERS``.
    """

    name: str
    version: str
    registry: str

    def __str__(self) -> str:
        """Return name and version."""
        return f"{self.name} {self.version}"

    @property
    def order(self) -> tuple[int, ...]:
        """Its version, for comparisons; of a range such as ``^1.2.0`` the first one."""
        return version(self.version.lstrip("^~"))


def version(text: str) -> tuple[int, ...]:
    """Return a version for comparisons; a pre-release comes before its release."""
    numbers, rest = re.match(r"v?((?:\d+(?:\.\d+)*)?)(.*)", text).groups()  # type: ignore[union-attr]
    parts = [int(part) for part in numbers.split(".") if part]
    final = not rest or rest.startswith((".post", "+"))
    return (*[*parts, 0, 0, 0, 0][:4], int(final))


FOR_SERVERS: Final = "@modelcontextprotocol/server"
FOR_CLIENTS: Final = "@modelcontextprotocol/client"
"""The SDKs for servers and for clients in TypeScript; a program may have both."""


@dataclass(frozen=True, slots=True)
class PackageOrigin:
    """The package that a server is started from.

    Attributes:
        kind: ``npm``, ``pypi``, ``image``, or ``files`` of the user.
        folder: where its files are; empty for an image.
        files: its files, relative to the folder; empty for all with code below it.
        seal: the digest that its registry gives it: npm's integrity, or that of an image.
    """

    kind: str
    name: str
    version: str
    folder: str
    files: tuple[str, ...] = ()
    seal: str = ""


@dataclass(frozen=True, slots=True)
class SdkIdentity:
    """The SDKs of a server.

    Attributes:
        sdks: the SDKs, each before those that it is built on; empty if unknown.
        packages: its other packages that advisories are about.
        hint: the SDK that error texts look like; proves nothing, empty if there is none.
        needless: whether it makes no difference: the server is ours.
        origin: the package that it is started from; None if that is unknown.
    """

    sdks: tuple[Package, ...] = ()
    hint: str = ""
    needless: bool = False
    packages: tuple[Package, ...] = ()
    origin: PackageOrigin | None = None

    @property
    def of_client(self) -> "SdkIdentity":
        """The same of a client, which may have the SDK for servers beside its own."""
        return self._without(FOR_SERVERS)

    @property
    def of_server(self) -> "SdkIdentity":
        """The same of a server, which may have the SDK for clients beside its own."""
        return self._without(FOR_CLIENTS)

    def _without(self, name: str) -> "SdkIdentity":
        own = tuple(one for one in self.sdks if one.name != name)
        return replace(self, sdks=own or self.sdks)

    def __str__(self) -> str:
        """Return it as text: names and versions, or that it is unknown."""
        if self.sdks:
            return " on ".join(map(str, self.sdks))
        return f"unknown (its errors look like those of {self.hint})" if self.hint else "unknown"


UNKNOWN: Final = SdkIdentity()
