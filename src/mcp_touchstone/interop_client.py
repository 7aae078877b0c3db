"""The official Python client on its ordinary way through a server: a program of its own.

It runs under an interpreter that has the SDK (``mcp`` 1.x or 2.x), which need not be ours, and
imports nothing of ours. One line of JSON on standard input says what to do, one line on standard
output says how it went: ``python interop_client.py < job``. ``interop`` writes and reads them.
"""

import asyncio
import importlib
import json
import logging
import platform
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

MODERN = "2026-07-28"
LISTS = {
    "tools": "tools",
    "resources": "resources",
    "resource_templates": "resources",
    "prompts": "prompts",
}
"""What the client calls a list -> the capability that has it."""

PAGES = 50

Job = dict[str, Any]


class Witness:
    """What the client did and found, step by step."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.complaints: list[str] = []

    async def step(self, name: str, work: Callable[[], Awaitable[str]]) -> bool:
        """Take one step; whatever the client raises is what it has to say against the server."""
        try:
            told, held = await work(), True
        except Exception as error:  # noqa: BLE001  (the client may object in any way)
            told, held = said(error), False
        self.steps.append({"step": name, "held": held, "told": told[:400]})
        return held


class Complaints(logging.Handler):
    """Keeps what the SDK complains about while it goes on."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(logging.WARNING)
        self._witness = witness

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one complaint."""
        told = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            told += f": {said(record.exc_info[1])}"
        self._witness.complaints.append(f"{record.name}: {told}"[:400])


def said(error: BaseException) -> str:
    """Say what was raised, on one line; of a group the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(f"{type(error).__name__}: {error}".split())


def member(thing: Any, *names: str) -> Any:
    """Give a member by the name it has in this version of the SDK."""
    for name in names:
        found = getattr(thing, name, None)
        if found is not None:
            return found
    return None


class Version1:
    """A session of the SDK 1.x."""

    def __init__(self, session: Any) -> None:
        self._session = session

    async def page(self, what: str, cursor: str | None) -> Any:
        """Ask for a page of a list."""
        types = importlib.import_module("mcp.types")
        params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
        return await getattr(self._session, f"list_{what}")(params=params)

    async def call(self, name: str, arguments: Job) -> Any:
        """Call a tool."""
        return await self._session.call_tool(name, arguments)


class Version2:
    """A client of the SDK 2.x."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def page(self, what: str, cursor: str | None) -> Any:
        """Ask for a page of a list."""
        return await getattr(self._client, f"list_{what}")(cursor=cursor)

    async def call(self, name: str, arguments: Job) -> Any:
        """Call a tool."""
        return await self._client.call_tool(name, arguments)


@asynccontextmanager
async def opened(job: Job, witness: Witness) -> AsyncIterator[tuple[Any, Any, str]]:
    """Open the server; give the client, the capabilities, and what to say of the opening."""
    mcp = importlib.import_module("mcp")
    server = mcp.StdioServerParameters(
        command=job["command"][0], args=job["command"][1:], env=job["env"], cwd=job["cwd"]
    )

    async def heard(message: Any) -> None:
        if isinstance(message, Exception):
            witness.complaints.append(said(message))

    if hasattr(mcp, "Client"):
        mode = "auto" if job["revision"] == MODERN else "legacy"
        options = {"mode": mode, "message_handler": heard, "read_timeout_seconds": job["seconds"]}
        async with mcp.Client(server, **options) as client:
            spoken = client.protocol_version
            if mode == "auto" and spoken != job["revision"]:
                raise RuntimeError(f"it fell back to the handshake and {spoken}")
            yield Version2(client), client.server_capabilities, spoken
        return
    stdio = importlib.import_module("mcp.client.stdio")
    limit = timedelta(seconds=job["seconds"])
    async with (
        stdio.stdio_client(server) as (read, write),
        mcp.ClientSession(
            read, write, read_timeout_seconds=limit, message_handler=heard
        ) as session,
    ):
        opening = await session.initialize()
        yield Version1(session), opening.capabilities, opening.protocolVersion


async def walk(job: Job, witness: Witness) -> None:
    """Open the server, read its lists, call a tool."""
    opening = "server/discover" if job["revision"] == MODERN else "initialize"
    inside = False
    try:
        async with opened(job, witness) as (client, capabilities, spoken):
            inside = True
            witness.steps.append({"step": opening, "held": True, "told": spoken})
            for what, capability in LISTS.items():
                if member(capabilities, capability) is not None:
                    name = f"list {what.replace('_', ' ')}"
                    await witness.step(name, partial(_whole_list, client, what))
            if job["call"] is not None:
                await witness.step(f"call {job['call']['name']}", partial(_call, client, job))
    except Exception as error:  # noqa: BLE001  (the client may object in any way)
        step = "close" if inside else opening
        witness.steps.append({"step": step, "held": False, "told": said(error)[:400]})


async def _whole_list(client: Any, what: str) -> str:
    count, cursor = 0, None
    for _ in range(PAGES):
        page = await client.page(what, cursor)
        count += len(member(page, what, _camel(what)) or [])
        cursor = member(page, "next_cursor", "nextCursor")
        if cursor is None:
            break
    return str(count)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


async def _call(client: Any, job: Job) -> str:
    result = await client.call(job["call"]["name"], job["call"]["arguments"])
    if member(result, "is_error", "isError"):
        raise RuntimeError(f"isError: {_text(result)}")
    return f"{len(result.content)} blocks" if len(result.content) != 1 else "1 block"


def _text(result: Any) -> str:
    return " ".join(str(getattr(block, "text", "")) for block in result.content)[:200]


def main() -> int:
    """Do what the line on standard input says; print how it went."""
    here = str(Path(__file__).resolve().parent)
    # Modules of the harness stand in this folder, under names such as ``session``.
    sys.path[:] = [place for place in sys.path if place and str(Path(place).resolve()) != here]
    warnings.simplefilter("ignore")
    witness = Witness()
    logging.getLogger().addHandler(Complaints(witness))
    found: Job = {"python": platform.python_version(), "sdk": "", "modern": False, "trouble": ""}
    try:
        found["sdk"] = metadata.version("mcp")
        found["modern"] = hasattr(importlib.import_module("mcp"), "Client")
    except Exception as error:  # noqa: BLE001  (an environment can be broken in any way)
        found["trouble"] = said(error)
    job: Job = json.loads(sys.stdin.readline())
    if not found["trouble"] and job and (found["modern"] or job["revision"] != MODERN):
        try:
            asyncio.run(asyncio.wait_for(walk(job, witness), job["limit"]))
        except TimeoutError:
            told = f"it was not done within {job['limit']:.0f} s"
            witness.steps.append({"step": "the whole way", "held": False, "told": told})
    print(json.dumps({**found, "steps": witness.steps, "complaints": witness.complaints}))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
