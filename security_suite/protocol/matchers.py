"""Long near misses of the regular expressions that a server may match texts with."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from mcp_touchstone.security.suite import (
    AttackSession,
    Reply,
    attack,
    candidates,
    from_regex,
    uri_template,
)

PATIENCE: Final = 20.0
"""Seconds within which a server must answer a ping."""

MOST: Final = 240
TAILS: Final = ("/", "&", "!", "\n")
BETWEEN: Final = (",", "/", ".", "&a=", "")
FILLS: Final = (*(f"a{separator}" * 40 + "a" for separator in BETWEEN), "a" * 50_000)

Sent = tuple[str, str, dict[str, Any]]
"""The place of a text, and the method and params of the request with it."""


@attack("matchers-backtrack", fixtures=("base",), lasts=True)
def answers_after_near_misses(session: AttackSession) -> None:
    """A server still answers after texts that almost match its URI templates and patterns."""
    session.begin()
    requests = [*_templates(session), *_patterns(session)][:MOST]
    requests += islice(_completions(session), MOST)
    if not requests:
        session.judge.unseen("matchers-backtrack", "it has no URI template, completion or pattern")
        return
    found, at = "", None
    for place, method, params in requests:
        at = session.wire.request(method, params, required=False)
        found = "" if at.answered else _silence(session, at)
        if found:
            found = f"{found} after a near miss for {place}"
            break
    session.judge.conclude(
        "matchers-backtrack",
        found,
        expected="the server goes on answering",
        if_passed=f"{len(requests)} near misses",
        at=at,
    )


def _silence(session: AttackSession, reply: Reply) -> str:
    """Return why a server answers no request; empty if it answers a basic one."""
    wire = session.wire
    if wire.gone:
        return reply.why
    asked = wire.say(wire.build(wire.ping_method), required=False)
    later = wire.answer_to(asked, PATIENCE, patient=True)
    return "" if later.answered else later.why


def _templates(session: AttackSession) -> Iterator[Sent]:
    """Yield URIs that almost match a template; literals are kept, each variable is one text."""
    for row in session.spoken.named("templates", "uriTemplate"):
        text = row["uriTemplate"]
        for fill in FILLS:
            try:
                values = dict.fromkeys(uri_template.variables(text), fill)
                uri = uri_template.expand(text, values, encoded=True)
            except ValueError:
                break
            for tail in TAILS:
                yield text, "resources/read", {"uri": uri + tail}


def _completions(session: AttackSession) -> Iterator[Sent]:
    if "completions" not in session.spoken.capabilities:
        return
    for reference, name in session.spoken.completable:
        for fill in FILLS:
            argument = {"name": name, "value": fill + TAILS[0]}
            yield (
                f"completions of {name}",
                "completion/complete",
                {"ref": reference, "argument": argument},
            )


def _patterns(session: AttackSession) -> Iterator[Sent]:
    """Yield calls whose argument almost matches the pattern in its schema."""
    for tool in session.spoken.named("tools"):
        schema = tool.get("inputSchema")
        members = schema.get("properties") if isinstance(schema, dict) else None
        if not isinstance(members, dict) or not session.claims.may_call(tool):
            continue
        good = next(iter(candidates(schema)), {})
        for name, member in members.items():
            pattern = member.get("pattern") if isinstance(member, dict) else None
            if not isinstance(pattern, str):
                continue
            sample = from_regex.text_for(pattern) or "a"
            repeated = (sample * 40, sample[:1] * 40, sample[:1] * 50_000, "0" * 40)
            for fill in dict.fromkeys((*repeated, *FILLS)):
                given = {**good, name: fill[:50_000] + "!"}
                yield (
                    f"the pattern of {name}",
                    "tools/call",
                    {"name": tool["name"], "arguments": given},
                )
