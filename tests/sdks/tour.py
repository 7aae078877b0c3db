"""A tour through all the reference server has, made with an official client.

It knows no SDK: ``sdk1`` and ``sdk2`` put theirs behind ``Session``. It judges nothing: it writes
down what the SDK made of the answers, as JSON; ``test_reference_clients`` reads that.

    python -m tests.sdks.sdk1 '{"command": ["python", "-m", "reference_server"],
        "place": "/tmp/x", "revision": "2025-11-25", "skip": []}'
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.sdks.session import SILENCE, Client, RefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.sdks.session import Connect, Session, Wire

PATIENCE = 20.0
"""Seconds; a limit for hangs, never a measure of speed."""

APP = b"""def greet(name):
    return "Hello " + name


def main():
    print(greet("world"))
"""
FILES = {
    "src/app.py": APP,
    "src/dos.txt": b"one\r\ntwo\r\nthree\r\n",
    "docs/guide.md": b"# Guide\n\nRead me.\n",
    "docs/na\u00efve notes.txt": "\ufeffd\u00e9j\u00e0 vu\n".encode(),
    "image.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    ".git/config": b"secret",
    **{f"many/{number:02}.txt": b"%d\n" % number for number in range(20)},
}
PATCH = """\
--- a/src/app.py
+++ b/src/app.py
@@ -1,2 +1,2 @@
 def greet(name):
