"""Tools that are annotated read-only and change files."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_touchstone.security.suite import (
    BRIEF,
    CHANGING,
    CONTROL,
    DANGER,
    OWN,
    AttackSession,
    Binder,
    Broken,
    Places,
    Reply,
    Spoken,
    attack,
    candidates,
    changes,
    git_repo,
    is_read_only,
    read_pages,
    take,
    words,
)

SHOWN: Final = 3

AGAIN: Final = "touchstone-again.txt"
"""The file of the call that is shown as evidence."""


@attack("annotations-read-only", fixtures=("base",), lasts=True)
def changes_nothing_where_it_says_so(session: AttackSession) -> None:
    """A tool that is annotated read-only changes nothing when it is called."""
    threat = "annotations-read-only"
    session.begin()
    tools = [tool for tool in _tools(session) if is_read_only(tool)]
    if not tools:
        session.judge.unseen(threat, "no tool is annotated read-only")
        return
    problems, shown = [], None
    for tool in tools:
        found, reply = _done_by(session, tool)
        problems += found
        shown = shown or (reply if found else None)
    session.judge.conclude(
        threat,
        "; ".join(problems[:SHOWN]),
        expected="what says it only reads changes nothing",
        if_passed=f"{len(tools)} tools annotated read-only changed nothing",
        at=shown,
    )


def _tools(session: AttackSession) -> Iterator[dict[str, Any]]:
    """Yield the tools that are safe to call with guessed arguments."""
    for page in (
        read_pages(session.wire, "tools/list") if "tools" in session.spoken.capabilities else ()
    ):
        for tool in (page.result or {}).get("tools") or []:
            name = tool.get("name") if isinstance(tool, dict) else None
            if isinstance(name, str) and not DANGER & {*words(name)}:
                yield tool


def _done_by(session: AttackSession, tool: Mapping[str, Any]) -> tuple[list[str], Reply | None]:
    """Call a tool in every way; return its changes, and the reply that is shown for them."""
    tree, reply = session.tree, None
    before, staged = take(tree.root, OWN.match), git_repo.staged(tree.root)
    spoken = Spoken(session.spoken.opening, {"tools": [tool]})
    found = Binder(lambda: session.wire, tree).find(spoken, briefly=True)
    places = Places(folder=str(tree.root), file=CONTROL, seconds=BRIEF)
    for made in candidates(tool.get("inputSchema"), places)[:1]:
        reply = session.wire.request(
            "tools/call", {"name": tool["name"], "arguments": made}, required=False
        )
    if session.wire.gone:
        raise Broken(f"the server left when {tool['name']} was called")
    after = take(tree.root, OWN.match, before)
    problems = [f"{tool['name']} can {b.operation} files" for b in found.of(*CHANGING)]
    own = {".", "probe"}
    if git_repo.staged(tree.root) == staged:
        own.add(f"{git_repo.FOLDER}/index")
    near = [change for change in changes(before, after) if change.path not in own]
    problems += [f"{tool['name']}: {change}" for change in (*near, *tree.damage())]
    tree.restore()
    for binding in found.of(*CHANGING)[:1]:
        root = str(tree.root)
        call = binding.call(binding.spelled(AGAIN, root), root, content="touchstone\n")
        reply = session.wire.request(*call, required=False)
    return problems, reply
