"""A minimal server on the official Python SDK 1.x, low-level API.

It serves over stdio, or over HTTP: ``mcp1_low.py [PORT [stateless] [json]]``.
"""

import asyncio
import sys

import mcp.types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

server = Server("witness")
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    return [types.Tool(name="echo", description="Give the text back.", inputSchema=SCHEMA)]


@server.call_tool()
async def call_tool(name: str, arguments: dict) -> list[types.TextContent]:
    return [types.TextContent(type="text", text=arguments["text"])]


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if len(sys.argv) == 1:
    asyncio.run(main())
else:
    import uvicorn
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.routing import Mount

    port, *modes = sys.argv[1:]
    manager = StreamableHTTPSessionManager(
        server, stateless="stateless" in modes, json_response="json" in modes
    )
    app = Starlette(
        routes=[Mount("/", app=manager.handle_request)], lifespan=lambda _app: manager.run()
    )
    uvicorn.run(app, port=int(port), log_level="warning")
