"""Tours through the reference server: the requests of its golden transcripts.

Nothing is judged here; what came back is written down, and ``test_tours`` holds it against the
snapshot.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.reference_client import (
    LEGACY,
    META,
    MODERN,
    Message,
    initialize,
    notification,
    request,
    result,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.transcript_text import Tour

VERSION = "io.modelcontextprotocol/protocolVersion"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"

NOTE = "notes/today.txt"
NOTE_URI = f"workspace:///{NOTE}"
PNG = b"\x89PNG\r\n\x1a\n\x00\xff"
DOS = b"\xef\xbb\xbfone\r\ntwo\r\nthree"


def _alive(tour: Tour) -> None:
    """Show that nothing more has come."""
    tour.call("file_read", path=NOTE)


def opening(tour: Tour) -> None:
    """Meet, and make every kind of mistake."""
    with tour.served(opened=False):
        if tour.modern:
            _meet_without_a_session(tour)
        else:
            _open_a_session(tour)
        tour.say(b"{")
        tour.hear()
        tour.say(b'{"jsonrpc":"2.0","id":"twice","method":"a","method":"b"}')
        tour.hear()
        tour.say({"jsonrpc": "2.0", "id": None, "method": "tools/list"})
        tour.hear()
        tour.say({"jsonrpc": "2.0", "id": "number", "method": 5})
        tour.hear()
        tour.say({"jsonrpc": "2.0", "id": "array", "method": "tools/list", "params": []})
        tour.hear()
        tour.say(
            [tour.question("prompts/list", cursor="made up"), 5, notification("notifications/none")]
        )
        tour.hear()
        tour.say([])
        tour.hear()
        tour.say(notification("notifications/none"))
        tour.say({"jsonrpc": "2.0", "id": 77, "result": {}})
        tour.ask("no/such/method")
        tour.ask("tools/call")
        tour.ask("tools/call", name="no.such.tool", arguments={})
        tour.ask("tools/list", _meta={**(META if tour.modern else {}), "progressToken": True})


def _open_a_session(tour: Tour) -> None:
    tour.ask("ping")
    tour.ask("tools/list")
    tour.ask_with(initialize(tour.revision))
    tour.say(notification("notifications/initialized"))
    tour.ask("ping")
    tour.ask_with(initialize(tour.revision, "again"))
    tour.remark("the other era is served beside the session")
    tour.ask_with(request("discover", "server/discover", {"_meta": META}))


def _meet_without_a_session(tour: Tour) -> None:
    tour.ask("server/discover")
    tour.ask("ping")
    tour.ask_with(request("no _meta", "tools/list", {}))
    tour.ask_with(request("part", "tools/list", {"_meta": {VERSION: MODERN}}))
    other = {**META, VERSION: "2099-01-01"}
    tour.ask_with(request("later", "tools/list", {"_meta": other}))
    other = {**META, VERSION: "2025-11-25"}
    tour.ask_with(request("earlier", "tools/list", {"_meta": other}))


def lists(tour: Tour) -> None:
    """Follow the cursors of every list."""
    with tour.served(page_size=2):
        cursors = []
        for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
            found = tour.ask(method)["result"]
            while "nextCursor" in found:
                cursors.append(found["nextCursor"])
                found = tour.ask(method, cursor=cursors[-1])["result"]
        tour.remark("a cursor of another list, and one that nobody has given out")
        tour.ask("prompts/list", cursor=cursors[0])
        tour.ask("tools/list", cursor="made up")


def files(tour: Tour) -> None:
    """Read and patch."""
    with tour.served():
        found = tour.call("file_read", path="README.md")
        tour.call("file_read", path="today.txt", cwd="notes")
        tour.call("file_read_range", path=NOTE, startLine=2, endLine=9)
        tour.call("file_read_range", path=NOTE, startLine=4, endLine=4)
        tour.call("file_read_range", path=NOTE, startLine=2, endLine=1)
        for path in ("none.txt", "../outside", "/etc/passwd", "a\\b", ".git/config", "notes"):
            tour.call("file_read", path=path)
        tour.call("file_read")
        tour.call("file_read", path=NOTE, encoding="ebcdic")
        tour.call("file_read", path=NOTE, offset=3)
        tour.write("notes/dos.txt", DOS)
        tour.write("notes/logo.png", PNG)
        tour.write("notes/long.txt", b"ten bytes\n" * 50_001)
        tour.call("file_read", path="notes/dos.txt")
        tour.call("file_read", path="notes/logo.png")
        tour.call(
            "file_read_range", path="notes/logo.png", encoding="iso-8859-1", startLine=1, endLine=1
        )
        tour.call("file_read", path="notes/long.txt")
        tour.call("file_read_range", path="notes/long.txt", startLine=2, endLine=3)
        _patch(tour, found)


HUNK = (
    "@@ -1,3 +1,3 @@\n # A small project\n \n-Made by mcp-touchstone for one run, then removed.\n"
)
DIFF = f"--- a/README.md\n+++ b/README.md\n{HUNK}+Patched.\n"


def _patch(tour: Tour, found: Message) -> None:
    key = _facts(found)["sha256"]

    def patch(diff: str, path: str = "README.md", key: str = key) -> Message:
        return tour.call("file_apply_patch_only", path=path, expectedHash=key, diffText=diff)

    patch(DIFF, key="0" * 64)
    patch(DIFF, key="abc")
    patch("no diff")
    patch(DIFF.replace("small", "large"))
    patch(DIFF.replace("+++ b/README.md", "+++ b/other.md"))
    patch(DIFF.replace("b/README.md", "/dev/null"))
    patch(f"diff --git a/README.md b/README.md\nold mode 100644\nnew mode 100755\n{DIFF}")
    patch(DIFF + DIFF)
    patch(DIFF.replace("-1,3", "-2,3"))
    patch(DIFF.replace("README.md", "bin/tool"), "bin/tool")
    patch(DIFF)
    patch(DIFF)
    tour.remark("byte order mark, CRLF and the missing newline at the end stay")
    dos = "--- a/notes/dos.txt\n+++ b/notes/dos.txt\n@@ -2,1 +2,2 @@\n-two\n+2\n+zwei\n"
    patch(dos, "notes/dos.txt", _facts(tour.call("file_read", path="notes/dos.txt"))["sha256"])
    tour.call("file_read", path="notes/dos.txt")


def _facts(found: Message) -> Message:
    """Return what a tool found, which the oldest revisions have as text only."""
    facts: Message = json.loads(found["content"][-1]["text"])
    return facts


def editor(tour: Tour) -> None:
    """View, create, replace, insert, take back."""
    with tour.served():

        def edit(command: str, path: str = NOTE, **more: Any) -> None:
            tour.call("text_editor", command=command, path=path, **more)

        edit("view", ".")
        edit("view")
        edit("view", view_range=[2, -1])
        edit("view", view_range=[2, 9])
        edit("view", "none.txt")
        edit("view", ".", view_range=[1, 2])
        edit("create", "notes/new.txt", file_text="a\nb\n")
        edit("create", "notes/new.txt", file_text="again")
        edit("create", "obj/new.txt", file_text="x")
        edit("create", "../new.txt", file_text="x")
        edit("str_replace", old_str="two", new_str="2\n2b")
        edit("str_replace", old_str="2", new_str="two")
        edit("str_replace", old_str="     1\tone", new_str="1")
        edit("str_replace", old_str="ONE", new_str="1")
        edit("str_replace", old_str="one", new_str="one")
        edit("str_replace", old_str="one")
        edit("insert", insert_line=1, new_str="one and a half")
        edit("insert", insert_line=9, new_str="nine")
        edit("insert", insert_line=0, new_str="")
        edit("insert", insert_line=1, new_str="x", old_str="y")
        edit("rename", new_str="x")
        for _ in range(3):
            edit("undo_edit")
        edit("undo_edit", "notes/new.txt")
        edit("insert", insert_line=3, new_str="four")
        tour.write(NOTE, b"changed\n")
        edit("undo_edit")


SCRIPT = (
    "UPDATE FUNCTION 'greet' FROM FILE 'src/main.py' REPLACE BODY WITH CONTENT '@0:return name'"
)


def cedarscript(tour: Tour) -> None:
    """Check, preview and carry out scripts; have errors explained."""
    with tour.served():
        tour.call("list_capabilities")
        tour.call("parse_cedarscript", content=f"{SCRIPT}\nRM FILE '{NOTE}'")
        tour.call("parse_cedarscript", content="UPDAET FILE 'a' DELETE LINE 'b'")
        tour.call("parse_cedarscript", content="")
        tour.call("apply_cedarscript", commands=SCRIPT)
        tour.call("apply_cedarscript", commands=SCRIPT, dry_run="no")
        tour.call("apply_cedarscript", commands=SCRIPT, root="..")
        for script in (
            "UPDATE FILE 'README.md' REPLACE WHOLE WITH ED '1d'",
            "RM FILE '../outside.txt'",
            "RM FILE '.git/config'",
            f"UPDATE FILE '{NOTE}' DELETE LINE 'nine'",
            f"RM FILE '{NOTE}'\nUPDATE FILE 'none.txt' DELETE LINE 'one'",
            "UPDATE FUNCTION 'none' FROM FILE 'src/main.py' DELETE WHOLE",
            "UPDATE FILE 'src/main.py' REPLACE WHOLE WITH CONTENT '@0:def'",
            f"UPDATE FILE '{NOTE}' DELETE LINE 'one'\nRM FILE 'bin/none'",
        ):
            tour.call("apply_cedarscript", commands=script, dry_run=False)
        tour.call("apply_cedarscript", commands=SCRIPT, dry_run=False)
        tour.call("file_read", path="src/main.py")
        script = f"CREATE FILE 'notes/new.txt' WITH CONTENT 'new'\nRM FILE '{NOTE}'"
        tour.call("apply_cedarscript", commands=script, dry_run=False)
        tour.call("text_editor", command="view", path="notes")


def without_cedarscript(tour: Tour) -> None:
    """See what is left without the library."""
    with tour.served():
        tour.call("list_capabilities")
        tour.call("apply_cedarscript", commands=SCRIPT)
        for message in (
            "CEDARScriptEditorException: Command #2 failed: File not found: utils.py",
            "HASH_MISMATCH",
            "Segmentation fault",
        ):
            tour.call("explain_error", error_message=message)
        tour.call("explain_error", error_message="")


def digest(tour: Tour) -> None:
    """Hash the tree, watch it and take it back."""
    with tour.served():
        tour.call("workspace_digest")
        meta = {**META, "progressToken": "steps"} if tour.modern else {"progressToken": "steps"}
        params: Message = {"name": "workspace_digest", "arguments": {"path": "."}}
        tour.ask("tools/call", _meta=meta, **params)
        tour.call("workspace_digest", path="none")
        tour.call("workspace_digest", path="README.md")
        tour.call("workspace_digest", pause_ms=9999)
        params["arguments"] = {"pause_ms": 1000}
        question = tour.question("tools/call", _meta=meta, **params)
        tour.say(question)
        tour.hear()
        tour.say(notification("notifications/cancelled", {"requestId": question["id"]}))
        _alive(tour)


def tasks(tour: Tour) -> None:
    """Call a tool as a task, fetch what it gives, take another one back."""
    with tour.served():
        digest: Message = {"name": "workspace_digest", "arguments": {"pause_ms": 300}}
        created = tour.ask("tools/call", **digest, task={"ttl": 60_000})["result"]
        which = {"taskId": created["task"]["taskId"]}
        tour.ask("tasks/get", **which)
        tour.ask("tasks/result", **which)
        tour.ask("tasks/get", **which)
        tour.ask("tasks/cancel", **which)
        digest["arguments"] = {"pause_ms": 1000}
        created = tour.ask("tools/call", **digest, task={})["result"]
        which = {"taskId": created["task"]["taskId"]}
        tour.ask("tasks/cancel", **which)
        tour.ask("tasks/result", **which)
        tour.ask("tasks/list")
        digest["arguments"] = {"path": "none"}
        created = tour.ask("tools/call", **digest, task={"ttl": 1})["result"]
        tour.ask("tasks/result", taskId=created["task"]["taskId"])
        tour.ask("tasks/get", taskId="made up")
        tour.ask("tools/call", name="file_read", arguments={"path": NOTE}, task={})
        tour.ask("tools/call", **digest, task="yes")


def resources(tour: Tour) -> None:
    """Read files by their URIs."""
    with tour.served():
        tour.write("notes/a b.png", PNG)
        for uri in (
            "workspace:///src/main.py",
            "workspace:///%73rc/main.py",
            f"{NOTE_URI}?lines=2-3",
            f"{NOTE_URI}?lines=3-4",
            "workspace:///notes/a%20b.png",
            "workspace:///none.txt",
            "workspace:///notes",
            "workspace:///.git/config",
            "workspace:///../outside.txt",
            "file:///etc/passwd",
            "no uri",
        ):
            tour.ask("resources/read", uri=uri)
        tour.ask("resources/read")


def prompts(tour: Tour) -> None:
    """Get every prompt, complete every argument."""
    with tour.served():
        tour.ask("prompts/get", name="text_editor_guide")
        tour.ask("prompts/get", name="git_workflow")
        values = {"path": NOTE, "task": "Number the lines."}
        tour.ask("prompts/get", name="edit_file", arguments=values)
        tour.ask("prompts/get", name="edit_file", arguments={"path": NOTE})
        tour.ask("prompts/get", name="edit_file", arguments={**values, "path": "../x"})
        tour.ask("prompts/get", name="edit_file", arguments={**values, "other": "x"})
        tour.ask("prompts/get", name="none")

        def complete(ref: Message, name: str, value: str, **more: Any) -> None:
            tour.ask(
                "completion/complete", ref=ref, argument={"name": name, "value": value}, **more
            )

        prompt = {"type": "ref/prompt", "name": "edit_file"}
        template = {"type": "ref/resource", "uri": "workspace:///{+path}?lines={first}-{last}"}
        complete(prompt, "path", "")
        complete(prompt, "path", "main")
        complete(prompt, "path", "../")
        complete(prompt, "task", "d")
        complete(template, "path", "notes/")
        complete(template, "first", "")
        complete(template, "last", "", context={"arguments": {"path": NOTE}})
        complete(prompt, "none", "")
        complete({"type": "ref/prompt", "name": "none"}, "path", "")


def confirming(tour: Tour) -> None:
    """Overwrite only what the user has agreed to."""
    edit = {"command": "str_replace", "path": NOTE, "old_str": "two", "new_str": "2"}
    tour.remark("a client that cannot show a form")
    with tour.served(confirm_writes=True):
        tour.call("text_editor", command="create", path="notes/new.txt", file_text="new\n")
        found = _facts(tour.call("text_editor", **edit))
        token = found["confirm_token"]
        tour.call("text_editor", **{**edit, "new_str": "II"}, confirm_token=token)
        tour.call("text_editor", **edit, confirm_token="made up")
        tour.call("text_editor", **edit, confirm_token=token)
        edit |= {"old_str": "one", "new_str": "1"}
        token = _facts(tour.call("text_editor", **edit))["confirm_token"]
        tour.write(NOTE, b"one\n")
        tour.call("text_editor", **edit, confirm_token=token)
    tour.remark("a client that can")
    edit |= {"old_str": "one", "new_str": "1"}
    with tour.served({"elicitation": {}}, confirm_writes=True):
        if tour.modern:
            _confirm_in_rounds(tour, edit)
        elif tour.revision >= "2025-06-18":
            tour.call("text_editor", {"action": "decline"}, **edit)
            tour.call("text_editor", {"action": "accept", "content": {"confirm": False}}, **edit)
            tour.call("text_editor", {"action": "accept", "content": {"confirm": True}}, **edit)
        else:
            tour.remark("this revision has no forms")
            tour.call("text_editor", **edit)
        tour.call("file_read", path=NOTE)


def _round(tour: Tour, params: Message, asked: Message, answer: Message | None) -> Message:
    """Send a request again with the state it was given, and with an answer."""
    more: Message = {"requestState": asked["result"]["requestState"]}
    if answer is not None:
        more["inputResponses"] = dict.fromkeys(asked["result"]["inputRequests"], answer)
    return tour.ask("tools/call", **params, **more)


def _confirm_in_rounds(tour: Tour, edit: Message) -> None:
    params: Message = {"name": "text_editor", "arguments": edit}
    yes = {"action": "accept", "content": {"confirm": True}}
    asked = tour.ask("tools/call", **params)
    _round(tour, params, asked, {"action": "decline"})
    tour.remark("the state counts once")
    _round(tour, params, asked, yes)
    asked = tour.ask("tools/call", **params)
    tour.remark("for this request and no other")
    other = {**params, "arguments": {**edit, "new_str": "I"}}
    _round(tour, other, asked, yes)
    tour.remark("without an answer it is asked again")
    asked = _round(tour, params, asked, None)
    _round(tour, params, asked, {"action": "perhaps"})
    _round(tour, params, asked, yes)
    tour.remark("an answer without a state answers nothing")
    edit |= {"old_str": "1", "new_str": "one"}
    tour.ask("tools/call", **params, inputResponses={"confirm": yes})
    tour.remark("a state that was made up is refused even by a tool that asks nothing")
    read = {"name": "file_read", "arguments": {"path": NOTE}}
    tour.ask("tools/call", **read, requestState="made up")


WORDS = {
    "role": "assistant",
    "content": {"type": "text", "text": "The file has no such line."},
    "model": "a model",
}


def asking(tour: Tour) -> None:
    """Be asked for a model's words, and for roots."""
    arguments = {"error_message": "LINE_NOT_FOUND in command #2", "ask_model": True}
    params: Message = {"name": "explain_error", "arguments": arguments}
    tour.remark("a client without a model")
    with tour.served():
        tour.ask("tools/call", **params)
    if tour.modern:
        tour.remark("a client with a model, where asking it is deprecated")
        with tour.served({"sampling": {}}):
            tour.ask("tools/call", **params)
    tour.remark("a client with a model")
    with tour.served({"sampling": {}}, deprecated=tour.modern):
        if tour.modern:
            _round(tour, params, tour.ask("tools/call", **params), WORDS)
        else:
            tour.ask("tools/call", WORDS, **params)
            tour.say(tour.question("tools/call", **params))
            refused = {"code": -1, "message": "The user has said no."}
            tour.say({"jsonrpc": "2.0", "id": tour.hear()["id"], "error": refused})
            tour.hear()
    tour.remark("a client with roots")
    with tour.served({"roots": {"listChanged": True}}):
        if tour.modern:
            tour.remark("roots are deprecated here, and nobody is asked for them")
        else:
            uri = (tour.root / "src").as_uri()
            tour.say(result(tour.hear(), roots=[{"uri": uri, "name": "source"}]))
        tour.call("file_read", path=NOTE)
        tour.call("text_editor", command="view", path=".")
        if not tour.modern:
            tour.say(notification("notifications/roots/list_changed"))
            tour.say(result(tour.hear(), roots=[{"uri": tour.root.as_uri()}]))
            tour.call("text_editor", command="view", path=".")


