"""The SDK that a server is built on. Pure values; ``discovery.sdk`` finds them."""

from dataclasses import dataclass
from typing import Final

PYPI: Final = "pypi"
NPM: Final = "npm"

LAYERS: Final = {
    PYPI: ("fastmcp", "mcp"),
    NPM: ("fastmcp", "@modelcontextprotocol/server", "@modelcontextprotocol/sdk"),
}
"""Registry -> its SDKs, each before those that it is built on."""


@dataclass(frozen=True, slots=True)
class Sdk:
    """An SDK and its version.

    Attributes:
        registry: ``pypi`` or ``npm``.
    """

    name: str
    version: str
    registry: str

    def __str__(self) -> str:
        """Return name and version."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class SdkIdentity:
    """The SDKs of a server.

    Attributes:
        sdks: the SDKs, each before those that it is built on; empty if unknown.
        hint: the SDK that error texts look like; proves nothing, empty if there is none.
        needless: whether it makes no difference: the server is ours.
    """

    sdks: tuple[Sdk, ...] = ()
    hint: str = ""
    needless: bool = False

    def __str__(self) -> str:
        """Return it as text: names and versions, or that it is unknown."""
        if self.sdks:
            return " on ".join(map(str, self.sdks))
        return f"unknown (its errors look like those of {self.hint})" if self.hint else "unknown"


UNKNOWN: Final = SdkIdentity()
