"""A server with tasks on the official Python SDK 1.x, low-level API and its experimental store."""

import asyncio

import mcp.types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

server = Server("witness")
server.experimental.enable_tasks()
FORM = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
SECONDS = {"type": "object", "properties": {"seconds": {"type": "number", "default": 0.2}}}
HARMLESS = types.ToolAnnotations(readOnlyHint=True)


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    return [
        types.Tool(
            name=name,
            description=description,
            inputSchema=schema,
            annotations=HARMLESS,
            execution=types.ToolExecution(taskSupport=support),
        )
        for name, description, schema, support in (
            ("wait", "Wait for a while.", SECONDS, "optional"),
            ("ask", "Ask the user.", {"type": "object"}, "required"),
            ("plain", "Say hello.", {"type": "object"}, "forbidden"),
        )
    ]


def said(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


@server.call_tool()
async def call_tool(name: str, arguments: dict) -> types.CallToolResult | types.CreateTaskResult:
    experimental = server.request_context.experimental
    support = {"ask": "required", "plain": "forbidden"}.get(name, "optional")
    experimental.validate_task_mode(support)

    async def ask(task) -> types.CallToolResult:
        answer = await task.elicit(message="Are you sure?", requestedSchema=FORM)
        return said(answer.action)

    async def wait(_task) -> types.CallToolResult:
        await asyncio.sleep(arguments.get("seconds", 0.2))
        return said("waited")

    if experimental.is_task:
        return await experimental.run_task(ask if name == "ask" else wait)
    return await wait(None)


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


asyncio.run(main())
