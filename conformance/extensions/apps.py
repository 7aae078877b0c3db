"""MCP Apps (SEP-1865): pages under ``ui://``, and the tools that name them."""

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Client,
    Conversation,
    Kind,
    Place,
    Record,
    Reply,
    Seen,
    ambient,
    brief,
    each,
    list_in,
    listings,
    object_in,
    read_pages,
    scenario,
    willing,
)

EXTENSION = "io.modelcontextprotocol/ui"
TYPE, SCHEME, OLD = "text/html;profile=mcp-app", "ui://", "ui/resourceUri"
READ = 10
"""The most pages that are read."""

ORIGINS = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
PERMISSIONS = ("camera", "microphone", "geolocation", "clipboardWrite")
TAG = re.compile(r"<(html|head|body|script|style|main|div|p|[a-z]+-[a-z]+)\b", re.IGNORECASE)
DOCTYPE = re.compile(r"\s*(<!--.*?-->\s*)*<!doctype\s+html\b", re.IGNORECASE | re.DOTALL)


def _page(tool: Any) -> Any:
    """Return the URI of the page that a tool names; None if it names none."""
    meta = object_in(tool, "_meta")
    return object_in(meta, "ui").get("resourceUri", meta.get(OLD))


@ambient("apps-tool-meta-shape", "apps-uri-scheme", "apps-deprecated-uri", "apps-checks-client")
def names_pages_in_the_right_form(record: Record) -> Iterator[Seen]:
    """Tools name their pages by URIs with ui://, and only to clients that have pages."""
    for n, asked, tool in _tools(record):
        meta, name = object_in(tool, "_meta"), brief(tool.get("name"))
        if not {"ui", OLD} & {*meta}:
            continue
        ui, page = meta.get("ui", {}), _page(tool)
        shown = object_in(ui).get("visibility", [])
        fine = isinstance(ui, dict) and isinstance(page, str | None) and isinstance(shown, list)
        fine = fine and all(word in ("model", "app") for word in shown)
        yield Seen(
            "apps-tool-meta-shape",
            fine,
            n,
            "an object with resourceUri and visibility",
            brief(meta, 120),
        )
        if not isinstance(page, str):
            continue
        yield Seen(
            "apps-uri-scheme",
            page.startswith(SCHEME),
            n,
            "a URI with ui://",
            f"{name}: {brief(page)}",
        )
        nested = "resourceUri" in object_in(ui)
        yield Seen(
            "apps-deprecated-uri",
            nested,
            n,
            "_meta.ui.resourceUri",
            f"{name}: _meta[{OLD!r}] alone",
        )
        able = EXTENSION in object_in(record.declared(asked), "extensions")
        yield Seen("apps-checks-client", able, n, "no page for a client without pages", brief(page))


