"""A server of both eras for the tests of what recon learns; what it offers is named in argv.

It is no reference: it checks next to nothing. ``python tests/toy_server.py echo asks ...``
"""

# ruff: noqa: PLR0911  (a server is a list of cases)

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

FEATURES = set(sys.argv[2:])
ROOT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"

lock = threading.Lock()
client: dict[str, Any] = {}
waiting: dict[str, Any] = {}
cancelled: set[Any] = set()
tasks: dict[str, dict[str, Any]] = {}
session = {"revision": ""}


def leave(_number: int, _frame: object) -> None:
    """Exit before the last line is written."""
    last = '{"jsonrpc":"2.0","method":"notifications/last"}'
    subprocess.Popen(["sh", "-c", f"sleep 0.5; echo '{last}'"])
    os._exit(0)


if "last-words" in FEATURES:
    signal.signal(signal.SIGTERM, leave)


def say(message: dict[str, Any]) -> None:
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def notify(method: str, params: Any) -> None:
    say({"method": method, "params": params})


def tool(name: str, *, read_only: bool = True, **more: Any) -> dict[str, Any]:
    properties = more.pop("properties", {})
    needed = more.pop("required", list(properties))
    schema = {"type": "object", "properties": properties, "required": needed}
    old = session["revision"] and session["revision"] < "2025-03-26"
    hints = {} if old else {"annotations": {"readOnlyHint": read_only, "openWorldHint": False}}
    return {"name": name, "inputSchema": schema, **hints, **more}


TASKS = {"work", "toil", "quiz"}
STRING = {"type": "string"}
FORM = {"type": "object", "properties": {"name": STRING}, "required": ["name"]}


def all_tools() -> dict[str, dict[str, Any]]:
    lasting: dict[str, Any] = {"properties": {"duration": {"type": "number"}}, "required": []}
    found = {
        "echo": tool("echo", properties={"text": STRING}),
        "picky": tool("picky", properties={"colour": STRING}),
        "write": tool("write", read_only=False, properties={"path": STRING}),
        "read": tool("read", properties={"path": STRING}),
        "misshapen": tool("misshapen", properties={"path": STRING}),
        "count": tool("count", outputSchema={"type": "object"}),
        "brief": tool("brief", **lasting),
        "nap": tool("nap", properties={"duration": {"type": "number"}}, required=[]),
        "naps": tool("naps", properties={"duration": {"type": "number"}}, required=[]),
        "late": tool("late", properties={"duration": {"type": "number"}}, required=[]),
        "stutter": tool("stutter"),
        "stumble": tool("stumble", properties={"duration": {"type": "number"}}, required=[]),
        "steps": tool("steps", properties={"n": {"type": "integer", "minimum": 1, "maximum": 300}}),
        "hang": tool("hang"),
        "die": tool("die"),
        "chat": tool("chat"),
        "elicit": tool("elicit"),
        "link": tool("link"),
        "sample": tool("sample"),
        "roots": tool("roots"),
        "needs_url": tool("needs_url"),
        "work": tool("work", execution={"taskSupport": "optional"}, **lasting),
        "toil": tool("toil", execution={"taskSupport": "required"}, **lasting),
        "quiz": tool("quiz", execution={"taskSupport": "required"}),
    }
    shown = {name: one for name, one in found.items() if name in FEATURES}
    if "shy" in FEATURES and "elicitation" in client:
        shown["elicit"] = found["elicit"]
    return shown


QUESTIONS = {
    "elicit": ("elicitation/create", {"message": "Who?", "requestedSchema": FORM}),
    "link": ("elicitation/create", {"mode": "url", "message": "Go", "url": "https://a.b/"}),
    "sample": (
        "sampling/createMessage",
        {"messages": [], "maxTokens": 5, "tools": [{"name": "x"}]},
    ),
    "roots": ("roots/list", None),
}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


def wrong(words: str) -> dict[str, Any]:
    return text(words, isError=True)


def ask(method: str, params: Any) -> Any:
    """Ask the client of a session; the thread that asks waits."""
    key = f"toy-{len(waiting) + 1}"
    waiting[key] = (threading.Event(), [])
    say({"id": key, "method": method, **({} if params is None else {"params": params})})
    waiting[key][0].wait(20)
    return next(iter(waiting[key][1]), None)