def subscriptions(tour: Tour) -> None:
    """Get notifications of changes."""
    edit = {"command": "str_replace", "path": NOTE, "old_str": "two", "new_str": "2"}
    with tour.served():
        if tour.modern:
            _listen(tour)
        else:
            tour.ask("resources/list")
            tour.ask("resources/subscribe", uri=NOTE_URI)
            tour.ask("resources/subscribe", uri="workspace:///none.txt")
        tour.change_of(tour.question("tools/call", name="text_editor", arguments=edit))
        tour.write(NOTE, b"changed\n")
        tour.hear()
        tour.write("README.md", b"nobody has asked for this one\n")
        tour.write("notes/new.txt", b"new\n")
        tour.hear()
        if tour.modern:
            tour.say(notification("notifications/cancelled", {"requestId": "all"}))
        else:
            tour.ask("resources/unsubscribe", uri=NOTE_URI)
            tour.ask("resources/unsubscribe", uri=NOTE_URI)
        tour.write(NOTE, b"changed again\n")
        _alive(tour)


def _listen(tour: Tour) -> None:
    tour.ask("resources/subscribe", uri=NOTE_URI)

    def listen(request_id: str, **wanted: Any) -> None:
        question = tour.question("subscriptions/listen", notifications=wanted)
        tour.say({**question, "id": request_id})
        tour.hear()

    uris = [NOTE_URI, "workspace:///none.txt"]
    listen("all", resourceSubscriptions=uris, resourcesListChanged=True, promptsListChanged=True)
    listen("tools", toolsListChanged=True)
    listen("wrong", toolsListChanged="yes")


