"""Steps as data with the official Python SDK 2.x: ``python steps_sdk2.py {server}``, also a URL."""

import asyncio
import contextlib
import json
import os
import sys
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


async def sample(_context: Any, _params: Any) -> types.CreateMessageResult:
    """Answer sampling/createMessage."""
    text = types.TextContent(type="text", text="something")
    return types.CreateMessageResult(role="assistant", content=text, model="none")


async def elicit(_context: Any, params: Any) -> types.ElicitResult:
    """Answer elicitation/create with the defaults of the form."""
    if getattr(params, "mode", "form") == "url":
        return types.ElicitResult(action="decline")
    fields = params.requested_schema["properties"].items()
    return types.ElicitResult(action="accept", content={k: v["default"] for k, v in fields})


async def roots(_context: Any) -> types.ListRootsResult:
    """Answer roots/list."""
    return types.ListRootsResult(roots=[types.Root(uri="file:///work")])  # type: ignore[arg-type]


async def step(client: Client, one: dict[str, Any]) -> None:
    """Take one step."""
    if "list" in one:
        cursor = None
        while True:
            cursor = (await client.list_tools(cursor=cursor)).next_cursor
            if not cursor:
                return

    async def heard(_done: float, _total: float | None, _message: str | None) -> None:
        """Take progress."""

    arguments = {"a": one["a"], "b": one["b"]}
    callback = heard if one.get("progress") else None
    with anyio.move_on_after(one.get("cancel", 60)):
        with contextlib.suppress(*([Exception] if "fails" in one else [])):
            await client.call_tool(one["call"], arguments, progress_callback=callback)


async def main() -> None:
    """Connect, take the steps, and close."""
    steps = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["steps"]
    command, *args = sys.argv[1:]
    server = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    async with Client(
        command if command.startswith("http") else stdio_client(server),
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=roots,
    ) as client:
        for one in steps:
            await step(client, one)


asyncio.run(main())