-    return "Hello " + name
+    return f"Hello {name}"
"""
SCRIPT = "UPDATE FILE 'src/dos.txt' REPLACE LINE 'two' WITH CONTENT '@0:2'"
COMPLAINT = "LINE_NOT_FOUND in command #2"


async def refused(awaitable: Awaitable[Any]) -> Wire:
    """Give the error of a request that must fail, and its answer if it did not."""
    try:
        answer = await awaitable
    except RefusedError as refusal:
        return refusal.error
    return {"answered": answer}


async def until(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Wait for something to become true; return whether it did."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True


def lay(place: Path) -> Path:
    """Make a root with the files of the tour."""
    for path, data in FILES.items():
        file = place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return place


async def all_of(session: Session, what: str, key: str) -> tuple[list[Wire], int]:
    """Follow the cursors of a list; give everything and the number of pages."""
    found: list[Wire] = []
    cursor: str | None = None
    pages = 0
    while pages == 0 or cursor is not None:
        page = await session.page(what, cursor)
        found += page[key]
        cursor = page.get("nextCursor")
        pages += 1
    return found, pages


async def tools(connect: Connect, root: Path) -> Wire:
    """Call every tool there is."""
    client = Client(frozenset({"sampling"}), answer=_WORDS)
    calls: Wire = {}
    async with connect(root, client) as session:

        async def call(label: str, name: str, **arguments: Any) -> Wire:
            calls[label] = {"tool": name, **await session.call(name, arguments)}
            found: Wire = calls[label].get("structuredContent", {})
            return found

        listed = await session.page("tools")
        names = [tool["name"] for tool in listed["tools"]]
        found = await call("read", "file_read", path="src/app.py")
        await call("range", "file_read_range", path="app.py", cwd="src", startLine=1, endLine=2)
        patch = {"path": "src/app.py", "expectedHash": found["sha256"], "diffText": PATCH}
        await call("patch", "file_apply_patch_only", **patch)
        await call("stale", "file_apply_patch_only", **patch)
        edit: Wire = {"path": "src/app.py", "command": "view"}
        await call("view", "text_editor", **edit)
        await call("directory", "text_editor", command="view", path=".")
        edit = {"path": "src/new.py", "command": "create", "file_text": "a = 1\nb = 2\n"}
        await call("create", "text_editor", **edit)
        edit = {"path": "src/new.py", "command": "str_replace", "old_str": "b = 2", "new_str": "b"}
        await call("str_replace", "text_editor", **edit)
        edit = {"path": "src/new.py", "command": "insert", "insert_line": 0, "new_str": "# top\n"}
        await call("insert", "text_editor", **edit)
        await call("undo_edit", "text_editor", command="undo_edit", path="src/new.py")
        await call("capabilities", "list_capabilities")
        await call("explain", "explain_error", error_message=COMPLAINT, ask_model=True)
        if "apply_cedarscript" in names:
            await call("parse", "parse_cedarscript", content=SCRIPT)
            await call("preview", "apply_cedarscript", commands=SCRIPT)
            await call("apply", "apply_cedarscript", commands=SCRIPT, dry_run=False)
        await call("digest", "workspace_digest", path="many")
        await call("denied", "file_read", path=".git/config")
        await call("mistyped", "file_read", path=5)
        unknown = await refused(session.call("no.such.tool", {}))
        opening = await session.opening()
    return {
        "opening": opening,
        "listed": listed["tools"],
        "calls": calls,
        "unknown": unknown,
        "asked": client.asked,
        "faults": client.faults,
    }


async def reading(connect: Connect, root: Path) -> Wire:
    """List and read every resource, through the templates as well."""
    client = Client()
    async with connect(root, client) as session:
        listed = await session.page("resources")
        read = {
            one["uri"]: (await session.read(one["uri"]))["contents"] for one in listed["resources"]
        }
        templates = (await session.page("resource_templates"))["resourceTemplates"]
        values = {"path": "docs/na\u00efve notes.txt", "first": "1", "last": "1"}
        expanded = [session.expand(one["uriTemplate"], values) for one in templates]
        through = [(await session.read(uri))["contents"] for uri in expanded]
        absent = await refused(session.read("workspace:///no/such/file"))
        denied = await refused(session.read("workspace:///.git/config"))
    return {
        "listed": listed["resources"],
        "read": read,
        "templates": templates,
        "expanded": expanded,
        "through_templates": through,
        "absent": absent,
        "denied": denied,
        "faults": client.faults,
    }


async def prompting(connect: Connect, root: Path) -> Wire:
    """Get every prompt and complete every argument."""
    client = Client()
    values = {"path": "docs/guide.md", "task": "Say more."}
    completions: Wire = {}
    async with connect(root, client) as session:
        prompts = (await session.page("prompts"))["prompts"]
        got = {}
        for prompt in prompts:
            names = [one["name"] for one in prompt.get("arguments", [])]
            got[prompt["name"]] = await session.prompt(
                prompt["name"], {name: values[name] for name in names}
            )
            for name in names:
                ref = {"type": "ref/prompt", "name": prompt["name"]}
                completions[f"{prompt['name']} {name}"] = await session.complete(ref, name, "")
        for template in (await session.page("resource_templates"))["resourceTemplates"]:
            ref = {"type": "ref/resource", "uri": template["uriTemplate"]}
            completions[f"{template['name']} path"] = await session.complete(ref, "path", "src/d")
        chosen = {"path": "src/dos.txt"}
        completions["lines first"] = await session.complete(ref, "first", "", chosen)
        completions["lines last"] = await session.complete(ref, "last", "", chosen)
        missing = await refused(session.prompt("edit_file", {"path": "docs/guide.md"}))
        unknown = await refused(session.prompt("no_such_prompt", {}))
        stray = await refused(session.complete(ref, "no such variable", ""))
    return {
        "listed": prompts,
        "got": got,
        "completions": completions,
        "missing": missing,
        "unknown": unknown,
        "stray": stray,
        "faults": client.faults,
    }


async def paging(connect: Connect, root: Path) -> Wire:
    """Follow the cursors of every list that has more than a page."""
    client = Client()
    found: Wire = {}
    async with connect(root, client, "--page-size", "3") as session:
        for what, key in (("tools", "tools"), ("resources", "resources"), ("prompts", "prompts")):
            entries, pages = await all_of(session, what, key)
            found[what] = {"names": [one["name"] for one in entries], "pages": pages}
        found["bad cursor"] = await refused(session.page("tools", "no-such-cursor"))
    return {**found, "faults": client.faults}


async def read_only(connect: Connect, root: Path) -> Wire:
    """See what is left where nothing may be written."""
    client = Client()
    async with connect(root, client, "--read-only") as session:
        names = [one["name"] for one in (await session.page("tools"))["tools"]]
        edit = {"command": "create", "path": "new.txt", "file_text": "x\n"}
        create = await session.call("text_editor", edit)
        patch = await refused(session.call("file_apply_patch_only", {}))
        prompts = [one["name"] for one in (await session.page("prompts"))["prompts"]]
    return {"tools": names, "create": create, "patch": patch, "prompts": prompts}


async def hearing(connect: Connect, root: Path) -> Wire:
    """Hear log messages and progress, and take a call back."""
    client = Client(log_level="info")
    edit = {"command": "str_replace", "path": "src/dos.txt"}
    # In 2026-07-28 log messages are deprecated, and not sent unless the operator wants them.
    async with connect(root, client, "--deprecated") as session:
        await session.set_level("info")
        await session.call("text_editor", {**edit, "old_str": "one", "new_str": "1"})
        await until(lambda: client.logs)
    quiet = Client(log_level="error")
    async with connect(root, quiet, "--deprecated") as session:
        await session.set_level("error")
        await session.call("text_editor", {**edit, "old_str": "two", "new_str": "2"})
        await until(lambda: False, SILENCE)
        slow = {"path": "many", "pause_ms": 25}
        await session.call("workspace_digest", slow, with_progress=True)
        progress = list(quiet.progress)
        quiet.progress.clear()
        when = asyncio.Event()

        async def wait_for_progress() -> None:
            await until(lambda: len(quiet.progress) > 1)
            when.set()

        waiter = asyncio.create_task(wait_for_progress())
        long = {"path": "many", "pause_ms": 1000}
        answered = await session.call_and_cancel("workspace_digest", long, when)
        await waiter
        seen = len(quiet.progress)
        await until(lambda: False, SILENCE)
        alive = await session.alive()
    return {
        "logs": client.logs,
        "logs below the level": quiet.logs,
        "progress": progress,
        "cancelled": {
            "answered": answered,
            "progress before": seen,
            "progress after": len(quiet.progress) - seen,
            "alive": alive,
        },
        "faults": [*client.faults, *quiet.faults],
    }


_YES = {"action": "accept", "content": {"confirm": True}}
_ANSWERS: dict[str, Wire] = {
    "no": {"action": "accept", "content": {"confirm": False}},
    "declined": {"action": "decline"},
    "dismissed": {"action": "cancel"},
    "yes": _YES,
}
_WORDS = {
    "role": "assistant",
    "content": {"type": "text", "text": "Look at line two."},
    "model": "a model",
    "stopReason": "endTurn",
}


async def asking(connect: Connect, root: Path) -> Wire:
    """Be asked before something is overwritten, in a form and with a token."""
    found: Wire = {}
    edit: Wire = {
        "command": "str_replace",
        "path": "src/app.py",
        "old_str": "world",
        "new_str": "everybody",
    }
    file = root / "src/app.py"
    client = Client(frozenset({"elicitation"}))
    async with connect(root, client, "--confirm-writes") as session:
        for name, answer in _ANSWERS.items():
            client.answer = answer
            result = await session.call("text_editor", edit)
            found[name] = {"result": result, "file": file.read_bytes().decode()}
        create = {"command": "create", "path": "src/new.py", "file_text": "x = 1\n"}
        found["nothing destroyed"] = {"result": await session.call("text_editor", create)}
    asked = list(client.asked)
    file.write_bytes(APP)
    client = Client()
    async with connect(root, client, "--confirm-writes") as session:
        result = await session.call("text_editor", edit)
        found["preview"] = {"result": result, "file": file.read_bytes().decode()}
        token = result["structuredContent"]["confirm_token"]
        result = await session.call("text_editor", {**edit, "confirm_token": token})
        found["token"] = {"result": result, "file": file.read_bytes().decode()}
        again = await session.call("text_editor", {**edit, "confirm_token": token})
        found["token again"] = {"result": again}
    return {"calls": found, "asked": asked, "faults": client.faults}


async def roots(connect: Connect, root: Path) -> Wire:
    """Name roots that narrow what is served, and other ones later."""
    client = Client(frozenset({"roots"}), roots=[(root / "src").as_uri()])
    async with connect(root, client) as session:

        async def names() -> list[str]:
            return [one["name"] for one in (await session.page("resources"))["resources"]]

        first = await names()
        outside = await session.call("file_read", {"path": "docs/guide.md"})
        client.roots = [(root / "docs").as_uri()]
        await session.roots_changed()
        await until(lambda: len(client.asked) > 1, SILENCE)
        second = await names()
    return {
        "first": first,
        "outside": outside,
        "second": second,
        "asked": [one["method"] for one in client.asked],
        "faults": client.faults,
    }


async def watching(connect: Connect, root: Path) -> Wire:
    """Watch changes made through the server and behind its back."""
    client = Client()
    uri = "workspace:///src/dos.txt"
    edit = {"command": "str_replace", "path": "src/dos.txt"}
    async with connect(root, client) as session:
        await session.page("resources")
        async with session.watch(uri) as changes:
            before = (await session.read(uri))["contents"]
            await session.call("text_editor", {**edit, "old_str": "one", "new_str": "first"})
            inside = await until(lambda: {"updated": uri} in changes)
            after = (await session.read(uri))["contents"]
            changes.clear()
            (root / "src/dos.txt").write_bytes(b"changed\r\n")
            outside = await until(lambda: {"updated": uri} in changes)
            (root / "added.txt").write_bytes(b"new\n")
            listed = await until(lambda: {"list_changed": "resources"} in changes)
            names = [one["name"] for one in (await session.page("resources"))["resources"]]
        changes.clear()
        await session.alive()
        edit = {**edit, "old_str": "changed", "new_str": "again"}
        await session.call("text_editor", edit)
        await until(lambda: False, SILENCE)
        late = [one for one in changes if "updated" in one]
    return {
        "before": before,
        "after": after,
        "notified of a change inside": inside,
        "notified of a change outside": outside,
        "notified of a new file": listed,
        "in the list": "added.txt" in names,
        "notified after the end": late,
        "faults": client.faults,
    }


async def tasks(connect: Connect, root: Path) -> Wire:
    """Call a tool as a task, fetch what it gives, cancel another."""
    client = Client()
    found: Wire = {}
    digest: Wire = {"name": "workspace_digest", "arguments": {"path": "many", "pause_ms": 10}}
    async with connect(root, client) as session:
        plain = await session.call("workspace_digest", digest["arguments"])
        found["plain"] = plain["structuredContent"]
        found["created"] = await session.task("tools/call", {**digest, "task": {"ttl": 60000}})
        which = {"taskId": found["created"]["task"]["taskId"]}
        found["result"] = await session.task("tasks/result", which)
        found["ended"] = await session.task("tasks/get", which)
        slow: Wire = {"name": "workspace_digest", "arguments": {"path": "many", "pause_ms": 1000}}
        other = await session.task("tools/call", {**slow, "task": {}})
        which = {"taskId": other["task"]["taskId"]}
        found["working"] = await session.task("tasks/get", which)
        found["cancelled"] = await session.task("tasks/cancel", which)
        found["result of cancelled"] = await refused(session.task("tasks/result", which))
        found["listed"] = await session.task("tasks/list", {})
        found["notified"] = [one for one in client.notifications if "tasks" in one["method"]]
        not_a_task = {"name": "file_read", "arguments": {"path": "src/app.py"}, "task": {}}
        found["not a task"] = await refused(session.task("tools/call", not_a_task))
    return {**found, "faults": client.faults}


async def revisions(connect: Connect, root: Path) -> Wire:
    """Name the revision, each of this era, and do a little of everything."""
    found: Wire = {}
    for revision in connect.revisions:
        client = Client()
        async with connect(root, client, revision=revision) as session:
            ref = {"type": "ref/prompt", "name": "edit_file"}
            found[revision] = {
                "opening": await session.opening(),
                "tools": (await session.page("tools"))["tools"],
                "call": await session.call("file_read", {"path": "src/app.py"}),
                "resources": len((await session.page("resources"))["resources"]),
                "contents": await session.read("workspace:///src/app.py"),
                "prompt": await session.prompt("text_editor_guide", {}),
                "completion": await session.complete(ref, "path", "src/a"),
                "alive": await session.alive(),
                "faults": client.faults,
            }
    return found


QUICK = (tools, reading, prompting, paging, read_only, revisions)
SLOW = (hearing, asking, roots, watching, tasks)
"""Stops that wait for something; they are made at the same time."""


LEAVING = ("BrokenResourceError", "ClosedResourceError")
"""What the SDK meets where a message arrives while it closes: no fault of the server's."""


