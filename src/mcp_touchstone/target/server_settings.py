"""The settings that say how one server is started and what may be used of it. Facts."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mcp_touchstone.bindings.declared import Declaration
    from mcp_touchstone.catalog.sdk import Sdk
    from mcp_touchstone.target.promises import PromiseTerms

STARTUP: Final = 60.0
"""Limit in seconds for the first answer of a server; cold starts of ten and more are common."""

Arguments = Mapping[str, Any] | None
"""Arguments of a tool or prompt; None to have them generated."""


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """How one server is started, and what the user says about it.

    Attributes:
        command: program and arguments; ``{root}`` in them is replaced by the throw-away root; empty
            for a running server.
        bundled: whether this is our own reference server.
        env: variables added to ours; a value may contain ``{root}``.
        cwd: working folder, by default the user's; may contain ``{root}``.
        root_from: a folder whose content is copied into each root; None for none.
        world: the parent folder of the roots; None for the default.
        offline: start the server without a network.
        sandbox: ``auto``, ``unshare``, ``bwrap`` or ``off``. Empty selects ``auto`` if tools that
            may write are called, and ``off`` otherwise.
        online: whether it can use the machine's network in a sandbox.
        url: its URL if it speaks HTTP, empty on stdio; ``{port}`` in it and in the command is
            replaced.
        header: header of each HTTP request -> variable of our environment with its value.
        ca_file: certificates to accept beside those of the system; None for none.
        intrusive: whether malformed and heavy traffic may go to a server that runs on another
            machine.
        rate: greatest number of HTTP requests a second; 0 for the default.
        sdk: its SDK, as the user names it; None to look for it.
        timeout: limit for the first answer, in seconds.
        call: tools that may be called, with arguments that work.
        prompt: prompts that can be rendered, with arguments that work.
        resource: URIs that can be read.
        bindings: effects of its tools on files, as declared by the user.
        promise: guarantee, beside those that every server with a root gives -> its terms.
        origin: words of a command line that select it, without values of a configuration; empty to
            list its settings instead.
    """

    command: tuple[str, ...] = ()
    bundled: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    root_from: Path | None = None
    world: Path | None = None
    offline: bool = False
    sandbox: str = ""
    online: bool = False
    url: str = ""
    header: Mapping[str, str] = field(default_factory=dict)
    ca_file: Path | None = None
    intrusive: bool = False
    rate: int = 0
    sdk: "Sdk | None" = None
    timeout: float = STARTUP
    call: tuple[tuple[str, Arguments], ...] = ()
    prompt: tuple[tuple[str, Arguments], ...] = ()
    resource: tuple[str, ...] = ()
    bindings: "tuple[Declaration, ...]" = ()
    promise: "Mapping[str, PromiseTerms]" = field(default_factory=dict)
    origin: tuple[str, ...] = ()


def with_arguments(text: str) -> tuple[str, Arguments]:
    """Parse ``NAME={"json": "arguments"}``, or a name alone.

    Raises:
        ValueError: the text after the name is not a JSON object.
    """
    name, equals, rest = text.partition("=")
    if not equals:
        return text, None
    try:
        found = json.loads(rest)
    except ValueError:
        found = None
    if not name or not isinstance(found, dict):
        raise ValueError(f"""{text}: write NAME='{{"argument": "value"}}', or NAME alone""")
    return name, found
