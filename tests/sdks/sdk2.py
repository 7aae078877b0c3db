"""The tour with the official Python SDK 2.x: sessions with a handshake, and 2026-07-28."""

from __future__ import annotations

import asyncio
import warnings
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp import Client as SdkClient
from mcp import MCPError, StdioServerParameters
from mcp.client import session as sdk_session
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.uri_template import UriTemplate
from pydantic import TypeAdapter

from tests.sdks.session import HANDSHAKES, MODERN, Client, RefusedError, Wire, served
from tests.sdks.tour import main

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from pathlib import Path

    from pydantic import BaseModel

_REFS = TypeAdapter(types.PromptReference | types.ResourceTemplateReference)

_TASKS = {
    "tools/call": (types.CallToolRequest, types.CreateTaskResult),
    "tasks/get": (types.GetTaskRequest, types.GetTaskResult),
    "tasks/result": (types.GetTaskPayloadRequest, types.CallToolResult),
    "tasks/list": (types.ListTasksRequest, types.ListTasksResult),
    "tasks/cancel": (types.CancelTaskRequest, types.CancelTaskResult),
}
"""The types of tasks this SDK still has, for requests and results."""


def wire(model: BaseModel) -> Wire:
    """Give an object as it is on the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Sdk2:
    """A connection of the SDK; see ``session.Session``."""

    def __init__(self, connection: SdkClient, client: Client) -> None:
        self._connection = connection
        self._client = client
        self._is_modern = connection.protocol_version == MODERN

    async def opening(self) -> Wire:
        connection = self._connection
        return {
            "protocolVersion": connection.protocol_version,
            "capabilities": wire(connection.server_capabilities),
            "serverInfo": wire(connection.server_info) if connection.server_info else None,
            "instructions": connection.instructions,
        }

    async def alive(self) -> bool:
        if self._is_modern:
            return MODERN in (await self._connection.session.discover()).supported_versions
        return await asking(self._connection.send_ping()) is not None

    async def page(self, what: str, cursor: str | None = None) -> Wire:
        return await asking(getattr(self._connection, f"list_{what}")(cursor=cursor))

    async def call(self, name: str, arguments: Wire, *, with_progress: bool = False) -> Wire:
        callback = self._progress if with_progress else None
        return await asking(self._connection.call_tool(name, arguments, progress_callback=callback))

    async def call_and_cancel(self, name: str, arguments: Wire, when: asyncio.Event) -> bool:
        answered = False
        with anyio.CancelScope() as scope:

            async def cancel() -> None:
                await when.wait()
                scope.cancel()

            canceller = asyncio.create_task(cancel())
            await self.call(name, arguments, with_progress=True)
            answered = True
        await canceller
        return answered

    async def read(self, uri: str) -> Wire:
        return await asking(self._connection.read_resource(uri))

    def expand(self, template: str, values: dict[str, str]) -> str:
        return UriTemplate.parse(template).expand(values)

    async def prompt(self, name: str, arguments: dict[str, str]) -> Wire:
        return await asking(self._connection.get_prompt(name, arguments))

    async def complete(
        self, ref: Wire, name: str, typed: str, chosen: dict[str, str] | None = None
    ) -> Wire:
        argument = {"name": name, "value": typed}
        return await asking(self._connection.complete(_REFS.validate_python(ref), argument, chosen))

    async def set_level(self, level: str) -> None:
        if not self._is_modern:
            await self._connection.set_logging_level(level)

    async def roots_changed(self) -> None:
        await self._connection.send_roots_list_changed()

    @asynccontextmanager
    async def watch(self, uri: str) -> AsyncIterator[list[Wire]]:
        if self._is_modern:
            changes: list[Wire] = []
            listening = self._connection.listen(
                resource_subscriptions=[uri], resources_list_changed=True
            )
            async with listening as events:

                async def listen() -> None:
                    async for event in events:
                        if isinstance(event, ResourceUpdated):
                            changes.append({"updated": event.uri})
                        elif isinstance(event, ResourcesListChanged):
                            changes.append({"list_changed": "resources"})

                listener = asyncio.create_task(listen())
                yield changes
            await listener
        else:
            await asking(self._connection.subscribe_resource(uri))
            yield self._client.notifications.changes
            await asking(self._connection.unsubscribe_resource(uri))

    async def task(self, method: str, params: Wire) -> Wire:
        request, result = _TASKS[method]
        if method != "tools/call":
            sent = request(params=params) if params else request()
            return await asking(self._connection.session.send_request(sent, result))
        # The session takes no answer to tools/call but a tool's result; what lies below it does.
        try:
            raw = await self._connection.session._dispatcher.send_raw_request(method, params)
        except MCPError as error:
            raise RefusedError(wire(error.error)) from None
        return wire(result.model_validate(raw))

    async def _progress(self, done: float, total: float | None, message: str | None) -> None:
        self._client.progress.append([done, total, message])


async def asking(awaitable: Awaitable[BaseModel]) -> Wire:
    """Give a result, or the error, as on the wire."""
    try:
        return wire(await awaitable)
    except MCPError as error:
        raise RefusedError(wire(error.error)) from None


def callbacks(client: Client) -> dict[str, Any]:
    """Give what the SDK calls when the server speaks or asks."""

    async def elicit(_context: Any, params: BaseModel) -> types.ElicitResult:
        client.asked.append({"method": "elicitation/create", "params": wire(params)})
        return types.ElicitResult.model_validate(client.answer)

    async def sample(_context: Any, params: BaseModel) -> types.CreateMessageResult:
        client.asked.append({"method": "sampling/createMessage", "params": wire(params)})
        return types.CreateMessageResult.model_validate(client.answer)

    async def roots(_context: Any) -> types.ListRootsResult:
        client.asked.append({"method": "roots/list", "params": {}})
        return types.ListRootsResult(roots=[types.Root(uri=uri) for uri in client.roots])

    async def log(params: BaseModel) -> None:
        client.logs.append(wire(params))

    async def message(heard: Any) -> None:
        if isinstance(heard, Exception):
            client.faults.append(repr(heard))
        else:
            client.notifications.append(wire(heard))

    offered = {"elicitation": elicit, "sampling": sample, "list_roots": roots}
    declared = {
        f"{name}_callback": callback
        for name, callback in offered.items()
        if name.removeprefix("list_") in client.can
    }
    return {"logging_callback": log, "message_handler": message, **declared}


class Connecting:
    """Starts servers; see ``session.Connect``."""

    def __init__(self, command: list[str], revision: str, stderr: Path, bridge: list[str]) -> None:
        self._bridge = bridge
        self.revisions = (MODERN,) if revision == MODERN else HANDSHAKES
        self._command = command
        self._revision = revision
        self._stderr = stderr

    @asynccontextmanager
    async def __call__(
        self, root: Path, client: Client, *options: str, revision: str | None = None
    ) -> AsyncIterator[Sdk2]:
        program, *words = [*self._command, "--root", str(root), *options]
        wanted = revision or self._revision
        mode = "legacy"
        if wanted == MODERN:
            mode = revision or "auto"  # named, it is spoken without a look at what is there
        else:
            sdk_session.LATEST_HANDSHAKE_VERSION = wanted  # what it asks for
        server = StdioServerParameters(command=program, args=words)
        async with AsyncExitStack() as stack:
            errlog = stack.enter_context(self._stderr.open("a", encoding="utf-8"))
            transport = stdio_client(server, errlog)
            if self._bridge:
                url = served(self._bridge, [program, *words], errlog)
                transport = streamable_http_client(await stack.enter_async_context(url))
            connection = SdkClient(
                transport, mode=mode, log_level=client.log_level, **callbacks(client)
            )
            await stack.enter_async_context(connection)
            yield Sdk2(connection, client)


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    main(version("mcp"), Connecting)