def _tools(record: Record) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield the listed tools, each with the line of the list and that of the request."""
    for entry, message in record.answers(Kind.RESULT, "tools/list"):
        tools = object_in(message.value, "result").get("tools")
        if isinstance(tools, list):
            for tool in tools:
                if isinstance(tool, dict):
                    yield entry.n, message.answers or 0, tool


@ambient("apps-listed-mime-type", "apps-resource-meta-shape", "apps-mime-type", "apps-html")
def writes_pages_in_the_right_form(record: Record) -> Iterator[Seen]:
    """Pages have their type, their settings, and a document."""
    for message, place, item in each(record, "Resource", "ResourceContents"):
        uri, n = item.get("uri"), message.entry.n
        if not isinstance(uri, str) or not uri.startswith(SCHEME):
            continue
        if "ui" in object_in(item, "_meta"):
            wrong = _faults(item["_meta"]["ui"])
            actual = f"{place}: {', '.join(wrong)}"
            yield Seen(
                "apps-resource-meta-shape", not wrong, n, "settings in the right types", actual
            )
        kind = item.get("mimeType")
        actual = f"{place}: {brief(kind)}"
        if message.method == "resources/list":
            yield Seen("apps-listed-mime-type", kind == TYPE, n, TYPE, actual)
        if message.method == "resources/read":
            same = isinstance(kind, str) and re.sub(r'[\s"]', "", kind).lower() == TYPE
            mild = Breach.WARN if same else None
            yield Seen("apps-mime-type", kind == TYPE, n, TYPE, actual, mild=mild)
            text = _text(item)
            passed = text is not None and DOCTYPE.match(text) is not None
            mild = Breach.WARN if text is not None and TAG.search(text) else None
            yield Seen(
                "apps-html", passed, n, "an HTML document", f"{place}: {brief(text)}", mild=mild
            )


def _text(contents: dict[str, Any]) -> str | None:
    """Return the document of a page; None if there is none."""
    if isinstance(text := contents.get("text"), str):
        return text
    try:
        return base64.b64decode(contents.get("blob", 0)).decode()
    except (TypeError, binascii.Error, ValueError):
        return None


def _faults(ui: Any) -> list[str]:
    """Return the settings of a page that have a wrong type."""
    if not isinstance(ui, dict):
        return [f"ui {brief(ui)}"]
    wrong = []
    for member, kind in (("csp", dict), ("permissions", dict), ("domain", str)):
        if not isinstance(ui.get(member, kind()), kind):
            wrong.append(f"{member} {brief(ui[member])}")
    if not isinstance(ui.get("prefersBorder", True), bool):
        wrong.append(f"prefersBorder {brief(ui['prefersBorder'])}")
    csp, permissions = object_in(ui, "csp"), object_in(ui, "permissions")
    for member in ORIGINS:
        value = csp.get(member, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            wrong.append(f"csp.{member} {brief(value)}")
    wrong += [
        f"permissions.{member} {brief(permissions[member])}"
        for member in PERMISSIONS
        if not isinstance(permissions.get(member, {}), dict)
    ]
    return wrong


@ambient("apps-content-returned")
def returns_content_beside_a_page(record: Record) -> Iterator[Seen]:
    """The result of a tool with a page has content for a client without pages."""
    spoken = record.profile.spoken.get(record.revision)
    named = {t["name"] for t in (spoken.named("tools") if spoken else ()) if _page(t)}
    named |= {t["name"] for *_, t in _tools(record) if _page(t) and isinstance(t.get("name"), str)}
    for entry, message in record.answers(Kind.RESULT, "tools/call") if named else ():
        asked = record.asked_on(message.answers)
        params, result = object_in(asked and asked.value, "params"), message.value["result"]
        if params.get("name") not in named:
            continue
        if object_in(result).get("resultType", "complete") == "complete" and "task" not in params:
            content = object_in(result).get("content")
            passed = isinstance(content, list) and bool(content)
            yield Seen(
                "apps-content-returned",
                passed,
                entry.n,
                "content that is not empty",
                brief(result, 80),
            )


@scenario("apps-resource-exists", place=Place.SEVERAL)
def serves_the_pages_that_it_names(talk: Conversation) -> None:
    """Each page that a tool names, or that is listed, can be read."""
    tools = _tools_with_pages(talk)
    listed = [r.get("uri") for r in _items(talk, "resources/list", "resources")]
    pages = dict.fromkeys(u for u in (*tools.values(), *listed) if isinstance(u, str))
    for uri in [page for page in pages if page.startswith(SCHEME)][:READ]:
        reply = talk.wire.request("resources/read", {"uri": uri})
        _judge_page(talk, reply, uri)
    talk.judge.unseen("apps-resource-exists", "no tool names a page, and none is listed")


@scenario("apps-content-returned", place=Place.SEVERAL)
def returns_content_from_tools_with_pages(talk: Conversation) -> None:
    """A call of a tool with a page returns content."""
    tools = _tools_with_pages(talk)
    for call in talk.examples("callable-tool"):
        if call.name in tools:
            content = (talk.run(call, required=False).result or {}).get("content", [None])
            passed, expected = content != [], "content that is not empty"
            talk.judge(
                "apps-content-returned", passed, expected=expected, at=len(talk.wire.transcript)
            )
    talk.judge.unseen("apps-content-returned", "no tool with a page may be called")


def _tools_with_pages(talk: Conversation) -> dict[str, str]:
    """Return the pages by tool, as the server lists them to a client with the extension."""
    client = willing(talk.revision)
    extensions = {"extensions": {EXTENSION: {"mimeTypes": [TYPE]}}}
    able: Client = replace(client, capabilities={**client.capabilities, **extensions})
    talk.need(talk.server.reopen(able), "the opening as a client with the extension")
    listed = ((t.get("name"), _page(t)) for t in _items(talk, "tools/list", "tools"))
    return {n: page for n, page in listed if isinstance(n, str) and isinstance(page, str)}


def _items(talk: Conversation, method: str, member: str) -> list[dict[str, Any]]:
    return [*listings.items(read_pages(talk.wire, method), member)]


def _judge_page(talk: Conversation, reply: Reply, uri: str) -> None:
    passed = bool(list_in(reply.result, "contents"))
    talk.judge.expect(reply, "apps-resource-exists", passed, f"the page {brief(uri)}")
