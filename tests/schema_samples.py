"""Messages of a server with every member a revision knows; the tests take them apart."""

from typing import Any, Final

Json = dict[str, Any]

ANNOTATIONS: Final[Json] = {
    "audience": ["user", "assistant"],
    "priority": 0.5,
    "lastModified": "2026-01-12T15:00:58Z",
}
ICONS: Final[list[Json]] = [
    {"src": "https://a.example/i.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}
]
META: Final[Json] = {"com.example/a": [1]}
NAMED: Final[Json] = {"name": "n", "title": "N", "description": "d", "icons": ICONS, "_meta": META}
RESOURCE: Final[Json] = {
    **NAMED,
    "uri": "file:///a",
    "mimeType": "text/plain",
    "size": 5,
    "annotations": ANNOTATIONS,
}
TOOL: Final[Json] = {
    **NAMED,
    "inputSchema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
    },
    "outputSchema": {"type": "object", "properties": {"b": {}}, "required": ["b"]},
    "annotations": {
        "title": "T",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    },
    "execution": {"taskSupport": "optional"},
}
TASK: Final[Json] = {
    "taskId": "t",
    "status": "working",
    "statusMessage": "on it",
    "createdAt": "2026-01-01T00:00:00Z",
    "lastUpdatedAt": "2026-01-01T00:00:00Z",
    "ttl": 5,
    "pollInterval": 1,
}
CONTENTS: Final[list[Json]] = [
    {"uri": "file:///a", "mimeType": "text/plain", "text": "t", "_meta": META},
    {"uri": "file:///b", "blob": "AAAA"},
]


def content(revision: str) -> list[Json]:
    """Return a content item of each kind."""
    more: Json = {"annotations": ANNOTATIONS, "_meta": META}
    items: list[Json] = [
        {"type": "text", "text": "t", **more},
        {"type": "image", "data": "AAAA", "mimeType": "image/png", **more},
        *({"type": "resource", "resource": one, **more} for one in CONTENTS),
    ]
    if revision >= "2025-03-26":
        items.append({"type": "audio", "data": "AAAA", "mimeType": "audio/wav", **more})
    if revision >= "2025-06-18":
        items.append({"type": "resource_link", **RESOURCE})
    return items


def results(revision: str) -> dict[str, Json]:
    """Return method -> a full result."""
    template = {k: v for k, v in RESOURCE.items() if k not in {"uri", "size"}}
    prompt = {**NAMED, "arguments": [{**NAMED, "required": True}, {"name": "b"}]}
    messages = [{"role": "user", "content": item} for item in content(revision)]
    page = {"nextCursor": "c"}
    found: dict[str, Json] = {
        "tools/list": {"tools": [TOOL, {"name": "b", "inputSchema": {"type": "object"}}], **page},
        "tools/call": {
            "content": content(revision),
            "structuredContent": {"a": 1},
            "isError": False,
        },
        "resources/list": {"resources": [RESOURCE, {"name": "b", "uri": "b:"}], **page},
        "resources/templates/list": {
            "resourceTemplates": [{**template, "uriTemplate": "file:///{a}"}],
            **page,
        },
        "resources/read": {"contents": CONTENTS},
        "prompts/list": {"prompts": [prompt, {"name": "b"}], **page},
        "prompts/get": {"description": "d", "messages": messages},
        "completion/complete": {"completion": {"values": ["a"], "total": 5, "hasMore": True}},
    }
    return _modern(found) if revision == "2026-07-28" else _legacy(found, revision)


def _legacy(found: dict[str, Json], revision: str) -> dict[str, Json]:
    flags = {"listChanged": True}
    capabilities = {
        "experimental": {"e": {}},
        "logging": {},
        "completions": {},
        "prompts": flags,
        "resources": {**flags, "subscribe": False},
        "tools": flags,
        "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
    }
    found["initialize"] = {
        "protocolVersion": revision,
        "capabilities": capabilities,
        "serverInfo": {**NAMED, "version": "1", "websiteUrl": "https://a.example"},
        "instructions": "i",
    }
    for method in ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
        found[method] = {}
    if revision == "2025-11-25":
        found["tasks/get"] = found["tasks/cancel"] = TASK
        found["tasks/list"] = {"tasks": [TASK, {**TASK, "ttl": None}], "nextCursor": "c"}
        found["tasks/result"] = {"content": []}
    return {method: {**result, "_meta": META} for method, result in found.items()}


def _modern(found: dict[str, Json]) -> dict[str, Json]:
    info = {**NAMED, "version": "1", "websiteUrl": "https://a.example"}
    meta = {"io.modelcontextprotocol/serverInfo": info}
    found["server/discover"] = {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {
            "experimental": {"e": {}},
            "logging": {},
            "completions": {},
            "prompts": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
            "tools": {"listChanged": False},
            "extensions": {"com.example/x": {}},
        },
        "instructions": "i",
    }
    found["subscriptions/listen"] = {}
    cacheable = ("/list", "/read", "/discover")
    for method, result in found.items():
        result |= {"resultType": "complete", "_meta": dict(meta)}
        if method.endswith(cacheable):
            result |= {"ttlMs": 5, "cacheScope": "private"}
    found["subscriptions/listen"]["_meta"]["io.modelcontextprotocol/subscriptionId"] = 5
    return found


