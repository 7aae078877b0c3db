"""What the bundled server offers, in one light table.

Nothing here does the work: each line names the part that does, and the part is imported when a
client first asks for it. So the server answers its first message as fast as a bare loop.
"""

from __future__ import annotations

import os

from .protocol.legacy import ROOTS_CHANGED
from .protocol.revisions import ALL, LEGACY, MODERN
from .tools.toolbox import WITH_TASKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .protocol.messages import Params
    from .surface import Surface

FAMILIES = ("tools.files", "tools.patches", "tools.editor", "cedarscript", "tools.digest")
"""Modules with tools, in the order ``tools/list`` shows them; each has ``install(surface)``."""


def tools(surface: Surface) -> None:
    """Offer the tools of every family."""
    toolbox = surface.toolbox
    for name in FAMILIES:
        toolbox.later(lambda name=name: surface.module(name).install(surface))  # type: ignore[misc]
    toolbox.page_size = surface.settings.page_size
    toolbox.changed = lambda: surface.part("content.subscriptions").tools_changed()
    surface.methods.capability("tools", {"listChanged": True}, ALL)


def resources(surface: Surface) -> None:
    """Offer the files below the roots as resources."""
    methods, later = surface.methods, surface.later
    methods.capability("resources", {"subscribe": True, "listChanged": True}, ALL)
    methods.request(
        "resources/list",
        ALL,
        later("content.resources", "list_resources"),
        slow=True,
        cacheable=True,
    )
    methods.request(
        "resources/read", ALL, later("content.resources", "read"), slow=True, cacheable=True
    )
    templates = later("content.resources", "list_templates")
    methods.request("resources/templates/list", ALL, templates, cacheable=True)
    subscribe, unsubscribe = (
        later("content.subscriptions", name) for name in ("subscribe", "unsubscribe")
    )
    methods.request("resources/subscribe", LEGACY, subscribe, slow=True)
    methods.request("resources/unsubscribe", LEGACY, unsubscribe, slow=True)


def subscriptions(surface: Surface) -> None:
    """Tell of changes on streams, where there is no session to tell them."""
    listen = surface.later("content.subscriptions", "listen")
    surface.methods.request("subscriptions/listen", MODERN, listen, slow=True, endless=True)


def tasks(surface: Surface) -> None:
    """Let tools that say so be called as tasks; 2026-07-28 has moved this into an extension."""
    methods, only = surface.methods, (WITH_TASKS,)
    declared: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    methods.capability("tasks", declared, only)
    methods.request("tools/call", only, surface.later("tools.tasks", "call_tool"), slow=True)
    methods.request("tasks/get", only, surface.later("tools.tasks", "get"))
    methods.request("tasks/result", only, surface.later("tools.tasks", "result"))
    methods.request("tasks/list", only, surface.later("tools.tasks", "list_tasks"))
    methods.request("tasks/cancel", only, surface.later("tools.tasks", "cancel"))


def client_log(surface: Surface) -> None:
    """Send log messages to clients that want them.

    A new server does not adopt what is deprecated (2026-07-28 deprecated), unless it is told to.
    """
    revisions = ALL if surface.settings.deprecated else LEGACY
    surface.methods.capability("logging", {}, revisions)
    surface.methods.request(
        "logging/setLevel", LEGACY, surface.later("client.client_log", "set_level")
    )


def prompts(surface: Surface) -> None:
    """Offer the prompts; they are about the text editor, so they go with it."""
    if surface.settings.text_editor:
        methods, later = surface.methods, surface.later
        # No listChanged: the list depends on settings alone.
        methods.capability("prompts", {}, ALL)
        methods.request("prompts/list", ALL, later("content.prompts", "list"), cacheable=True)
        methods.request("prompts/get", ALL, later("content.prompts", "get"), slow=True)


def completion(surface: Surface) -> None:
    """Complete prompt arguments and template variables; 2024-11-05 has no capability for it."""
    methods = surface.methods
    methods.capability("completions", {}, ALL[1:])
    methods.request(
        "completion/complete", ALL, surface.later("content.completion", "complete"), slow=True
    )


def roots(surface: Surface) -> None:
    """Stay within the client's roots; ``legacy`` asks for the first list this way as well."""

    def changed(_params: Params) -> None:
        surface.part("client.roots").refresh()

    surface.methods.notification(ROOTS_CHANGED, LEGACY, changed)


def recovery(surface: Surface) -> None:
    """Finish at the start what a server that was killed has left half done."""

    def recover() -> None:
        for root in surface.settings.roots:
            try:
                names = os.listdir(root)  # noqa: PTH208 - pathlib costs a third of the start-up
            except OSError:
                continue
            if any(name.startswith(".mcp-edit-") for name in names):
                _ = surface.workspace

    if not surface.settings.read_only:
        surface.at_start(recover)


ALL_FEATURES = (
    recovery,
    tools,
    resources,
    subscriptions,
    tasks,
    prompts,
    completion,
    client_log,
    roots,
)
