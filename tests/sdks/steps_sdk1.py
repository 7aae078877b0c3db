"""Steps as data with the official Python SDK 1.x: ``python steps_sdk1.py {server}``, also a URL."""

import asyncio
import json
import os
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken


async def sample(_context: Any, _params: Any) -> types.CreateMessageResult:
    """Answer sampling/createMessage."""
    text = types.TextContent(type="text", text="something")
    return types.CreateMessageResult(role="assistant", content=text, model="none")


async def elicit(_context: Any, params: Any) -> types.ElicitResult:
    """Answer elicitation/create with the defaults of the form."""
    if getattr(params, "mode", "form") == "url":
        return types.ElicitResult(action="decline")
    fields = params.requestedSchema["properties"].items()
    return types.ElicitResult(action="accept", content={k: v["default"] for k, v in fields})


async def roots(_context: Any) -> types.ListRootsResult:
    """Answer roots/list."""
    return types.ListRootsResult(roots=[types.Root(uri="file:///work")])  # type: ignore[arg-type]


CONTEXT: dict[str, Any] = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])
"""The steps; and a client that an issuer knows already, which STEPS_ISSUER binds to that."""


class Memory:
    """Keeps tokens in memory, and follows redirects in place of a browser."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def open(self, url: str) -> None:
        async with httpx.AsyncClient() as browser:
            back = (await browser.get(url)).headers["Location"]
        self._answer = {k: v[0] for k, v in parse_qs(urlsplit(back).query).items()}

    async def come_back(self) -> tuple[str, str | None]:
        return self._answer["code"], self._answer.get("state")


def login(url: str) -> OAuthClientProvider:
    """Log in when the server asks for it."""
    memory = Memory()
    known = {name: CONTEXT[name] for name in ("client_id", "client_secret") if name in CONTEXT}
    bound = {"issuer": CONTEXT["issuer"]} if "STEPS_ISSUER" in os.environ and known else {}
    if "private_key_pem" in CONTEXT:
        own, key = CONTEXT["client_id"], CONTEXT["private_key_pem"]
        signed = SignedJWTParameters(
            issuer=own,
            subject=own,
            signing_key=key,
            signing_algorithm=CONTEXT["signing_algorithm"],
        )
        return PrivateKeyJWTOAuthProvider(url, memory, own, signed.create_assertion_provider())
    if CONTEXT.get("grant_type") == "client_credentials":
        return ClientCredentialsOAuthProvider(url, memory, **known, **bound)
    about = OAuthClientMetadata(client_name="steps", redirect_uris=["http://localhost:3000/back"])  # type: ignore[list-item]
    if known:
        given = {**about.model_dump(), **known, **bound}
        memory.client = OAuthClientInformationFull.model_validate(given)
    return OAuthClientProvider(url, about, memory, memory.open, memory.come_back)


LISTED: dict[str, None] = {}
TEXTS: list[str] = []


async def pages(session: ClientSession, what: str) -> None:
    """List all pages."""
    names = {"templates": "resource_templates"}
    ask: Any = getattr(session, f"list_{names.get(what, what)}")
    cursor = None
    while True:
        page = await ask(params=cursor and types.PaginatedRequestParams(cursor=cursor))
        LISTED.update({tool.name: None for tool in getattr(page, "tools", ())})
        cursor = page.nextCursor
        if cursor is None:
            return


async def other(session: ClientSession, one: dict[str, Any]) -> None:
    """Take a step that is no call; pass over one that is unknown."""
    if "list" in one:
        await pages(session, one["list"])
    elif "read" in one:
        await session.read_resource(one["read"])
    elif "prompt" in one:
        await session.get_prompt(one["prompt"], one.get("arguments"))
    elif "complete" in one:
        ref = types.PromptReference(type="ref/prompt", name=one["complete"])
        await session.complete(ref, {"name": one["argument"], "value": one["value"]})
    elif "level" in one:
        await session.set_logging_level(one["level"])
    elif "subscribe" in one:
        await session.subscribe_resource(one["subscribe"])
    elif "unsubscribe" in one:
        await session.unsubscribe_resource(one["unsubscribe"])
    elif "hand_on" in one:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        await session.call_tool(one["to"], {"schema": tools[one["hand_on"]].inputSchema})
    elif "wait" in one:
        await asyncio.sleep(one["wait"])
    elif "together" in one:
        calls = (session.call_tool(c["call"], {"a": c["a"], "b": c["b"]}) for c in one["together"])
        TEXTS[:] = [getattr(r.content[0], "text", "") for r in await asyncio.gather(*calls)]


async def step(session: ClientSession, one: dict[str, Any]) -> None:
    """Take one step."""
    if "call" not in one:
        (result,) = await asyncio.gather(other(session, one), return_exceptions=True)
        if isinstance(result, BaseException) and "fails" not in one:
            raise result
        return
    if "task" in one:
        arguments = {"a": one["a"], "b": one["b"]}
        task = await session.experimental.call_tool_as_task(one["call"], arguments)
        await session.experimental.get_task_result(task.task.taskId, types.CallToolResult)
        return

    async def heard(_done: float, _total: float | None, _message: str | None) -> None:
        """Take progress."""

    if one["call"] == "*":
        for name in LISTED:
            await step(session, {**one, "call": name})
        return
    arguments = {"results": TEXTS} if "results" in one else one.get("arguments")
    arguments = arguments or {"a": one["a"], "b": one["b"]}
    callback = heard if one.get("progress") else None
    number = session._request_id  # the SDK hides it, and leaves cancellation to its user
    call = asyncio.create_task(
        session.call_tool(one["call"], arguments, progress_callback=callback)
    )
    if "cancel" in one:
        await asyncio.sleep(one["cancel"])
        about = types.CancelledNotificationParams(requestId=number)
        await session.send_notification(
            types.ClientNotification(types.CancelledNotification(params=about))
        )
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    else:
        (result,) = await asyncio.gather(call, return_exceptions=True)
        if isinstance(result, BaseException) and "fails" not in one:
            raise result


async def main() -> None:
    """Open a session, take the steps, and close it."""
    command, *args = sys.argv[1:]
    if command.startswith("http"):
        server: Any = streamablehttp_client(command, auth=login(command))
    else:
        server = stdio_client(
            StdioServerParameters(command=command, args=args, env=dict(os.environ))
        )
    async with (
        server as (read, write, *_),
        ClientSession(
            read,
            write,
            sampling_callback=sample,
            elicitation_callback=elicit,
            list_roots_callback=roots,
        ) as session,
    ):
        await session.initialize()
        for one in CONTEXT["steps"]:
            await step(session, one)


if __name__ == "__main__":
    asyncio.run(main())
