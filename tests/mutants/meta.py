"""Servers that break a rule of basic/meta."""

from typing import Any, ClassVar

from tests.mutants.asking import Interrupts, elicits
from tests.mutants.kit import (
    META,
    MODERN,
    AskingTool,
    Fault,
    Json,
    ModernOnly,
    Out,
    client_capabilities,
    control,
    encode,
    is_modern,
    meta,
    mutant,
    params,
    refusal,
)

OLD = "2024-11-05"
ITEMS = "2025-06-18"


class _Listed(Fault):
    """Changes its answers to tools/list."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "tools/list" and "result" in message:
            self.spoil(message["result"])
        return message  # type: ignore[no-any-return]

    def spoil(self, result: Json) -> None:
        """Change the result."""


class _Keyed(_Listed):
    """Puts keys into the _meta of each tool it lists."""

    own: ClassVar[Json] = {}

    def spoil(self, result: Json) -> None:
        for tool in result["tools"]:
            tool["_meta"] = {**tool.get("_meta", {}), **self.own}


# --- what _meta is


@mutant("meta-object")
class WritesANullMetaInATool(_Listed):
    """Writes the missing _meta of a tool as null."""

    def spoil(self, result: Json) -> None:
        result["tools"][0]["_meta"] = None


@mutant("meta-object", revision=OLD)
class WritesANullMetaInAResult(_Listed):
    """Writes the missing _meta of a result as null."""

    def spoil(self, result: Json) -> None:
        result["_meta"] = None


@mutant("meta-object", revision=MODERN)
class WritesItsMetaAsAList(_Listed):
    """Gives the _meta of a result as a list of pairs."""

    def spoil(self, result: Json) -> None:
        result["_meta"] = [["cost", 1]]


@mutant("meta-object", revision=MODERN)
class WritesItsMetaAsText(AskingTool):
    """Gives the _meta of a content item as a string."""

    def on_ask(self, request: Json) -> None:
        item = {"type": "text", "text": "nothing to ask", "_meta": "none"}
        self.answer(request, {"content": [item]})


@mutant("meta-object", revision=MODERN)
class WritesANullMetaInAResource(AskingTool):
    """Writes the missing _meta of an embedded resource as null."""

    def on_ask(self, request: Json) -> None:
        resource = {"uri": "note://1", "text": "nothing to ask", "_meta": None}
        self.answer(request, {"content": [{"type": "resource", "resource": resource}]})


@mutant("meta-object", revision=ITEMS)
class WritesANullMetaInAPrompt(Fault):
    """Writes the missing _meta of a prompt message as null."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "initialize" and "result" in message:
            message["result"]["capabilities"]["prompts"] = {}
        return message  # type: ignore[no-any-return]

    def heard(self, line: bytes, message: Any) -> bytes | None:
        method = message.get("method") if isinstance(message, dict) else None
        if method == "prompts/list" and "cursor" in params(message):
            self.refuse(message, -32602, "Unknown cursor")
        elif method == "prompts/list":
            self.answer(message, {"prompts": [{"name": "greet"}]})
        elif method == "prompts/get" and params(message).get("name") == "greet":
            content = {"type": "text", "text": "Say hello.", "_meta": None}
            self.answer(message, {"messages": [{"role": "user", "content": content}]})
        elif method == "prompts/get":
            self.refuse(message, -32602, "Unknown prompt")
        else:
            return line
        return None


@mutant("meta-object")
class NotifiesWithANullMeta(Fault):
    """Announces changed tools with a _meta of null."""

    open = False

    def heard(self, line: bytes, message: Any) -> bytes | None:
        method = message.get("method") if isinstance(message, dict) else None
        self.open = self.open or method == "notifications/initialized"
        if self.open and method == "tools/list":
            changed = "notifications/tools/list_changed"
            self.emit({"jsonrpc": "2.0", "method": changed, "params": {"_meta": None}})
        return line


@control("meta-object", revision=OLD)
class NamesAToolMemberMeta(_Listed):
    """Has tools with a member _meta, in a revision that does not define it there."""

    def spoil(self, result: Json) -> None:
        result["tools"][0]["_meta"] = "cheap"
        result["_meta"] = {}


# --- what its keys are called


@mutant("meta-key-format", revision=ITEMS)
class UnderscoresAKey(_Keyed):
    """Begins a key with an underscore, like an SDK."""

    own: ClassVar[Json] = {"_fastmcp": {"tags": []}}


@mutant("meta-key-format")
class NestsItsPrefix(_Keyed):
    """Puts two slashes into a key."""

    own: ClassVar[Json] = {"com.example/tools/cost": 1}


@mutant("meta-key-format", revision=MODERN)
class BeginsALabelWithADigit(_Keyed):
    """Has a prefix with a label that begins with a digit."""

    own: ClassVar[Json] = {"com.7zip/level": 1}


