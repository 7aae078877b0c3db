"""Servers that break a rule of MCP Apps."""

from typing import Any

from tests.mutants.kit import (
    MODERN,
    Fault,
    Json,
    Out,
    controls,
    drops,
    has,
    mutants,
    params,
    puts,
    refusal,
)

PAGE = "ui://mcp-touchstone/digest"
META: Json = {"ui": {"resourceUri": PAGE}}


class _Apps(Fault, settings={"features": ("apps",)}):
    """Changes what the reference server says about its page."""

    def said(self, message: Any, request: Json) -> Out:
        if not isinstance(message, dict) or "result" not in message:
            return message
        result, method = message["result"], request.get("method")
        if method == "tools/list":
            for tool in result["tools"]:
                self.any(tool)
                if "ui" in tool.get("_meta", {}):
                    self.tool(tool)
        elif method == "resources/list":
            for page in result["resources"]:
                if page["uri"] == PAGE:
                    self.listed(page)
        elif method == "resources/read" and params(request).get("uri") == PAGE:
            self.read(result["contents"][0])
        elif method == "tools/call" and params(request).get("name") == "workspace_digest":
            self.call(result)
        return message

    def any(self, tool: Json) -> None:
        """Change any tool of a list."""

    def tool(self, tool: Json) -> None:
        """Change the tool that names the page."""

    def listed(self, page: Json) -> None:
        """Change the page in the list of resources."""

    def read(self, page: Json) -> None:
        """Change the contents of the page."""

    def call(self, result: Json) -> None:
        """Change the result of the tool."""


class _Lost(_Apps):
    """Cannot read its page."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "resources/read" and params(request).get("uri") == PAGE:
            return refusal(request, -32602, "Not here")
        return super().said(message, request)


ALL = (
    "apps-tool-meta-shape",
    "apps-uri-scheme",
    "apps-deprecated-uri",
    "apps-resource-exists",
    "apps-mime-type",
    "apps-listed-mime-type",
    "apps-html",
    "apps-resource-meta-shape",
    "apps-content-returned",
    "apps-checks-client",
)
controls(*ALL, of=_Apps)(
    ServesAPage="Serves the page of the reference server.",
    ServesAPageStateless=has("Serves the page, in 2026-07-28.", MODERN),
)


def _every(meta: Json) -> Any:
    """Return the edit that gives the tool a page for every client."""
    return lambda _self, tool: tool["name"] == "workspace_digest" and tool.update(_meta=meta)


mutants("apps-tool-meta-shape", of=_Apps)(
    ShowsAToolToNobody=has(
        "Has another word for visibility.", tool=puts("_meta", "ui", "visibility", ["user"])
    ),
    NamesAPageByNumber=has(
        "Has a number for resourceUri.", tool=puts("_meta", "ui", "resourceUri", 7)
    ),
)
mutants("apps-uri-scheme", of=_Apps)(
    NamesAPageOfTheWeb=has(
        "Names a page by https.",
        tool=puts("_meta", "ui", "resourceUri", "https://example.com/page"),
    )
)
mutants("apps-deprecated-uri", of=_Apps)(
    NamesAPageAsBefore=has(
        "Names its page by the deprecated member alone.",
        tool=puts("_meta", {"ui/resourceUri": PAGE}),
    )
)
mutants("apps-resource-exists", of=_Lost)(
    HasNoPage="Cannot read the page that it lists.",
    HasNoPageStateless=has("Cannot read its page, in 2026-07-28.", MODERN),
)
mutants("apps-mime-type", of=_Apps)(
    ServesAPlainPage=has("Has the type text/html.", read=puts("mimeType", "text/html"))
)
mutants("apps-mime-type", of=_Apps, outcome="warn")(
    SpacesThePageType=has(
        "Has a space in the type.", read=puts("mimeType", "text/html; profile=mcp-app")
    )
)
mutants("apps-listed-mime-type", of=_Apps)(
    ListsAnUntypedPage=has("Lists its page without a type.", listed=drops("mimeType"))
)
mutants("apps-html", of=_Apps)(ServesNoDocument=has("Has no document.", read=puts("text", "{}")))
mutants("apps-html", of=_Apps, outcome="warn")(
    ServesAPartOfADocument=has(
        "Has a document without its first line.", read=puts("text", "<div>Digest</div>")
    )
)
mutants("apps-resource-meta-shape", of=_Apps)(
    NamesOneOrigin=has(
        "Has a string for connectDomains.",
        read=puts("_meta", "ui", "csp", {"connectDomains": "https://example.com"}),
    ),
    WantsTheCameraByWord=has(
        "Has true for the camera.", read=puts("_meta", "ui", "permissions", {"camera": True})
    ),
)
mutants(
    "apps-content-returned", "tools-structured-content-text-copy=warn", of=_Apps, revision=MODERN
)(ReturnsForPagesAlone=has("Has no content.", call=puts("content", [])))
mutants("apps-checks-client", of=_Apps)(
    NamesAPageToAll=has("Names its page to every client.", any=_every(META))
)
