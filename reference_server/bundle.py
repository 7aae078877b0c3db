"""The table of the features that the bundled server offers.

A feature is a function that takes the surface and adds itself. Each names the part that does the
work. A part is imported at its first request, so the server answers its first message as fast as a
bare loop. The packages beside this table are features without which the server still works.
"""

from __future__ import annotations

import os
from contextlib import suppress

from .protocol.errors import quote
from .protocol.identity import instructions
from .protocol.legacy import ROOTS_CHANGED
from .protocol.revisions import ALL, LEGACY, MODERN
from .protocol.toolbox import WITH_TASKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .protocol.calls import Call
    from .protocol.messages import Params
    from .surface import Feature, Surface

_AFTER_READING = 3
"""Index in the instructions, after the sentences about reading."""


def _family(surface: Surface, name: str) -> None:
    surface.toolbox.later(lambda: surface.module(name).install(surface))


def tools(surface: Surface) -> None:
    toolbox, settings = surface.toolbox, surface.settings
    _family(surface, "tools.files")
    surface.methods.instructions = instructions(
        roots=_names(settings.roots), read_only=settings.read_only
    )
    toolbox.page_size = settings.page_size


def patching(surface: Surface) -> None:
    _family(surface, "features.patching.patches")
    if not surface.settings.read_only:
        surface.methods.instructions.append(
            "file_apply_patch_only changes a file with a unified diff and the hash of the text "
            "that you read."
        )


def text_editor(surface: Surface) -> None:
    _family(surface, "features.text_editor.editor")
    if surface.settings.text_editor:
        surface.methods.instructions.insert(
            _AFTER_READING,
            "List a directory with text_editor."
            if surface.settings.read_only
            else "List a directory and edit with text_editor (view, create, str_replace, insert, "
            "undo_edit).",
        )
        surface.prompts.append(
            lambda: surface.module("features.text_editor.prompts").offered(surface)
        )


def cedarscript(surface: Surface) -> None:
    _family(surface, "features.cedarscript.tools")
    if not surface.settings.read_only:
        surface.methods.instructions.append(
            "apply_cedarscript, if it is listed, shows a preview unless dry_run is false."
        )


def _names(roots: Sequence[str]) -> Sequence[str]:
    if len(roots) == 1:
        return roots
    from .workspace.paths import names_of  # noqa: PLC0415 - most servers have one root

    return names_of(roots)


def resources(surface: Surface) -> None:
    methods, later = surface.methods, surface.later
    methods.capability("resources", {}, ALL)
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


def subscriptions(surface: Surface) -> None:
    methods, later = surface.methods, surface.later
    methods.capability("tools", {"listChanged": True}, ALL)
    methods.capability("resources", {"subscribe": True, "listChanged": True}, ALL)
    for name in ("subscribe", "unsubscribe"):
        handler = later("features.subscriptions", name)
        methods.request(f"resources/{name}", LEGACY, handler, slow=True)
    listen = later("features.subscriptions", "listen")
    methods.request("subscriptions/listen", MODERN, listen, slow=True, endless=True)

    def listed(call: Call, paths: frozenset[str]) -> None:
        surface.part("features.subscriptions").listed(call, paths)

    surface.resources_listed = listed
    surface.toolbox.changed = lambda: surface.part("features.subscriptions").list_changed("tools")


def tasks(surface: Surface) -> None:
    """Allow some tools to be called as tasks; in 2026-07-28, this is an extension."""
    _family(surface, "features.digest")
    methods, only = surface.methods, (WITH_TASKS,)
    declared: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    methods.capability("tasks", declared, only)
    methods.request("tools/call", only, surface.later("features.tasks", "call_tool"), slow=True)
    methods.request("tasks/get", only, surface.later("features.tasks", "get"))
    methods.request("tasks/result", only, surface.later("features.tasks", "result"))
    methods.request("tasks/list", only, surface.later("features.tasks", "list_tasks"))
    methods.request("tasks/cancel", only, surface.later("features.tasks", "cancel"))


def client_log(surface: Surface) -> None:
    """Send log messages to clients that want them.

    New servers should not adopt deprecated features (2026-07-28 deprecated). In 2026-07-28, this
    one is therefore offered only if the settings allow it.
    """
    revisions = ALL if surface.settings.deprecated else LEGACY
    surface.methods.capability("logging", {}, revisions)

    def send(call: Call, level: str, data: Any, logger: str | None) -> None:
        if call.revision in revisions:
            surface.part("features.client_log").write(call, level, data, logger)

    surface.methods.log_to_client = send
    surface.methods.request(
        "logging/setLevel", LEGACY, surface.later("features.client_log", "set_level")
    )


def prompts(surface: Surface) -> None:
    if surface.prompts:
        methods, later = surface.methods, surface.later
        # No listChanged, because the list depends on settings alone.
        methods.capability("prompts", {}, ALL)
        methods.request("prompts/list", ALL, later("content.prompts", "list"), cacheable=True)
        methods.request("prompts/get", ALL, later("content.prompts", "get"), slow=True)


def completion(surface: Surface) -> None:
    """Complete prompt arguments and template variables; 2024-11-05 has no capability for this."""
    methods = surface.methods
    methods.capability("completions", {}, ALL[1:])
    methods.request(
        "completion/complete", ALL, surface.later("features.completion", "complete"), slow=True
    )


def roots(surface: Surface) -> None:
    """Restrict the workspace to the client's roots; ``legacy`` requests the first list too."""

    def changed(_params: Params) -> None:
        surface.part("features.roots").refresh()

    surface.methods.notification(ROOTS_CHANGED, LEGACY, changed)


def recovery(surface: Surface) -> None:
    """Recover at the start the writes that a killed server has not finished."""

    def recover() -> None:
        with suppress(OSError):
            # pathlib costs a third of the start-up
            if any(name.endswith(".json") for name in os.listdir(surface.settings.state_folder)):  # noqa: PTH208
                _ = surface.workspace

    if not surface.settings.read_only:
        surface.at_start(recover)


ALL_FEATURES = (
    recovery,
    tools,
    patching,
    text_editor,
    cedarscript,
    resources,
    subscriptions,
    tasks,
    prompts,
    completion,
    client_log,
    roots,
)


GROUP = "mcp_touchstone.features"
"""Group of the entry points of features in other packages."""


EXTENSIONS = ("skills", "apps")
"""Modules in ``features`` that are offered only if they are named: extensions of the protocol."""


def named(names: Sequence[str]) -> list[Feature]:
    """Load features of this package, and from the entry points of installed packages.

    Raises:
        LookupError: An entry point is missing or cannot be loaded; the message names it.
    """
    from importlib import import_module  # noqa: PLC0415 - as below
    from importlib.metadata import entry_points  # noqa: PLC0415 - takes longer than the server

    others = set(names) - set(EXTENSIONS)
    found = {one.name: one for one in entry_points(group=GROUP)} if others else {}
    loaded: list[Feature] = []
    for name in names:
        if name in EXTENSIONS:
            loaded.append(import_module(f"{__package__}.features.{name}").feature)
            continue
        if name not in found:
            known = ", ".join(sorted([*EXTENSIONS, *found]))
            raise LookupError(f"{quote(name)}: no such entry point is installed ({known})")
        try:
            loaded.append(found[name].load())
        except Exception as error:  # noqa: BLE001 - a module may raise anything
            raise LookupError(f"{quote(name)} does not load ({type(error).__name__})") from None
    return loaded