@control("meta-key-format", "meta-reverse-dns", "meta-reserved-prefix")
class UsesValidMetaKeys(_Keyed):
    """Has keys of every valid form."""

    own: ClassVar[Json] = {
        "": 0,
        "cost": 1,
        "com.example/": 2,
        "com.example.mcp/a_b-c.d": 3,
        "ui/x": 4,
    }


@mutant("meta-reserved-prefix-2025-06-18", revision=ITEMS)
class UsesADomainOfTheProtocol(_Keyed):
    """Has a key under mcp.dev/."""

    own: ClassVar[Json] = {"mcp.dev/cost": 1}


@control("meta-reserved-prefix-2025-06-18", "meta-key-format", revision=ITEMS)
class EndsItsPrefixWithMcp(_Keyed):
    """Has a key under com.example.mcp/, which is not reserved."""

    own: ClassVar[Json] = {"com.example.mcp/cost": 1}


@mutant("meta-reserved-prefix")
class InventsAKeyOfTheProtocol(_Keyed):
    """Has a key of its own under io.modelcontextprotocol/."""

    own: ClassVar[Json] = {META + "cost": 1}


@mutant("meta-reserved-prefix", revision=MODERN)
class UsesAReservedSecondLabel(_Keyed):
    """Has a key under com.mcp.tools/."""

    own: ClassVar[Json] = {"com.mcp.tools/cost": 1}


@control("meta-reserved-prefix", revision=MODERN)
class UsesAKeyOfAnExtension(_Keyed):
    """Has a key of an advertised extension."""

    own: ClassVar[Json] = {META + "ui-hint": "wide"}

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "server/discover" and "result" in message:
            message["result"]["capabilities"]["extensions"] = {META + "ui": {}}
        return super().said(message, request)


@mutant("meta-reverse-dns")
class WritesItsDomainForwards(_Keyed):
    """Has a key under example.com/."""

    own: ClassVar[Json] = {"example.com/cost": 1}


@mutant("meta-reverse-dns", revision=MODERN)
class WritesItsDomainForwardsInAResult(_Listed):
    """Has a key under tools.example.io/ in a stateless result."""

    def spoil(self, result: Json) -> None:
        result.setdefault("_meta", {})["tools.example.io/cost"] = 1


# --- what it reads in that of others


class _Unknown(Fault):
    """Handles an unknown key with a reserved prefix in its own way."""

    def said(self, message: Any, request: Json) -> Out:
        if any("touchstone" in key for key in meta(request)) and "result" in message:
            return self.puzzled(message, request)
        return message  # type: ignore[no-any-return]

    def puzzled(self, message: Json, request: Json) -> Out:
        """Answer a request with such a key."""
        del message
        return refusal(request, -32602, "Invalid params: _meta must hold objects")


@mutant("meta-no-assumptions", revision=ITEMS)
class RefusesAnUnknownMetaKey(_Unknown):
    """Refuses a reserved key that is not an object."""


@mutant("meta-no-assumptions")
class FailsOnAnUnknownMetaKey(_Unknown):
    """Answers a reserved key that is not an object with an internal error."""

    def puzzled(self, message: Json, request: Json) -> Out:
        del message
        return refusal(request, -32603, "Internal error: 'int' object has no attribute 'get'")


@mutant("meta-no-assumptions", revision=MODERN)
class ListsLessForAnUnknownMetaKey(_Unknown):
    """Lists fewer tools for a request with an unknown reserved key."""

    def puzzled(self, message: Json, request: Json) -> Out:
        del request
        message["result"].get("tools", []).clear()
        return message


class _Demands(Fault):
    """Adds missing members to a request, or refuses it in its own way."""

    lacking: ClassVar[str] = "clientCapabilities"
    filling: ClassVar[Any] = {}

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and self.lacks(message):
            message["params"]["_meta"][META + self.lacking] = self.filling
            return encode(message).rstrip(b"\n")
        return line

    def lacks(self, message: Json) -> bool:
        """Whether a request lacks this and only this."""
        found = {key.removeprefix(META) for key in meta(message)}
        wanted = {"protocolVersion", "clientCapabilities"} | {self.lacking}
        return wanted - found == {self.lacking}


@mutant("meta-required-fields", revision=MODERN)
class ServesWithoutCapabilities(_Demands):
    """Treats missing clientCapabilities as empty."""


@mutant("meta-required-fields", revision=MODERN)
class ServesWithoutAVersion(_Demands):
    """Treats a missing protocolVersion as its own."""

    lacking = "protocolVersion"
    filling = MODERN


