"""Steps as data with a framework: ``python steps_frameworks.py FRAMEWORK {server}``, also a URL.

Each is used as its guide says: an agent would do the same, and a model would choose the tools.
"""

import asyncio
import json
import os
import socket
import sys
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

# Some open a browser to log in, and only then listen for the answer.
os.environ["BROWSER"] = "sh -c 'sleep 1; exec curl -sLo /dev/null \"$0\"' %s &"

CONTEXT: dict[str, Any] = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])

LOADED: list[str] = []
"""The texts of the skills that were loaded."""

Acts = dict[str, Callable[..., Any]]
"""What a framework can do: ``tools``, ``resources``, ``templates``, ``prompts``, ``read``,
``prompt``, ``call``, and of skills ``skills`` and ``load``."""


@asynccontextmanager
async def langchain(server: list[str]) -> AsyncIterator[Acts]:
    """Use langchain-mcp-adapters."""
    from langchain_mcp_adapters import prompts, resources, tools  # noqa: PLC0415
    from langchain_mcp_adapters.callbacks import Callbacks  # noqa: PLC0415
    from langchain_mcp_adapters.client import MultiServerMCPClient  # noqa: PLC0415
    from steps_sdk1 import elicit, login  # noqa: PLC0415

    async def answer(context: Any, params: Any, _about: Any) -> Any:
        return await elicit(context, params)

    async def heard(*_given: Any) -> None:
        """Take progress."""

    connection: dict[str, Any] = {"transport": "stdio", "command": server[0], "args": server[1:]}
    connection["env"] = dict(os.environ)
    if is_url(server):
        url = server[0]
        connection = {"transport": "streamable_http", "url": url, "auth": login(url)}
    callbacks = Callbacks(on_elicitation=answer, on_progress=heard)
    client = MultiServerMCPClient({"ours": connection}, callbacks=callbacks)
    async with client.session("ours") as session:
        known: dict[str, Any] = {}

        async def listed() -> list[Any]:
            found = await tools.load_mcp_tools(session, callbacks=callbacks, server_name="ours")
            known.update({tool.name: tool for tool in found})
            return found

        async def call(name: str, arguments: Any) -> Any:
            return await known[name].ainvoke(arguments)

        yield {
            "tools": listed,
            "call": call,
            "resources": lambda: resources.load_mcp_resources(session),
            "read": lambda uri: resources.load_mcp_resources(session, uris=[uri]),
            "prompt": lambda name, given: prompts.load_mcp_prompt(session, name, arguments=given),
        }


@asynccontextmanager
async def mcp_use(server: list[str]) -> AsyncIterator[Acts]:
    """Use mcp-use."""
    os.environ["MCP_USE_ANONYMIZED_TELEMETRY"] = "false"
    from mcp_use import MCPClient  # noqa: PLC0415
    from steps_sdk1 import elicit, roots, sample  # noqa: PLC0415

    about: dict[str, Any] = {"command": server[0], "args": server[1:], "env": dict(os.environ)}
    if is_url(server):
        known = {name: CONTEXT[name] for name in ("client_id", "client_secret") if name in CONTEXT}
        about = {"url": server[0], "auth": {**known, "callback_port": free_port()}}
    client = MCPClient(
        {"mcpServers": {"ours": about}},
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=roots,
    )
    try:
        session = await client.create_session("ours")
        yield {
            "tools": session.list_tools,
            "call": session.call_tool,
            "resources": session.list_resources,
            "prompts": session.list_prompts,
            "read": session.read_resource,
            "prompt": session.get_prompt,
        }
    finally:
        await client.close_all_sessions()


@asynccontextmanager
async def openai_agents(server: list[str]) -> AsyncIterator[Acts]:
    """Use openai-agents."""
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp  # noqa: PLC0415
    from steps_sdk2 import login  # noqa: PLC0415

    if is_url(server):
        params = {"url": server[0], "auth": login(server[0])}
        made: Any = MCPServerStreamableHttp(params, client_session_timeout_seconds=30)
    else:
        params = {"command": server[0], "args": server[1:], "env": dict(os.environ)}
        made = MCPServerStdio(params, client_session_timeout_seconds=30)
    async with made as session:
        yield {
            "tools": session.list_tools,
            "call": session.call_tool,
            "resources": session.list_resources,
            "templates": session.list_resource_templates,
            "prompts": session.list_prompts,
            "read": session.read_resource,
            "prompt": session.get_prompt,
        }


@asynccontextmanager
async def pydantic_ai(server: list[str]) -> AsyncIterator[Acts]:
    """Use pydantic-ai."""
    from fastmcp.client.transports import StdioTransport  # noqa: PLC0415
    from pydantic_ai.mcp import MCPToolset  # noqa: PLC0415
    from steps_fastmcp import elicit, login, sample  # noqa: PLC0415

    transport = StdioTransport(server[0], server[1:], env=dict(os.environ), keep_alive=False)
    toolset = MCPToolset(
        server[0] if is_url(server) else transport,
        auth=login() if is_url(server) else None,
        roots=["file:///work"],
        sampling_handler=sample,
        elicitation_handler=elicit,
    )
    async with toolset:
        yield {
            "tools": toolset.list_tools,
            "call": toolset.direct_call_tool,
            "resources": toolset.list_resources,
            "templates": toolset.list_resource_templates,
            "prompts": toolset.list_prompts,
            "read": toolset.read_resource,
            "prompt": toolset.get_prompt,
        }


