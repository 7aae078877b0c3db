"""The tour with the official Python SDK 1.x: sessions of the revisions with a handshake."""

from __future__ import annotations

import asyncio
import warnings
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl, TypeAdapter

from tests.sdks.session import HANDSHAKES, SILENCE, Client, RefusedError, Wire, served
from tests.sdks.tour import main

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from pathlib import Path

    from pydantic import BaseModel

_REFS = TypeAdapter(types.PromptReference | types.ResourceTemplateReference)


def wire(model: BaseModel) -> Wire:
    """Give an object as it is on the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Sdk1:
    """A session of the SDK; see ``session.Session``."""

    def __init__(self, session: ClientSession, client: Client, opening: Wire) -> None:
        self._session = session
        self._client = client
        self._opening = opening

    async def opening(self) -> Wire:
        return self._opening

    async def alive(self) -> bool:
        return await asking(self._session.send_ping()) == {}

    async def page(self, what: str, cursor: str | None = None) -> Wire:
        params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
        return await asking(getattr(self._session, f"list_{what}")(params=params))

    async def call(self, name: str, arguments: Wire, *, with_progress: bool = False) -> Wire:
        callback = self._progress if with_progress else None
        return await asking(self._session.call_tool(name, arguments, progress_callback=callback))

    async def call_and_cancel(self, name: str, arguments: Wire, when: asyncio.Event) -> bool:
        # This SDK leaves it to the user to say that a request is cancelled, and hides its number.
        number = self._session._request_id
        call = asyncio.create_task(self.call(name, arguments, with_progress=True))
        await when.wait()
        params = types.CancelledNotificationParams(requestId=number, reason="enough")
        cancelled = types.CancelledNotification(params=params)
        await self._session.send_notification(types.ClientNotification(cancelled))
        answered, _ = await asyncio.wait([call], timeout=SILENCE)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        return bool(answered)

    async def read(self, uri: str) -> Wire:
        return await asking(self._session.read_resource(AnyUrl(uri)))

    def expand(self, template: str, values: dict[str, str]) -> str:
        uri = template.replace("{+path}", quote(values["path"]))
        return uri.replace("{first}", values["first"]).replace("{last}", values["last"])

    async def prompt(self, name: str, arguments: dict[str, str]) -> Wire:
        return await asking(self._session.get_prompt(name, arguments))

    async def complete(
        self, ref: Wire, name: str, typed: str, chosen: dict[str, str] | None = None
    ) -> Wire:
        argument = {"name": name, "value": typed}
        return await asking(self._session.complete(_REFS.validate_python(ref), argument, chosen))

    async def set_level(self, level: str) -> None:
        await self._session.set_logging_level(level)

    async def roots_changed(self) -> None:
        await self._session.send_roots_list_changed()

    @asynccontextmanager
    async def watch(self, uri: str) -> AsyncIterator[list[Wire]]:
        await asking(self._session.subscribe_resource(AnyUrl(uri)))
        yield self._client.notifications.changes
        await asking(self._session.unsubscribe_resource(AnyUrl(uri)))

    async def task(self, method: str, params: Wire) -> Wire:
        tasks = self._session.experimental
        name, which = params.get("name"), params.get("taskId")
        work = {
            "tools/call": lambda: tasks.call_tool_as_task(name, params["arguments"], ttl=60_000),
            "tasks/get": lambda: tasks.get_task(which),
            "tasks/result": lambda: tasks.get_task_result(which, types.CallToolResult),
            "tasks/list": tasks.list_tasks,
            "tasks/cancel": lambda: tasks.cancel_task(which),
        }[method]
        return await asking(work())

    async def _progress(self, done: float, total: float | None, message: str | None) -> None:
        self._client.progress.append([done, total, message])


async def asking(awaitable: Awaitable[BaseModel]) -> Wire:
    """Give a result, or the error, as on the wire."""
    try:
        return wire(await awaitable)
    except McpError as error:
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
        if isinstance(heard, types.ServerNotification):
            client.notifications.append(wire(heard))
        elif isinstance(heard, Exception):
            client.faults.append(repr(heard))

    offered = {"elicitation": elicit, "sampling": sample, "list_roots": roots}
    declared = {
        f"{name}_callback": callback
        for name, callback in offered.items()
        if name.removeprefix("list_") in client.can
    }
    return {"logging_callback": log, "message_handler": message, **declared}


class Connecting:
    """Starts servers; see ``session.Connect``."""

    revisions = HANDSHAKES

    def __init__(self, command: list[str], revision: str, stderr: Path, bridge: list[str]) -> None:
        self._bridge = bridge
        self._command = command
        self._revision = revision
        self._stderr = stderr

    @asynccontextmanager
    async def __call__(
        self, root: Path, client: Client, *options: str, revision: str | None = None
    ) -> AsyncIterator[Sdk1]:
        program, *words = [*self._command, "--root", str(root), *options]
        types.LATEST_PROTOCOL_VERSION = revision or self._revision  # what it asks for
        server = StdioServerParameters(command=program, args=words)
        async with AsyncExitStack() as stack:
            errlog = stack.enter_context(self._stderr.open("a", encoding="utf-8"))
            transport = stdio_client(server, errlog)
            if self._bridge:
                url = served(self._bridge, [program, *words], errlog)
                transport = streamable_http_client(await stack.enter_async_context(url))
            read, write, *_ = await stack.enter_async_context(transport)
            talking = ClientSession(read, write, **callbacks(client))
            session = await stack.enter_async_context(talking)
            opening = wire(await session.initialize())
            yield Sdk1(session, client, opening)


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)
    main(version("mcp"), Connecting)
