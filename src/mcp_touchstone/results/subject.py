"""What was judged, a server or a client, as reports show it. A pure value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.catalog.sdk import UNKNOWN, SdkIdentity
from mcp_touchstone.target.command_text import shown

if TYPE_CHECKING:
    from mcp_touchstone.target.target import Target

CHECK: Final = "check"
"""The command that judges a server which it starts or asks itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was judged.

    Attributes:
        kind: "server" or "client".
        reported: revision that it speaks -> the name, version and so on that it reports there.
        refused: revision -> the answer that came instead of a result, in words.
        asked: the revisions that were requested, oldest first; others are unknown.
        command: the words that start it; empty if it ran already.
        url: its address; empty on stdio.
        bundled: whether it is our reference server.
        rooted: whether its command names the throw-away root.
        sandbox: the method that isolated it; empty for none.
        sdk: what it is built on.
        startup: seconds to its first answer.
        stderr: end of its standard error, if there was trouble.
        excuse: the trouble, if that is no fault of it.
        silent: whether the trouble is that it did not answer in time.
        unbound: its tools without an observed effect on files.
        again: the words after ``mcp-touchstone`` that judge it again, the command first.
    """

    kind: str = "server"
    reported: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    url: str = ""
    bundled: bool = False
    rooted: bool = False
    sandbox: str = ""
    sdk: SdkIdentity = UNKNOWN
    startup: float = 0.0
    stderr: str = ""
    excuse: str = ""
    silent: bool = False
    unbound: tuple[str, ...] = ()
    again: tuple[str, ...] = (CHECK,)

    @classmethod
    def of(cls, target: "Target", **known: Any) -> "Subject":
        """Return a server under test, with what is known of it."""
        return cls(
            command=target.command,
            url=target.url,
            bundled=target.bundled,
            rooted=target.rooted,
            sandbox=str(target.method or ""),
            again=(CHECK, *target.words()),
            **known,
        )

    @property
    def revisions(self) -> tuple[str, ...]:
        """The revisions that it speaks."""
        return tuple(self.reported)

    @property
    def name(self) -> str:
        """Name and version that it reports, from its newest revision; empty for none."""
        for revision in reversed(rev.ALL):
            info = self.reported.get(revision, {})
            if info.get("name"):
                return f"{info.get('name')} {info.get('version', '')}".strip()
        return ""

    @property
    def shown(self) -> str:
        """The command as a person would type it."""
        return shown(self.command, self.url, bundled=self.bundled)

    @property
    def started(self) -> bool:
        """Whether we started it."""
        return bool(self.command)

    @property
    def checked(self) -> bool:
        """Whether `check` judged it, and not a command about recordings or clients."""
        return self.again[:1] == (CHECK,)

    @property
    def transport(self) -> Transport:
        """The transport under test."""
        return Transport.HTTP if self.url else Transport.STDIO
