"""Servers that break a rule of basic/jsonrpc about result types and reserved error codes."""

from typing import Any, ClassVar

from tests.mutants.kit import (
    META,
    MODERN,
    AskingTool,
    Fault,
    Json,
    Out,
    control,
    has,
    mutant,
    mutants,
    params,
)


@mutant("jsonrpc-result-type-required", revision=MODERN)
class OmitsTheResultType(AskingTool):
    """Returns the result of a tool without resultType."""

    def on_ask(self, request: Json) -> None:
        info = {"name": "mutant", "version": "1"}
        result = {"content": [], "_meta": {META + "serverInfo": info}}
        self.emit({"jsonrpc": "2.0", "id": request["id"], "result": result})


mutants("jsonrpc-result-type-required", of=AskingTool, revision=MODERN)(
    WritesTheResultTypeAsAFlag=has(
        "Writes true for resultType.",
        on_ask=lambda self, request: self.answer(request, {"content": [], "resultType": True}),
    )
)
mutants("jsonrpc-result-type-known", of=AskingTool, revision=MODERN)(
    InventsAResultType=has(
        "Returns an undefined resultType.",
        on_ask=lambda self, request: self.answer(request, {"content": [], "resultType": "partial"}),
    )
)


class Refuses(AskingTool):
    """Refuses every call of its tool with one error."""

    code: ClassVar[int]
    data: ClassVar[Any] = None

    def on_ask(self, request: Json) -> None:
        self.refuse(request, self.code, "The tool has nothing to ask", self.data)


mutants("jsonrpc-reserved-mcp-codes", of=Refuses, revision=MODERN)(
    UsesACodeReservedForMcp=has("Uses an error code from the range reserved for MCP.", code=-32050)
)
mutants("jsonrpc-defined-codes-meaning", of=Refuses, revision=MODERN)(
    UsesTheHeaderCode=has("Uses the error code for HTTP header mismatches.", code=-32020),
    MissesADeclaredCapability=has(
        "Claims that a client capability is missing, whether it was declared or not.",
        code=-32021,
        data={"requiredCapabilities": {"elicitation": {}}},
    ),
)


@control("jsonrpc-defined-codes-meaning", revision=MODERN)
class MissesAnUndeclaredCapability(AskingTool):
    """Requires a client capability that the checker does not declare."""

    def on_ask(self, request: Json) -> None:
        data: Json = {"requiredCapabilities": {"experimental": {"com.example/x": {}}}}
        self.refuse(request, -32021, "The client lacks com.example/x", data)


mutants("jsonrpc-legacy-code-range", of=Refuses, revision=MODERN)(
    UsesTheLegacyServerError=has("Uses -32000 for every failure, like older SDKs.", code=-32000)
)
mutants("jsonrpc-retired-codes", of=Refuses, revision=MODERN)(
    UsesTheRetiredUrlCode=has(
        "Refuses with -32042 until the user has opened a URL.",
        code=-32042,
        data={"elicitations": []},
    )
)


@mutant("jsonrpc-retired-codes", revision=MODERN)
class UsesTheRetiredNotFoundCode(Fault):
    """Answers an unknown resource with -32002."""

    def said(self, message: Any, request: Json) -> Out:
        read = request.get("method") == "resources/read" and "uri" in params(request)
        if read and "error" in message:
            message["error"] = {"code": -32002, "message": "Resource not found"}
        return message  # type: ignore[no-any-return]


mutants("jsonrpc-app-code-range", of=Refuses, revision=MODERN)(
    UsesACodeReservedForJsonRpc=has(
        "Uses an error code from the range reserved for JSON-RPC.", code=-32500
    )
)
mutants("jsonrpc-reserved-code-range-legacy", of=Refuses)(
    UsesACodeReservedForJsonRpcInASession=has(
        "Uses an error code from the range reserved for JSON-RPC, in a handshake revision.",
        code=-32500,
    )
)