def logging(tour: Tour) -> None:
    """Hear of what the server does, from a level on."""
    edit = {
        "name": "text_editor",
        "arguments": {"command": "insert", "path": NOTE, "insert_line": 0, "new_str": "zero"},
    }
    with tour.served():
        if tour.modern:
            tour.ask("logging/setLevel", level="info")
            tour.remark("logging is deprecated here, and not offered")
            tour.ask("tools/call", **edit, _meta={LOG_LEVEL: "info"})
            tour.ask("tools/call", **edit, _meta={LOG_LEVEL: "loud"})
        else:
            _set_levels(tour, edit)
    if tour.modern:
        tour.remark("unless the operator wants it")
        with tour.served(deprecated=True):
            tour.ask("server/discover")
            tour.ask("tools/call", **edit)
            tour.ask("tools/call", **edit, _meta={LOG_LEVEL: "info"})
            tour.ask("tools/call", **edit, _meta={LOG_LEVEL: "error"})


def _set_levels(tour: Tour, edit: Message) -> None:
    tour.ask("tools/call", **edit)
    tour.ask("logging/setLevel", level="info")
    tour.ask("tools/call", **edit)
    tour.ask("logging/setLevel", level="error")
    tour.ask("tools/call", **edit)
    tour.ask("logging/setLevel", level="loud")
    tour.ask("logging/setLevel")


EVERYWHERE = (
    *(opening, lists, files, editor, cedarscript, without_cedarscript, digest, resources),
    *(prompts, confirming, asking, subscriptions, logging),
)

TOURS: dict[str, tuple[Callable[[Tour], None], tuple[str, ...]]] = {
    **{tour.__name__: (tour, (*LEGACY, MODERN)) for tour in EVERYWHERE},
    "tasks": (tasks, ("2025-11-25",)),
}
"""Name -> tour, and the revisions it is made in."""
