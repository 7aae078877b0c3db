"""What a server fetches because an argument says where something is: URLs and references."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from mcp_touchstone.attack.aimer import Shot
from mcp_touchstone.attack.bindings import Binding, Call, Operation
from mcp_touchstone.attack.listener import Listener
from mcp_touchstone.attack.payload import URL
from mcp_touchstone.attack.siege import Siege
from mcp_touchstone.attack.tally import DEATHS, shown
from mcp_touchstone.talk import Broken

if TYPE_CHECKING:
    from mcp_touchstone.reply import Reply

SAYS_SO: Final = re.compile(r"https?:|(?<![a-z])urls?(?![a-z])", re.IGNORECASE)
"""What stands in the definition of a tool that says that it fetches."""

APART: Final = "the server was started where there is no network"

NOBODY: Final = "every tool that reads says that it takes URLs"

EXPECTED: Final = "nothing is fetched: an argument is the name of a file, or data"


def nothing(siege: Siege, threat: str, *groups: str) -> None:
    """Say where we listen: as a path, as the URI of a resource, as a reference beside a path.

    Raises:
        Broken: the server died of it again and again.
    """
    if siege.is_apart:
        siege.unseen(threat, APART)
        return
    siege.begin()
    sent: list[tuple[str, Shot, Reply]] = []
    lost = 0
    with closing(Listener()) as listener:
        for url, shot in _shots(siege, listener, *groups):
            siege.fired.add(shot.payload.id)
            siege.mark()
            method, params = shot.call
            reply = siege.wire.request(method, params, required=False)
            sent.append((url, shot, reply))
            if listener.heard(url, 0.0 if reply.answered else siege.pace.settle):
                break
            lost += not reply.answered
            if lost >= DEATHS:
                raise Broken(f"{lost} calls got no answer: {reply.why}")
            if not reply.answered:
                siege.renew()
        if not sent:
            siege.unseen(threat, NOBODY)
            return
        listener.heard(sent[-1][0], siege.pace.settle)
        found = next((one for one in sent if listener.heard(one[0])), None)
    siege.conclude(
        threat,
        f"{found[0]} was fetched: {shown(found[1].call)}" if found else "",
        expected=EXPECTED,
        passed=f"{len(sent)} calls that name a place where we listen",
        at=found[2] if found else None,
    )


def _shots(siege: Siege, listener: Listener, *groups: str) -> Iterator[tuple[str, Shot]]:
    readers = [one for one in siege.bindings.of(Operation.READ) if not _fetches(siege, one)]
    for row in siege.payloads(*groups, via="uri"):
        if row.is_fetched:
            for binding in readers:
                url = listener.url()
                text = row.text.replace(URL, url)
                yield url, Shot(row, text, binding, _named(siege, binding, text), live=True)
    for row in siege.payloads(*groups, via="args"):
        if row.is_fetched:
            for binding in (one for one in readers if not one.uri):
                url = listener.url()
                text = row.text.replace(URL, url)
                yield url, Shot(row, text, binding, _beside(siege, binding, text), live=True)


def _named(siege: Siege, binding: Binding, text: str) -> Call:
    if binding.uri:
        return "resources/read", {"uri": text}
    return binding.call(text, str(siege.field.root))


def _beside(siege: Siege, binding: Binding, text: str) -> Call:
    """Give a plain call with more arguments than it has."""
    method, params = siege.aimer.plain(binding)
    return method, {**params, "arguments": {**params["arguments"], **json.loads(text)}}


def _fetches(siege: Siege, binding: Binding) -> bool:
    """Whether a tool says that it takes URLs: then that is what it is for."""
    tools = [tool for tool in siege.spoken.named("tools") if tool["name"] == binding.tool]
    told = [str(tool.get("description")) for tool in tools] + list(_told(binding.schema))
    return any(SAYS_SO.search(text) for text in told)


def _told(schema: Mapping[str, Any]) -> Iterator[str]:
    """Give what a schema says to people: names of arguments, and their descriptions."""
    properties = schema.get("properties")
    for name, one in properties.items() if isinstance(properties, Mapping) else ():
        yield name
        yield str(one.get("description") if isinstance(one, Mapping) else "")
