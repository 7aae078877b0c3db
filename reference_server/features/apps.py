"""MCP Apps (SEP-1865): a page that shows the result of ``workspace_digest``.

Source: ext-apps, specification/2026-01-26/apps.mdx. Offered with ``--feature apps``, since
2025-06-18, which is the first revision whose tools have ``_meta``. The tool names the page only to
clients that declare the extension.
"""

from __future__ import annotations

from ..protocol.revisions import ALL, MODERN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..protocol.calls import Call, Handler
    from ..surface import Surface

EXTENSION = "io.modelcontextprotocol/ui"
SINCE = "2025-06-18"
TOOL = "workspace_digest"
TYPE = "text/html;profile=mcp-app"
PAGE = {
    "uri": "ui://mcp-touchstone/digest",
    "name": "digest",
    "description": "Shows the digest of a tree.",
    "mimeType": TYPE,
}
HTML = """\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Digest of a tree</title></head>
<body>
<p>Directory: <output id="path"></output></p>
<p>SHA-256: <output id="sha256"></output></p>
<script>
const say = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
addEventListener("message", ({ source, data }) => {
  if (source !== parent) return;
  if (data.id === 1) say({ method: "ui/notifications/initialized", params: {} });
  if (data.method !== "ui/notifications/tool-result") return;
  for (const name of ["path", "sha256"])
    document.getElementById(name).value = data.params.structuredContent?.[name] ?? "";
});
say({ id: 1, method: "ui/initialize", params: {
  protocolVersion: "2026-01-26", appCapabilities: {},
  appInfo: { name: "digest", version: "1" } } });
</script>
</body>
</html>
"""


def feature(surface: Surface) -> None:
    methods = surface.methods
    declared = {**methods.capabilities(MODERN[0]).get("extensions", {}), EXTENSION: {}}
    methods.capability("extensions", declared, MODERN)
    revisions = [revision for revision in ALL if revision >= SINCE]
    methods.around("tools/list", revisions, _list_tools)
    methods.around("resources/list", revisions, _list_resources)
    methods.around("resources/read", revisions, _read)


def _list_tools(inner: Handler, call: Call) -> dict[str, Any] | None:
    found = inner(call)
    extensions = call.client_capabilities.get("extensions")
    if found is not None and isinstance(extensions, dict) and EXTENSION in extensions:
        for tool in found["tools"]:
            if tool["name"] == TOOL:
                tool["_meta"] = {"ui": {"resourceUri": PAGE["uri"], "visibility": ["model", "app"]}}
    return found


def _list_resources(inner: Handler, call: Call) -> dict[str, Any] | None:
    found = inner(call)
    if found is not None and "nextCursor" not in found:
        found["resources"].append(PAGE)
    return found


def _read(inner: Handler, call: Call) -> dict[str, Any] | None:
    if call.params.get("uri") != PAGE["uri"]:
        return inner(call)
    meta = {"ui": {"csp": {}, "prefersBorder": True}}
    contents = {"uri": PAGE["uri"], "mimeType": TYPE, "text": HTML, "_meta": meta}
    return {"contents": [contents]}