def run(name: str, arguments: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    params = request["params"]
    meta = params.get("_meta") or {}
    modern = META + "protocolVersion" in meta
    if name == "echo":
        return text(arguments["text"]) if "text" in arguments else wrong("no text")
    if name == "read":
        path = ROOT / str(arguments.get("path"))
        return text(path.read_text()) if path.is_file() else wrong("no such file")
    if name in {"count", "brief"}:
        return text("{}", structuredContent={"count": 1})
    if name in {"nap", "work", "toil"}:
        return nap(arguments.get("duration", 0.05), meta.get("progressToken"), request["id"])
    if name == "naps":
        return nap(5 * arguments["duration"], None, request["id"])
    if name == "late":  # about twice as long as the shortest duration that is tried
        return nap(0.1 + arguments.get("duration", 0.05), None, request["id"])
    if name == "steps":
        return nap(arguments.get("n", 1) * 0.01, None, request["id"])
    if name in {"stutter", "stumble"}:
        once = name == "stutter" or arguments.get("duration", 0) >= 1
        return stutter() if once else text("done")
    if name == "chat":
        if not modern or META + "logLevel" in meta:
            notify("notifications/message", {"level": "info", "data": "chatting"})
        return text("chatted")
    if name == "hang":
        time.sleep(60)
    if name in QUESTIONS:
        return question(name, params, modern)
    is_file = name == "misshapen" and arguments["path"].endswith("notes/today.txt")
    return wrong(
        "Output validation error: it has no size" if is_file else f"{name} does not do that"
    )


def stutter() -> dict[str, Any]:
    """Be slow once, as anything is on a machine that has too much to do."""
    mark = ROOT / "stuttered"
    if not mark.exists():
        mark.touch()
        time.sleep(1.2)
    return text("done")


def nap(seconds: float, token: Any, request_id: Any) -> dict[str, Any]:
    until = time.monotonic() + seconds
    turn = 0
    while time.monotonic() < until and request_id not in cancelled:
        time.sleep(min(0.02, seconds))
        turn += 1
        if token is not None:
            notify("notifications/progress", {"progressToken": token, "progress": turn})
    return text(f"napped {turn}")


def question(name: str, params: dict[str, Any], modern: bool) -> dict[str, Any]:
    method, asked = QUESTIONS[name]
    capability = {"roots/list": "roots"}.get(method, method.partition("/")[0])
    capability = {"createMessage": "sampling"}.get(capability, capability)
    known = (params.get("_meta") or {}).get(META + "clientCapabilities") if modern else client
    if capability not in (known or {}):
        return wrong(f"the client has no {capability}")
    if not modern:
        return text(json.dumps(ask(method, asked)))
    answers = params.get("inputResponses")
    if not isinstance(answers, dict) or "it" not in answers or params.get("requestState") != "S1":
        request = {"method": method, **({} if asked is None else {"params": asked})}
        inputs = {"inputRequests": {"it": request}, "requestState": "S1"}
        return {"resultType": "input_required", **inputs}
    return text(json.dumps(answers["it"]))


def shown(task: dict[str, Any]) -> dict[str, Any]:
    if task["status"] == "working" and time.monotonic() > task["until"]:
        task["status"] = "completed"
    when = "2026-01-02T03:04:05Z"
    return {
        "taskId": task["id"],
        "status": task["status"],
        "createdAt": when,
        "lastUpdatedAt": when,
        "ttl": None,
        "pollInterval": 10,
    }


def quiz(task: dict[str, Any]) -> None:
    ask(*QUESTIONS["elicit"])
    task["until"] = 0.0


def call(request: dict[str, Any]) -> dict[str, Any]:
    params = request["params"]
    name, arguments = params.get("name"), params.get("arguments") or {}
    if name == "die":
        os._exit(9)
    if name == "needs_url":
        link = {"mode": "url", "elicitationId": "e1", "url": "https://a.b/", "message": "Go"}
        return {"error": {"code": -32042, "message": "go", "data": {"elicitations": [link]}}}
    if "task" in params and "lazy" in FEATURES:
        return {"error": {"code": -32603, "message": "not today"}}
    if "task" in params:
        until = time.monotonic() + float(arguments.get("duration", 0.05))
        task_id = f"t{len(tasks) + 1}-7f3a"
        task: dict[str, Any] = {"id": task_id, "status": "working", "until": until}
        tasks[task_id] = task
        if name == "quiz" and "elicitation" in client:
            task["until"] = float("inf")
            threading.Thread(target=quiz, args=(task,), daemon=True).start()
        return {"result": {"task": shown(task)}}
    if name in {"toil", "quiz"}:
        return {"error": {"code": -32601, "message": "as a task only"}}
    return {"result": run(name, arguments, request)}


def capabilities() -> dict[str, Any]:
    found: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}
    if "completions" in FEATURES:
        found["completions"] = {}
    if "chat" in FEATURES:
        found["logging"] = {}
    if FEATURES & TASKS:
        found["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    return found


def lists(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "tools/list":
        tools = list(all_tools().values())
        if "paged" not in FEATURES:
            return {"tools": tools}
        page = int(params.get("cursor", 0))
        more = {"nextCursor": str(page + 1)} if page + 1 < len(tools) else {}
        return {"tools": tools[page : page + 1], **more}
    if method == "resources/list":
        return {"resources": [{"uri": "note:///1", "name": "one"}] if "note" in FEATURES else []}
    if method == "resources/templates/list":
        template = {"uriTemplate": "note:///{id}", "name": "note"}
        return {"resourceTemplates": [template] if "template" in FEATURES else []}
    greet = {"name": "greet", "arguments": [{"name": "colour", "required": True}]}
    found = [one for one in (greet, {"name": "hello"}) if one["name"] in FEATURES]
    return {"prompts": found}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    method, params = request["method"], request.get("params") or {}
    if method in {"ping", "logging/setLevel"}:
        return {"result": {}}
    if method == "server/discover" and "old" not in FEATURES:
        return {"result": {"supportedVersions": [MODERN], "capabilities": capabilities()}}
    if method.endswith("/list") and method.partition("/")[0] in {"tools", "resources", "prompts"}:
        return {"result": lists(method, params)}
    if method == "resources/templates/list":
        return {"result": lists(method, params)}
    if method == "tools/call":
        return call(request)
    if method == "resources/read" and params.get("uri") in {"note:///1", "note:///2"}:
        return {"result": {"contents": [{"uri": params["uri"], "text": "a note"}]}}
    if method == "prompts/get" and params.get("name") in FEATURES:
        if params["name"] == "greet" and (params.get("arguments") or {}).get("colour") != "red":
            return {"error": {"code": -32602, "message": "what colour?"}}
        message = {"role": "user", "content": {"type": "text", "text": "hi"}}
        return {"result": {"messages": [message]}}
    if method == "completion/complete" and "completions" in FEATURES:
        values = ["red", "green"] if params["argument"]["name"] == "colour" else ["1", "2"]
        return {"result": {"completion": {"values": values}}}
    if method.startswith("tasks/") and FEATURES & TASKS:
        return of_tasks(method, params)
    return {"error": {"code": -32601, "message": f"no {method}"}}


def of_tasks(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "tasks/list":
        return {"result": {"tasks": [shown(task) for task in tasks.values()]}}
    task = tasks.get(params.get("taskId", ""))
    if task is None:
        return {"error": {"code": -32602, "message": "no such task"}}
    if method == "tasks/cancel":
        task["status"] = "cancelled"
    if method == "tasks/result":
        while shown(task)["status"] == "working":
            time.sleep(0.01)
        return {"result": text("worked")}
    return {"result": shown(task)}


def serve(request: dict[str, Any]) -> None:
    said = answer(request)
    meta = (request.get("params") or {}).get("_meta") or {}
    modern = META + "protocolVersion" in meta and "old" not in FEATURES
    if modern and isinstance(said.get("result"), dict):
        said["result"].setdefault("resultType", "complete")
    if request["id"] not in cancelled:
        say({"id": request["id"], **said})


def listen(request: dict[str, Any]) -> None:
    meta = {META + "subscriptionId": request["id"]}
    wanted = request["params"].get("notifications")
    if "forgotten" in (wanted or {}):
        return
    params = {"_meta": meta, "notifications": wanted}
    notify("notifications/subscriptions/acknowledged", params)
    if "toolsListChanged" in (wanted or {}):
        notify("notifications/tools/list_changed", {"_meta": meta})


def initialize(request: dict[str, Any]) -> None:
    session["revision"] = request["params"]["protocolVersion"]
    client.update(request["params"]["capabilities"])
    result = {"protocolVersion": session["revision"], "capabilities": capabilities()}
    say({"id": request["id"], "result": {**result, "serverInfo": {"name": "toy", "version": "1"}}})


def heard(message: dict[str, Any]) -> None:
    method = message.get("method")
    if method is None:
        event, box = waiting.get(str(message.get("id")), (threading.Event(), []))
        box.append(message.get("result", message.get("error")))
        event.set()
    elif method == "notifications/cancelled":
        cancelled.add(message["params"].get("requestId"))
    elif method == "notifications/initialized":
        if "curious" in FEATURES and "roots" in client:
            threading.Thread(target=ask, args=("roots/list", None), daemon=True).start()
        if "loud" in FEATURES:
            notify("notifications/message", {"level": "info", "data": "here I am"})
    elif "id" not in message:
        return
    elif method == "initialize":
        initialize(message)
    elif method == "subscriptions/listen" and "listen" in FEATURES:
        listen(message)
    elif method in {"tools/call", "tasks/result"}:
        threading.Thread(target=serve, args=(message,), daemon=True).start()
    else:
        serve(message)


if __name__ == "__main__":
    for line in sys.stdin:
        heard(json.loads(line))