@asynccontextmanager
async def fast_agent(server: list[str]) -> AsyncIterator[Acts]:
    """Use fast-agent-mcp, which installs skills and cannot be given a client id."""
    if CONTEXT["name"] in {"auth-known", "auth-pre-registered"}:
        sys.exit("fast-agent-mcp has no setting for a client id")
    from fast_agent.config import MCPServerSettings, MCPSettings, Settings  # noqa: PLC0415
    from fast_agent.context import Context  # noqa: PLC0415
    from fast_agent.mcp.mcp_aggregator import MCPAggregator, MCPAttachOptions  # noqa: PLC0415
    from fast_agent.mcp_server_registry import ServerRegistry  # noqa: PLC0415
    from fast_agent.skills import mcp_registry as skills  # noqa: PLC0415

    about: dict[str, Any] = {"command": server[0], "args": server[1:], "env": dict(os.environ)}
    if is_url(server):
        about = {"transport": "http", "url": server[0]}
        about["auth"] = {"persist": "memory", "redirect_port": free_port()}
    config = Settings(mcp=MCPSettings(servers={"ours": MCPServerSettings(name="ours", **about)}))
    context = Context(config=config, server_registry=ServerRegistry(config))
    installed = Path(tempfile.mkdtemp())

    async def heard(event: Any) -> None:
        if event.event_type == "authorization_url":
            webbrowser.open(event.url)

    options = MCPAttachOptions(startup_timeout_seconds=60, oauth_event_handler=heard)
    async with MCPAggregator([], context=context, name="steps") as client:
        await client.attach_server(server_name="ours", options=options)

        async def listed() -> list[Any]:
            return [
                each.model_copy(update={"name": each.name.partition("__")[2] or each.name})
                for each in (await client.list_tools()).tools
            ]

        async def call(name: str, arguments: Any) -> Any:
            result = await client.call_tool(f"ours__{name}", arguments)
            if result.is_error:
                raise RuntimeError(result.content)
            return result

        async def load(uri: str) -> str:
            skill = await skills.get_mcp_registry_skill(client, uri, "ours")
            made = await skills.install_mcp_registry_skill(
                client, skill, destination_root=installed
            )
            return (made / "SKILL.md").read_text("utf-8")

        yield {
            "tools": listed,
            "call": call,
            "resources": lambda: client.list_resources("ours"),
            "prompts": lambda: client.list_prompts("ours"),
            "read": lambda uri: client.get_resource(uri, "ours"),
            "prompt": lambda name, given: client.get_prompt(name, given, "ours"),
            "skills": lambda: skills.scan_mcp_skill_registry(client, "ours"),
            "load": load,
        }


FRAMEWORKS: dict[str, Callable[[list[str]], AbstractAsyncContextManager[Acts]]] = {
    "langchain-mcp-adapters": langchain,
    "mcp-use": mcp_use,
    "openai-agents": openai_agents,
    "pydantic-ai": pydantic_ai,
    "fast-agent-mcp": fast_agent,
}


def free_port() -> int:
    """Return a port at which a framework can wait for the answer to an authorization request."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def is_url(server: list[str]) -> bool:
    """Whether our server is reached by a URL."""
    return server[0].startswith("http")


async def take(acts: Acts, one: dict[str, Any]) -> None:
    """Take one step; pass over one that the framework cannot take."""
    if one.get("list") in acts:
        await acts[one["list"]]()
    elif "read" in one and "read" in acts:
        await acts["read"](one["read"])
    elif "prompt" in one and "prompt" in acts:
        await acts["prompt"](one["prompt"], one.get("arguments"))
    elif "load" in one and "load" in acts:
        LOADED.append(await acts["load"](one["load"]))
    elif "wait" in one:
        await asyncio.sleep(one["wait"])
    elif "together" in one:
        await asyncio.gather(*(take(acts, each) for each in one["together"]))
    elif one.get("call") == "*":
        for tool in await acts["tools"]():
            await step(acts, {**one, "call": tool.name})
    elif "call" in one and not {"task", "results"} & one.keys():
        given = one.get("arguments") or {"a": one["a"], "b": one["b"]}
        given = {"texts": LOADED} if "loaded" in one else given
        call = asyncio.ensure_future(acts["call"](one["call"], given))
        await asyncio.wait([call], timeout=one.get("cancel", 60))
        if not call.done():
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        call.cancelled() or call.result()


async def step(acts: Acts, one: dict[str, Any]) -> None:
    """Take one step, which may fail if it says so."""
    try:
        await take(acts, one)
    except Exception:
        if not {"fails", "cancel"} & one.keys():
            raise


async def main() -> None:
    """Connect, take the steps, and close."""
    framework, *server = sys.argv[1:]
    async with FRAMEWORKS[framework](server) as acts:
        for one in CONTEXT["steps"]:
            await step(acts, one)


if __name__ == "__main__":
    asyncio.run(main())
