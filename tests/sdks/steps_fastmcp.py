"""Steps as data with fastmcp: ``python steps_fastmcp.py {server}``, also a URL."""

import asyncio
import json
import os
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

# fastmcp opens a browser to log in, and only then listens for the answer.
os.environ["BROWSER"] = "sh -c 'sleep 1; exec curl -sLo /dev/null \"$0\"' %s &"


async def sample(*_given: Any) -> str:
    """Answer sampling/createMessage."""
    return "something"


async def elicit(_message: str, kind: Any, params: Any, _context: Any) -> Any:
    """Answer elicitation/create with the defaults of the form."""
    schema = getattr(params, "requestedSchema", None) or getattr(params, "requested_schema", None)
    values = {k: v["default"] for k, v in (schema or {}).get("properties", {}).items()}
    return kind(**values) if kind else values


CONTEXT: dict[str, Any] = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])
"""The steps; and a client that an issuer knows already, which STEPS_ISSUER binds to that."""

LISTED: dict[str, None] = {}
TEXTS: list[str] = []


async def other(client: Any, one: dict[str, Any]) -> None:
    """Take a step that is no call; pass over one that is unknown."""
    if one.get("list") == "tools":
        LISTED.update({tool.name: None for tool in await client.list_tools()})
    elif "list" in one:
        names = {"templates": "resource_templates"}
        await getattr(client, f"list_{names.get(one['list'], one['list'])}")()
    elif "read" in one:
        await client.read_resource(one["read"])
    elif "prompt" in one:
        await client.get_prompt(one["prompt"], one.get("arguments"))
    elif "level" in one:
        await client.set_logging_level(one["level"])
    elif "hand_on" in one:
        tools = {tool.name: tool.inputSchema for tool in await client.list_tools()}
        await client.call_tool(one["to"], {"schema": tools[one["hand_on"]]})
    elif "wait" in one:
        await asyncio.sleep(one["wait"])
    elif "together" in one:
        calls = (client.call_tool(c["call"], {"a": c["a"], "b": c["b"]}) for c in one["together"])
        TEXTS[:] = [r.content[0].text for r in await asyncio.gather(*calls)]


async def step(client: Any, one: dict[str, Any]) -> None:
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
    call = client.call_tool(one["call"], arguments, progress_handler=callback)
    try:
        await asyncio.wait_for(call, one.get("cancel", 60))
    except Exception:
        if not {"cancel", "fails"} & set(one):
            raise


def login() -> Any:
    """Log in when the server asks for it."""
    known = {name: CONTEXT[name] for name in ("client_id", "client_secret") if name in CONTEXT}
    grant = CONTEXT.get("grant_type")
    if grant not in {"authorization_code", "client_credentials"}:
        return "oauth"
    from fastmcp.client import auth  # noqa: PLC0415  (newer ones)

    bound = {"issuer": CONTEXT["issuer"]} if "STEPS_ISSUER" in os.environ else {}
    if grant == "authorization_code":
        return auth.OAuth(**known, **bound)
    if "client_secret" in known:
        return auth.ClientCredentialsOAuthProvider(**known, **bound)
    signing = auth.SignedJWTParameters(
        issuer=CONTEXT["client_id"],
        subject=CONTEXT["client_id"],
        signing_key=CONTEXT["private_key_pem"],
        signing_algorithm=CONTEXT["signing_algorithm"],
    )
    provider = signing.create_assertion_provider()
    return auth.PrivateKeyJWTOAuthProvider(**known, assertion_provider=provider, **bound)


async def main() -> None:
    """Connect, take the steps, and close."""
    command, *args = sys.argv[1:]
    server = StdioTransport(command=command, args=args, env=dict(os.environ), keep_alive=False)
    async with Client(
        command if command.startswith("http") else server,
        auth=login() if command.startswith("http") else None,
        roots=["file:///work"],
        sampling_handler=sample,
        elicitation_handler=elicit,
    ) as client:
        for one in CONTEXT["steps"]:
            await step(client, one)


if __name__ == "__main__":
    asyncio.run(main())