class _Rejects(_Demands):
    """Refuses incomplete requests with an unusual code."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and self.lacks(message):
            self.refuse(message, -32600, f"Invalid request: no {self.lacking}")
            return None
        return line


@mutant("meta-required-fields", revision=MODERN)
class RefusesMissingCapabilitiesAsInvalid(_Rejects):
    """Refuses a request without clientCapabilities with -32600."""


@mutant("meta-required-fields", revision=MODERN, outcome="warn")
class RefusesAMissingVersionAsLegacy(_Rejects):
    """Refuses server/discover without protocolVersion as a request before initialize."""

    lacking = "protocolVersion"


@mutant("meta-required-fields", revision=MODERN)
class RefusesAMissingVersionAsInvalid(_Rejects, ModernOnly):
    """Supports only 2026-07-28, and refuses a request without protocolVersion with -32600."""

    lacking = "protocolVersion"

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "initialize":
            return ModernOnly.heard(self, line, message)
        return super().heard(line, message)


@mutant("meta-required-fields", revision=MODERN)
class ServesWithoutMeta(ModernOnly):
    """Supports only 2026-07-28, and serves server/discover without _meta."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        bare = isinstance(message, dict) and not message.get("params")
        if bare and message.get("method") == "server/discover":
            own = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
            return encode({**message, "params": {"_meta": own}}).rstrip(b"\n")
        return super().heard(line, message)


@mutant("meta-client-info-optional", revision=MODERN)
class RequiresClientInfo(_Rejects):
    """Refuses a request without clientInfo."""

    lacking = "clientInfo"


class _Prefers(_Listed):
    """Treats some clients differently."""

    def said(self, message: Any, request: Json) -> Out:
        if is_modern(request) and request.get("method") == "tools/list" and "result" in message:
            info = meta(request).get(META + "clientInfo")
            if self.minds(info.get("name") if isinstance(info, dict) else None):
                return self.slighted(message, request)
        return message  # type: ignore[no-any-return]

    def minds(self, name: Any) -> bool:
        """Whether this client gets less."""
        return bool(name == "claude-code")

    def slighted(self, message: Json, request: Json) -> Out:
        """Answer such a client."""
        del request
        message["result"]["tools"].pop()
        return message


@mutant("meta-client-info-not-behavioural", revision=MODERN)
class HidesAToolFromOneClient(_Prefers):
    """Lists fewer tools for a client with a certain name."""


@mutant("meta-client-info-not-behavioural", revision=MODERN)
class RefusesOneClient(_Prefers):
    """Refuses a client with a certain name."""

    def slighted(self, message: Json, request: Json) -> Out:
        del message
        return refusal(request, -32600, "This client is not supported")


@mutant("meta-client-info-not-behavioural", revision=MODERN)
class HidesAToolWithoutClientInfo(_Prefers):
    """Lists fewer tools for a client without clientInfo."""

    def minds(self, name: Any) -> bool:
        return name is None


# --- capabilities of the client, request by request


class _Elicits(Interrupts):
    """Has a tool that elicits input if the client can."""

    needed: ClassVar[Json] = {"elicitation": {}}

    def cannot(self, request: Json) -> None:
        data = {"requiredCapabilities": self.needed}
        self.refuse(request, -32021, "Missing required client capability", data)


@control("meta-capabilities-per-request", "meta-missing-capability-error", revision=MODERN)
class ElicitsOnlyIfDeclared(_Elicits):
    """Elicits if the request declares elicitation, else refuses with -32021."""


@control("meta-capabilities-per-request", revision=MODERN)
class WorksWithoutElicitation(_Elicits):
    """Completes the call of a client without elicitation."""

    def cannot(self, request: Json) -> None:
        AskingTool.on_ask(self, request)


@mutant("meta-capabilities-per-request", revision=MODERN)
class RemembersCapabilities(_Elicits):
    """Elicits if any request of the connection declared elicitation."""

    def able(self, request: Json) -> bool:
        known = [client_capabilities(one) for one in self.asked.values()]
        own = client_capabilities(request)
        return elicits(own, "form") or (
            "elicitation" not in own and any(elicits(one, "form") for one in known)
        )


@mutant("mrtr-undeclared-capability", revision=MODERN)
class ElicitsFromEveryCaller(_Elicits):
    """Elicits without regard to the client's capabilities."""

    def able(self, request: Json) -> bool:
        own = client_capabilities(request)
        return "elicitation" not in own or elicits(own, "form")


@mutant("meta-missing-capability-error", revision=MODERN)
class OmitsRequiredCapabilities(_Elicits):
    """Refuses a client without elicitation with -32021 and no data."""

    def cannot(self, request: Json) -> None:
        self.refuse(request, -32021, "This client cannot elicit")


@mutant("meta-missing-capability-error", revision=MODERN)
class ListsRequiredCapabilities(_Elicits):
    """Gives the required capabilities as a list of names."""

    def cannot(self, request: Json) -> None:
        self.refuse(request, -32021, "Missing", {"requiredCapabilities": ["elicitation"]})


