"""Steps as data with the official Python SDK 2.x: ``python steps_sdk2.py {server}``, also a URL."""

import asyncio
import contextlib
import json
import os
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken


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
        async with httpx2.AsyncClient() as browser:
            back = (await browser.get(url)).headers["Location"]
        self._answer = {k: v[0] for k, v in parse_qs(urlsplit(back).query).items()}

    async def come_back(self) -> AuthorizationCodeResult:
        answer = self._answer
        code, state, iss = answer["code"], answer.get("state"), answer.get("iss")
        return AuthorizationCodeResult(code=code, state=state, iss=iss)


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


async def pages(client: Client, what: str) -> None:
    """List all pages."""
    names = {"templates": "resource_templates"}
    ask: Any = getattr(client, f"list_{names.get(what, what)}")
    cursor = None
    while True:
        page = await ask(cursor=cursor)
        LISTED.update({tool.name: None for tool in getattr(page, "tools", ())})
        cursor = page.next_cursor
        if cursor is None:
            return


async def other(client: Client, one: dict[str, Any]) -> None:
    """Take a step that is no call; pass over one that is unknown."""
    if "list" in one:
        await pages(client, one["list"])
    elif "read" in one:
        await client.read_resource(one["read"])
    elif "prompt" in one:
        await client.get_prompt(one["prompt"], one.get("arguments"))
    elif "complete" in one:
        ref = types.PromptReference(type="ref/prompt", name=one["complete"])
        await client.complete(ref, {"name": one["argument"], "value": one["value"]})
    elif "level" in one:
        await client.set_logging_level(one["level"])
    elif "subscribe" in one and not hasattr(client, "listen"):
        await client.subscribe_resource(one["subscribe"])
    elif "hand_on" in one:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        await client.call_tool(one["to"], {"schema": tools[one["hand_on"]].input_schema})
    elif "wait" in one:
        await anyio.sleep(one["wait"])
    elif "together" in one:
        calls = (client.call_tool(c["call"], {"a": c["a"], "b": c["b"]}) for c in one["together"])
        TEXTS[:] = [getattr(r.content[0], "text", "") for r in await asyncio.gather(*calls)]


async def step(client: Client, one: dict[str, Any]) -> None:
    """Take one step."""
    if "call" not in one:
        (result,) = await asyncio.gather(other(client, one), return_exceptions=True)
        if isinstance(result, BaseException) and "fails" not in one:
            raise result
        return
    if "task" in one:  # it has no tasks
        return

    async def heard(_done: float, _total: float | None, _message: str | None) -> None:
        """Take progress."""

    if one["call"] == "*":
        for name in LISTED:
            await step(client, {**one, "call": name})
        return
    arguments = {"results": TEXTS} if "results" in one else one.get("arguments")
    arguments = arguments or {"a": one["a"], "b": one["b"]}
    callback = heard if one.get("progress") else None
    with anyio.move_on_after(one.get("cancel", 60)):
        with contextlib.suppress(*([Exception] if "fails" in one else [])):
            await client.call_tool(one["call"], arguments, progress_callback=callback)


async def main() -> None:
    """Connect, take the steps, and close."""
    command, *args = sys.argv[1:]
    if command.startswith("http"):
        http = httpx2.AsyncClient(auth=login(command), timeout=30)
        server: Any = streamable_http_client(command, http_client=http)
    else:
        server = stdio_client(
            StdioServerParameters(command=command, args=args, env=dict(os.environ))
        )
    async with Client(
        server,
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=roots,
    ) as client:
        for one in CONTEXT["steps"]:
            await step(client, one)


if __name__ == "__main__":
    asyncio.run(main())
