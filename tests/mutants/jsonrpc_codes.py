"""Servers that break a rule of basic/jsonrpc about result types and reserved error codes."""

from typing import Any, ClassVar

from tests.mutants.kit import (
    LEGACY,
    META,
    MODERN,
    AskingTool,
    Fault,
    Json,
    Out,
    control,
    mutant,
    params,
)


@mutant("jsonrpc-result-type-required", revision=MODERN)
class LeavesTheResultTypeOut(AskingTool):
    """Returns the result of a tool without resultType, as in the revisions before."""

    def on_ask(self, request: Json) -> None:
        info = {"name": "mutant", "version": "1"}
        result = {"content": [], "_meta": {META + "serverInfo": info}}
        self.tell({"jsonrpc": "2.0", "id": request["id"], "result": result})


@mutant("jsonrpc-result-type-required", revision=MODERN)
class WritesTheResultTypeAsAFlag(AskingTool):
    """Writes true for resultType."""

    def on_ask(self, request: Json) -> None:
        self.answer(request, {"content": [], "resultType": True})


@mutant("jsonrpc-result-type-known", revision=MODERN)
class InventsAResultType(AskingTool):
    """Returns a resultType that nobody defines."""

    def on_ask(self, request: Json) -> None:
        self.answer(request, {"content": [], "resultType": "partial"})


class Refuses(AskingTool):
    """Refuses every call of its tool with one error."""

    code: ClassVar[int]
    data: ClassVar[Any] = None

    def on_ask(self, request: Json) -> None:
        self.refuse(request, self.code, "The tool has nothing to ask", self.data)


@mutant("jsonrpc-reserved-mcp-codes", revision=MODERN)
class TakesACodeOfMcp(Refuses):
    """Uses a code of the range that is kept for MCP."""

    code = -32050


@mutant("jsonrpc-defined-codes-meaning", revision=MODERN)
class BlamesAHeader(Refuses):
    """Uses the code for HTTP headers that do not match."""

    code = -32020


@mutant("jsonrpc-defined-codes-meaning", revision=MODERN)
class BlamesTheVersion(Refuses):
    """Says that a version is unsupported which it lists as supported."""

    code = -32022
    data: ClassVar[Any] = {"supported": [MODERN], "requested": MODERN}


@mutant("jsonrpc-defined-codes-meaning", revision=MODERN)
class MissesWhatWasDeclared(Refuses):
    """Says that a client capability is missing, whether it was declared or not."""

    code = -32021
    data: ClassVar[Any] = {"requiredCapabilities": {"elicitation": {}}}


@control("jsonrpc-defined-codes-meaning", revision=MODERN)
class MissesWhatWasNotDeclared(AskingTool):
    """Asks for a client capability that no client here declares in full."""

    def on_ask(self, request: Json) -> None:
        data: Json = {"requiredCapabilities": {"experimental": {"com.example/x": {}}}}
        self.refuse(request, -32021, "The client lacks com.example/x", data)


@mutant("jsonrpc-legacy-code-range", revision=MODERN)
class KeepsTheOldServerError(Refuses):
    """Uses -32000 for every failure, as SDKs did."""

    code = -32000


@mutant("jsonrpc-retired-codes", revision=MODERN)
class AsksForAUrlTheOldWay(Refuses):
    """Refuses with -32042 until the user has opened a URL."""

    code = -32042
    data: ClassVar[Any] = {"elicitations": []}


@mutant("jsonrpc-retired-codes", revision=MODERN)
class FindsNoResourceTheOldWay(Fault):
    """Answers resources/read for a resource that does not exist with -32002."""

    def said(self, message: Any, request: Json) -> Out:
        read = request.get("method") == "resources/read" and "uri" in params(request)
        if read and "error" in message:
            message["error"] = {"code": -32002, "message": "Resource not found"}
        return message  # type: ignore[no-any-return]


@mutant("jsonrpc-app-code-range", revision=MODERN)
class TakesACodeOfJsonRpc(Refuses):
    """Uses a code of the range that is kept for JSON-RPC."""

    code = -32500


@mutant("jsonrpc-reserved-code-range-legacy", revision=LEGACY)
class TookACodeOfJsonRpc(Refuses):
    """Uses a code of the range that is kept for JSON-RPC, in a handshake revision."""

    code = -32500
