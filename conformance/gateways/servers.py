"""gateways/servers: several servers behind one gateway."""

from collections.abc import Iterator
from typing import Final

from mcp_touchstone.gateway.suite import (
    LISTS,
    ExchangeTalk,
    Seen,
    ambient,
    brief,
    exchange,
    hops,
    list_in,
    second,
    value_in,
)

METHODS: Final = {"prompt": "prompts/get", "resource": "resources/read"}
"""Step -> the method of a request that only it sends."""


@exchange("servers", several=True)
def uses_two_servers(talk: ExchangeTalk) -> None:
    """List and use what each of two servers has, and end one of them."""
    prefix = talk.expected.second_prefix
    for name, (method, member) in LISTS.items():
        talk.pages(name, method, member)
    talk.call("first", "echo", text="first", mark="first")
    echo = {"name": f"{prefix}echo", "arguments": {"text": "second", "mark": "second"}}
    talk.ask("second", "tools/call", echo)
    talk.ask("prompt", "prompts/get", {"name": f"{prefix}bare"})
    listed = list_in(talk.steps["resources"].result, "resources")
    named = (one for one in listed if value_in(one, "name") == f"{second.SECOND}text")
    uri = value_in(next(named, None), "uri")  # the gateway may have another one for it
    talk.ask("resource", "resources/read", {"uri": uri if isinstance(uri, str) else second.PLACE})
    talk.ask("leave", "tools/call", {"name": f"{prefix}leave"})
    talk.call("still", "echo", text="still", mark="still")


@ambient("gateway-servers-listed", "gateway-servers-routed", "gateway-servers-apart", of="servers")
def joins_several_servers(pair: hops.Pair) -> Iterator[Seen]:
    """All of each server is listed, is reached there, and outlives the end of the other."""
    prefix = pair.expected.second_prefix
    wanted = {
        "second": ("tools", f"{prefix}echo"),
        "prompt": ("prompts", f"{prefix}bare"),
        "resource": ("resources", f"{second.SECOND}text"),
    }
    listed = {"first"}
    for use, (name, wants) in wanted.items():
        found = hops.names(pair.through.steps[name])
        listed |= {use} if wants in found else set()
        actual = f"{hops.Fate.LOST}: {wants} of the second server; {brief(found)}"
        yield pair.judge("gateway-servers-listed", name, wants in found, wants, actual)
    for use in ("first", *wanted):
        step = pair.through.steps[use]
        passed = "result" in (step.value or {}) and _reached(pair, use)
        if use in listed:
            actual = step.why or f"it did not reach its server: {brief(step.value)}"
            yield pair.judge("gateway-servers-routed", use, passed, "its server", actual)
    if pair.through.steps["first"].result:
        step = pair.through.steps["still"]
        passed = bool(step.result) and not step.result.get("isError")
        actual = step.why or brief(step.value)
        yield pair.judge("gateway-servers-apart", "still", passed, "its answer", actual)


def _reached(pair: hops.Pair, use: str) -> bool:
    """Whether a request of ours reached the right server, and no other."""
    labels = [one.label.rpartition("-")[0] for one in pair.through.upstream]
    if use in METHODS:
        places = [number for number, _ in pair.through.received(METHODS[use])]
    else:
        places = [call[0]] if (call := pair.through.call(use)) else []
    servers = [*dict.fromkeys(labels)]
    wanted = servers[0] if use == "first" else servers[-1]
    return len(servers) > 1 and {labels[number] for number in places} == {wanted}
