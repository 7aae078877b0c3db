"""A minimal server on the official Python SDK 2.x, low-level API.

It serves over stdio, or over HTTP: ``mcp2_low.py [PORT [stateless] [json]]``.
"""

import sys

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def list_tools(ctx, params):
    tool = types.Tool(name="echo", description="Give the text back.", input_schema=SCHEMA)
    return types.ListToolsResult(tools=[tool])


async def call_tool(ctx, params):
    text = (params.arguments or {}).get("text", "")
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


server = Server("witness", on_list_tools=list_tools, on_call_tool=call_tool)


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if len(sys.argv) == 1:
    anyio.run(main)
else:
    import uvicorn

    port, *modes = sys.argv[1:]
    app = server.streamable_http_app(
        stateless_http="stateless" in modes, json_response="json" in modes
    )
    uvicorn.run(app, port=int(port), log_level="warning")