class _Complaints(logging.Handler):
    """Keeps what the SDK complains about: of this server it should find nothing wrong."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if type(error).__name__ in LEAVING:
            return
        why = f" ({error!r})" if error else ""
        self.heard.append(f"{record.name}: {record.getMessage()}{why}")


async def _tour(connect: Connect, place: Path, skipped: list[str]) -> Wire:
    async def make(stop: Callable[[Connect, Path], Awaitable[Wire]]) -> None:
        found[stop.__name__] = await stop(connect, lay(place / stop.__name__))

    found: Wire = {}
    for stop in QUICK:
        if stop.__name__ not in skipped:
            await make(stop)
    await asyncio.gather(*(make(stop) for stop in SLOW if stop.__name__ not in skipped))
    return found


def main(version: str, connect: Callable[[list[str], str, Path, list[str]], Connect]) -> None:
    """Make the tour that the command line asks for and print what was found.

    Args:
        version: Of the SDK.
        connect: Takes the server's command, the revision, the file for its standard error, and
            the command of a bridge; none to talk to the server itself.
    """
    wanted = json.loads(sys.argv[1])
    place = Path(wanted["place"])
    complaints = _Complaints()
    logging.getLogger().addHandler(complaints)
    stderr = place / "stderr.txt"
    connecting = connect(wanted["command"], wanted["revision"], stderr, wanted["bridge"])
    found = asyncio.run(_tour(connecting, place, wanted["skip"]))
    print(json.dumps({"sdk": version, "complaints": complaints.heard, **found}))