def form(revision: str) -> Json:
    """Return a requested schema with a property of each kind."""
    properties: dict[str, Json] = {
        "s": {"type": "string", "title": "S", "minLength": 1, "format": "email"},
        "n": {"type": "integer", "description": "d", "minimum": 1, "maximum": 5},
        "b": {"type": "boolean", "title": "B", "default": True},
        "e": {"type": "string", "enum": ["a"], "enumNames": ["A"]},
    }
    schema = {"type": "object", "properties": properties, "required": ["s"]}
    if revision >= "2025-11-25":
        choice = [{"const": "a", "title": "A"}]
        properties["s"]["default"] = "a"
        properties["n"]["default"] = 2
        properties["e"]["default"] = "a"
        properties |= {
            "o": {"type": "string", "oneOf": choice, "default": "a"},
            "m": {"type": "array", "items": {"type": "string", "enum": ["a"]}, "default": ["a"]},
            "t": {"type": "array", "items": {"anyOf": choice}, "minItems": 1, "maxItems": 2},
        }
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return schema


def sampling(revision: str) -> Json:
    """Return the params of a sampling request."""
    kinds = {"text", "image", "audio"}
    blocks = [block for block in content(revision) if block["type"] in kinds]
    messages: list[Json] = [{"role": "user", "content": block} for block in blocks]
    params: Json = {
        "messages": messages,
        "modelPreferences": {
            "hints": [{"name": "m"}],
            "costPriority": 0.5,
            "speedPriority": 1,
            "intelligencePriority": 0,
        },
        "systemPrompt": "p",
        "includeContext": "none",
        "temperature": 0.5,
        "maxTokens": 5,
        "stopSequences": ["."],
        "metadata": {},
    }
    if revision >= "2025-11-25":
        use = {"type": "tool_use", "id": "i", "name": "n", "input": {"a": 1}, "_meta": {}}
        result: Json = {"type": "tool_result", "toolUseId": "i", "content": content(revision)}
        result |= {"isError": False, "structuredContent": {"a": 1}, "_meta": {}}
        messages.append({"role": "assistant", "content": [use, result], "_meta": {}})
        params |= {"tools": [TOOL], "toolChoice": {"mode": "auto"}}
    return params


def interim() -> Json:
    """Return an input_required result that asks for one thing of each kind."""
    revision = "2026-07-28"
    form_params = {"mode": "form", "message": "m", "requestedSchema": form(revision)}
    url_params = {"mode": "url", "message": "m", "url": "https://a.example"}
    return {
        "resultType": "input_required",
        "requestState": "s",
        "inputRequests": {
            "sampling": {"method": "sampling/createMessage", "params": sampling(revision)},
            "roots": {"method": "roots/list", "params": {"_meta": {}}},
            "form": {"method": "elicitation/create", "params": form_params},
            "url": {"method": "elicitation/create", "params": url_params},
        },
    }


def requests(revision: str) -> dict[str, list[Json]]:
    """Return method -> full params of the requests a server may send, one set a mode."""
    if revision == "2026-07-28":
        return {}
    found: dict[str, list[Json]] = {
        "ping": [{}],
        "roots/list": [{}],
        "sampling/createMessage": [sampling(revision)],
    }
    if revision >= "2025-06-18":
        found["elicitation/create"] = [{"message": "m", "requestedSchema": form(revision)}]
    if revision == "2025-11-25":
        found["elicitation/create"][0]["mode"] = "form"
        found["elicitation/create"].append(
            {"mode": "url", "message": "m", "url": "https://a.example", "elicitationId": "e"}
        )
        for method in ("sampling/createMessage", "elicitation/create"):
            for params in found[method]:
                params["task"] = {"ttl": 5}
        found |= {f"tasks/{name}": [{"taskId": "t"}] for name in ("get", "result", "cancel")}
        found["tasks/list"] = [{"cursor": "c"}]
    return {
        method: [{**params, "_meta": {"progressToken": "t", **META}} for params in several]
        for method, several in found.items()
    }


def errors(revision: str) -> dict[str, Json]:
    """Return code -> a full error."""
    if revision == "2025-11-25":
        one = {"mode": "url", "message": "m", "url": "https://a.example", "elicitationId": "e"}
        return {"-32042": {"code": -32042, "message": "m", "data": {"elicitations": [one]}}}
    if revision == "2026-07-28":
        capabilities: Json = {
            "experimental": {"e": {}},
            "roots": {},
            "sampling": {"context": {}, "tools": {}},
            "elicitation": {"form": {}, "url": {}},
            "extensions": {"com.example/x": {}},
        }
        data = {"requiredCapabilities": capabilities}
        return {"-32021": {"code": -32021, "message": "m", "data": data}}
    return {}


def notifications(revision: str) -> dict[str, Json]:
    """Return method -> full params."""
    found: dict[str, Json] = {
        "notifications/cancelled": {"requestId": 5, "reason": "r"},
        "notifications/progress": {
            "progressToken": "t",
            "progress": 0.5,
            "total": 1.5,
            "message": "m",
        },
        "notifications/message": {"level": "info", "logger": "l", "data": None},
        "notifications/resources/updated": {"uri": "file:///a"},
        "notifications/resources/list_changed": {},
        "notifications/tools/list_changed": {},
        "notifications/prompts/list_changed": {},
    }
    if revision == "2025-11-25":
        found["notifications/tasks/status"] = TASK
        found["notifications/elicitation/complete"] = {"elicitationId": "e"}
    if revision == "2026-07-28":
        found["notifications/subscriptions/acknowledged"] = {
            "notifications": {"toolsListChanged": True, "resourceSubscriptions": ["file:///a"]}
        }
    key = "io.modelcontextprotocol/subscriptionId"
    meta: Json = {key: "s"} if revision == "2026-07-28" else META
    return {method: {**params, "_meta": meta} for method, params in found.items()}
