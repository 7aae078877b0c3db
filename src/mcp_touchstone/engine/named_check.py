"""Reject names of tools, resources and prompts that the server does not know.

A misspelt name in ``--call`` or ``[call]`` would otherwise leave its tool unchecked, unnoticed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.profile import willing as willing_client
from mcp_touchstone.connection.server_profile import ServerProfile
from mcp_touchstone.engine.choice import UsageError
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.target.target import Named

PAGES: Final = 100
"""Pages of a list after which no cursor is followed."""


@dataclass(frozen=True, slots=True)
class _Name:
    """One name given by the user.

    Attributes:
        option: the option or key, without dashes.
        noun: the kind of thing it names.
        name: the name itself, a URI for resources.
        feature: the list it should be in.
        member: the member of a listed item that holds it.
        request: method and params that use it.
    """

    option: str
    noun: str
    name: str
    feature: str
    member: str
    request: tuple[str, dict[str, Any]]


def refuse_unknown(pool: ProcessPool, profile: ServerProfile, named: Named) -> None:
    """Reject a name that no list contains and no request accepts.

    Only for names that are not in the first pages of the lists, a process is started to search
    further, as a client that declares every capability.

    Raises:
        UsageError: a name is rejected; names the option and the closest valid name.
        LaunchError: the process could not be started.
    """
    unlisted = [
        one
        for one in _names(named)
        if all(
            one.name not in _listed(s.named(one.feature, one.member), one)
            for s in profile.spoken.values()
        )
    ]
    if not unlisted or not profile.spoken:
        return
    revision = profile.legacy[-1] if profile.legacy else list(profile.spoken)[-1]
    connection = pool.spawn(revision, "names", judged=False)
    connection.answers.use(willing_client(revision))
    connection.open()
    try:
        for one in unlisted:
            known = _all_listed(connection, one)
            if one.name in known:
                continue
            reply = connection.request(*one.request)
            if reply.answered and not reply.succeeded:
                hint = (
                    nearest(one.name, known) or f"; it lists {', '.join(sorted(known)) or 'none'}"
                )
                raise UsageError(
                    f"{one.option}: the server has no {one.noun} {one.name!r}{hint}; it answered: "
                    f"{reply}"
                )
    finally:
        pool.retire(connection)


def _names(named: Named) -> Iterator[_Name]:
    for name, arguments in named.call:
        params = {"name": name, "arguments": dict(arguments or {})}
        yield _Name("call", "tool", name, "tools", "name", ("tools/call", params))
    for name, arguments in named.prompt:
        params = {"name": name, "arguments": dict(arguments or {})}
        yield _Name("prompt", "prompt", name, "prompts", "name", ("prompts/get", params))
    for uri in named.resource:
        yield _Name(
            "resource", "resource", uri, "resources", "uri", ("resources/read", {"uri": uri})
        )


def _listed(items: list[dict[str, Any]], one: _Name) -> set[str]:
    return {item[one.member] for item in items if isinstance(item.get(one.member), str)}


def _all_listed(connection: Connection, one: _Name) -> set[str]:
    found: set[str] = set()
    cursor: Any = None
    for _ in range(PAGES):
        params = None if cursor is None else {"cursor": cursor}
        result = connection.request(f"{one.feature}/list", params).result or {}
        items = result.get(one.feature)
        if isinstance(items, list):
            found |= _listed([item for item in items if isinstance(item, dict)], one)
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str):
            break
    return found