@mutant("meta-missing-capability-error", revision=MODERN)
class RefusesAMissingCapabilityAsInternal(_Elicits):
    """Refuses a client without elicitation with -32603."""

    def cannot(self, request: Json) -> None:
        self.refuse(request, -32603, "Client does not support elicitation")


@mutant("meta-missing-capability-error", revision=MODERN)
class NamesOneCapabilityAtATime(_Elicits):
    """Requires elicitation first and, if it is declared, sampling."""

    def able(self, request: Json) -> bool:
        return {"elicitation", "sampling"} <= set(client_capabilities(request))

    def cannot(self, request: Json) -> None:
        declared = client_capabilities(request)
        missing = "elicitation" if "elicitation" not in declared else "sampling"
        self.refuse(request, -32021, "Missing", {"requiredCapabilities": {missing: {}}})


# --- who it is


@mutant("meta-server-info", revision=MODERN)
class AnswersAnonymously(Fault):
    """Sends serverInfo only in server/discover."""

    def said(self, message: Any, request: Json) -> Out:
        if "result" in message and is_modern(request) and request["method"] != "server/discover":
            del message["result"]["_meta"][META + "serverInfo"]
        return message  # type: ignore[no-any-return]


class _Named(Fault):
    """Changes its serverInfo."""

    def said(self, message: Any, request: Json) -> Out:
        if "result" in message and is_modern(request):
            found = message["result"]["_meta"]
            found[META + "serverInfo"] = self.changed(found[META + "serverInfo"])
        return message  # type: ignore[no-any-return]

    def changed(self, info: Json) -> Any:
        """Return what replaces it."""
        return info


@mutant("meta-server-info-shape", revision=MODERN)
class OmitsItsVersion(_Named):
    """Leaves the version out of serverInfo."""

    def changed(self, info: Json) -> Any:
        return {"name": info["name"]}


@mutant("meta-server-info-shape", revision=MODERN)
class NumbersItsVersion(_Named):
    """Gives its version as a number."""

    def changed(self, info: Json) -> Any:
        return {**info, "version": 1.2}


@mutant("meta-server-info-shape", revision=MODERN)
class GivesServerInfoAsText(_Named):
    """Gives serverInfo as a string."""

    def changed(self, info: Json) -> Any:
        return info["name"]


# --- trace context

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class _Traced(_Listed):
    """Puts a trace context into its lists."""

    trace: ClassVar[Json] = {}

    def spoil(self, result: Json) -> None:
        result.setdefault("_meta", {}).update(self.trace)


@control("meta-trace-context", revision=MODERN)
class WritesATraceContext(_Traced):
    """Writes a trace context with all features of the W3C format."""

    trace: ClassVar[Json] = {
        "traceparent": PARENT,
        "tracestate": "rojo=00f067aa0ba902b7, tenant@congo=t61rcWkgMzE,",
        "baggage": "userId=am%C3%A9lie , serverNode=DF%2028;secret;ttl=1",
    }


@mutant("meta-trace-context", revision=MODERN)
class WritesABareTraceId(_Traced):
    """Writes only the trace id into traceparent."""

    trace: ClassVar[Json] = {"traceparent": "4bf92f3577b34da6a3ce929d0e0e4736"}


@mutant("meta-trace-context", revision=MODERN)
class WritesAnEmptyTrace(_Traced):
    """Writes a traceparent of zeros without a trace."""

    trace: ClassVar[Json] = {"traceparent": f"00-{'0' * 32}-{'0' * 16}-00"}


@mutant("meta-trace-context", revision=MODERN)
class WritesTraceStateAsAnObject(_Traced):
    """Writes tracestate as an object."""

    trace: ClassVar[Json] = {"traceparent": PARENT, "tracestate": {"rojo": "00f067aa0ba902b7"}}


@mutant("meta-trace-context", revision=MODERN)
class WritesTraceStateWithoutAKey(_Traced):
    """Writes only a value into tracestate."""

    trace: ClassVar[Json] = {"traceparent": PARENT, "tracestate": "00f067aa0ba902b7"}


@mutant("meta-trace-context", revision=MODERN)
class WritesBaggageAsJson(_Traced):
    """Writes the JSON of an object into baggage."""

    trace: ClassVar[Json] = {"baggage": '{"userId": "amélie"}'}


@mutant("meta-trace-context", revision=MODERN)
class RefusesATraceContext(Fault):
    """Refuses a request with an unknown key in _meta, such as traceparent."""

    def said(self, message: Any, request: Json) -> Out:
        if "traceparent" in meta(request) and "result" in message:
            return refusal(request, -32602, "Invalid params: unknown key traceparent in _meta")
        return message  # type: ignore[no-any-return]
