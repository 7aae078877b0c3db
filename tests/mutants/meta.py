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
    """Puts keys of its own into the _meta of each tool it lists."""

    own: ClassVar[Json] = {}

    def spoil(self, result: Json) -> None:
        for tool in result["tools"]:
            tool["_meta"] = {**tool.get("_meta", {}), **self.own}


# --- what _meta is


@mutant("meta-object")
class WritesANullMetaInATool(_Listed):
    """Writes out the _meta that a tool does not have, as null."""

    def spoil(self, result: Json) -> None:
        result["tools"][0]["_meta"] = None


@mutant("meta-object", revision=OLD)
class WritesANullMetaInAResult(_Listed):
    """Writes out the _meta that a result does not have, as null."""

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
    """Writes out the _meta that an embedded resource does not have, as null."""

    def on_ask(self, request: Json) -> None:
        resource = {"uri": "note://1", "text": "nothing to ask", "_meta": None}
        self.answer(request, {"content": [{"type": "resource", "resource": resource}]})


@mutant("meta-object", revision=ITEMS)
class WritesANullMetaInAPrompt(Fault):
    """Writes out the _meta that the message of a prompt does not have, as null."""

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
    """Tells of changes of its tools with a _meta of null."""

    open = False

    def heard(self, line: bytes, message: Any) -> bytes | None:
        method = message.get("method") if isinstance(message, dict) else None
        self.open = self.open or method == "notifications/initialized"
        if self.open and method == "tools/list":
            changed = "notifications/tools/list_changed"
            self.tell({"jsonrpc": "2.0", "method": changed, "params": {"_meta": None}})
        return line


@control("meta-object", revision=OLD)
class NamesAToolMemberMeta(_Listed):
    """Has tools with a member _meta, before it meant anything there."""

    def spoil(self, result: Json) -> None:
        result["tools"][0]["_meta"] = "cheap"
        result["_meta"] = {}


# --- what its keys are called


@mutant("meta-key-format", revision=ITEMS)
class UnderscoresAKey(_Keyed):
    """Marks a key as its own with an underscore, as an SDK did."""

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
class NamesItsKeysProperly(_Keyed):
    """Has keys of every proper form."""

    own: ClassVar[Json] = {
        "": 0,
        "cost": 1,
        "com.example/": 2,
        "com.example.mcp/a_b-c.d": 3,
        "ui/x": 4,
    }


@mutant("meta-reserved-prefix-2025-06-18", revision=ITEMS)
class TakesADomainOfTheProtocol(_Keyed):
    """Has a key under mcp.dev/."""

    own: ClassVar[Json] = {"mcp.dev/cost": 1}


@control("meta-reserved-prefix-2025-06-18", "meta-key-format", revision=ITEMS)
class EndsItsPrefixWithMcp(_Keyed):
    """Has a key under com.example.mcp/, which is nobody else's."""

    own: ClassVar[Json] = {"com.example.mcp/cost": 1}


@mutant("meta-reserved-prefix")
class InventsAKeyOfTheProtocol(_Keyed):
    """Has a key of its own under io.modelcontextprotocol/."""

    own: ClassVar[Json] = {META + "cost": 1}


@mutant("meta-reserved-prefix", revision=MODERN)
class TakesAReservedSecondLabel(_Keyed):
    """Has a key under com.mcp.tools/."""

    own: ClassVar[Json] = {"com.mcp.tools/cost": 1}


@control("meta-reserved-prefix", revision=MODERN)
class UsesAKeyOfAnExtension(_Keyed):
    """Has a key that the extension it advertises defines."""

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
    """Meets an unknown key under the protocol's prefix."""

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
    """Takes every reserved key for an object."""


@mutant("meta-no-assumptions")
class BreaksOnAnUnknownMetaKey(_Unknown):
    """Fails inside on a reserved key that is no object."""

    def puzzled(self, message: Json, request: Json) -> Out:
        del message
        return refusal(request, -32603, "Internal error: 'int' object has no attribute 'get'")


@mutant("meta-no-assumptions", revision=MODERN)
class ServesLessToAnUnknownMetaKey(_Unknown):
    """Lists fewer tools to a request with a reserved key it does not know."""

    def puzzled(self, message: Json, request: Json) -> Out:
        del request
        message["result"].get("tools", []).clear()
        return message


class _Demands(Fault):
    """Fills in what a request lacks, or refuses it in its own way."""

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
    """Takes absent clientCapabilities for none."""


@mutant("meta-required-fields", revision=MODERN)
class ServesWithoutAVersion(_Demands):
    """Takes an absent protocolVersion for its own."""

    lacking = "protocolVersion"
    filling = MODERN


class _Rejects(_Demands):
    """Refuses what a request lacks with an unusual code."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and self.lacks(message):
            self.refuse(message, -32600, f"Invalid request: no {self.lacking}")
            return None
        return line


@mutant("meta-required-fields", revision=MODERN)
class CallsAbsentCapabilitiesAnInvalidRequest(_Rejects):
    """Refuses a request without clientCapabilities with -32600."""


@mutant("meta-required-fields", revision=MODERN, outcome="warn")
class TakesAbsentVersionForTheOtherEra(_Rejects):
    """Refuses server/discover without protocolVersion as a request before initialize."""

    lacking = "protocolVersion"


@mutant("meta-required-fields", revision=MODERN)
class TakesAbsentVersionForAnInvalidRequest(_Rejects, ModernOnly):
    """Speaks only 2026-07-28, and refuses a request without protocolVersion with -32600."""

    lacking = "protocolVersion"

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "initialize":
            return ModernOnly.heard(self, line, message)
        return super().heard(line, message)


@mutant("meta-required-fields", revision=MODERN)
class ServesWithoutMeta(ModernOnly):
    """Speaks only 2026-07-28, and serves server/discover without _meta."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        bare = isinstance(message, dict) and not message.get("params")
        if bare and message.get("method") == "server/discover":
            own = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
            return encode({**message, "params": {"_meta": own}}).rstrip(b"\n")
        return super().heard(line, message)


@mutant("meta-client-info-optional", revision=MODERN)
class InsistsOnAClientName(_Rejects):
    """Refuses a request without clientInfo."""

    lacking = "clientInfo"


class _Prefers(_Listed):
    """Treats some clients in another way than others."""

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
    """Lists fewer tools to a client with a certain name."""


@mutant("meta-client-info-not-behavioural", revision=MODERN)
class RefusesOneClient(_Prefers):
    """Serves no client with a certain name."""

    def slighted(self, message: Json, request: Json) -> Out:
        del message
        return refusal(request, -32600, "This client is not supported")


@mutant("meta-client-info-not-behavioural", revision=MODERN)
class HidesAToolFromTheNameless(_Prefers):
    """Lists fewer tools to a client that does not say who it is."""

    def minds(self, name: Any) -> bool:
        return name is None


# --- capabilities of the client, request by request


class _Elicits(Interrupts):
    """Has a tool that asks the user, if the client can do that."""

    needed: ClassVar[Json] = {"elicitation": {}}

    def cannot(self, request: Json) -> None:
        data = {"requiredCapabilities": self.needed}
        self.refuse(request, -32021, "Missing required client capability", data)


@control("meta-capabilities-per-request", "meta-missing-capability-error", revision=MODERN)
class AsksOnlyWhoCanAnswer(_Elicits):
    """Asks a client that declares elicitation in the request, and refuses another with -32021."""


@control("meta-capabilities-per-request", revision=MODERN)
class CopesWithoutAnAnswer(_Elicits):
    """Does its best for a client that cannot be asked."""

    def cannot(self, request: Json) -> None:
        AskingTool.on_ask(self, request)


@mutant("meta-capabilities-per-request", revision=MODERN)
class RemembersCapabilities(_Elicits):
    """Asks a client that declared elicitation in any request of the connection."""

    def able(self, request: Json) -> bool:
        known = [client_capabilities(one) for one in self.asked.values()]
        own = client_capabilities(request)
        return elicits(own, "form") or (
            "elicitation" not in own and any(elicits(one, "form") for one in known)
        )


@mutant("mrtr-undeclared-capability", revision=MODERN)
class AsksWhoeverCalls(_Elicits):
    """Does not look at the capabilities of the client."""

    def able(self, request: Json) -> bool:
        own = client_capabilities(request)
        return "elicitation" not in own or elicits(own, "form")


@mutant("meta-missing-capability-error", revision=MODERN)
class DoesNotSayWhatItNeeds(_Elicits):
    """Refuses a client that cannot be asked with -32021 and no data."""

    def cannot(self, request: Json) -> None:
        self.refuse(request, -32021, "This client cannot elicit")


@mutant("meta-missing-capability-error", revision=MODERN)
class ListsWhatItNeeds(_Elicits):
    """Gives the required capabilities as a list of names."""

    def cannot(self, request: Json) -> None:
        self.refuse(request, -32021, "Missing", {"requiredCapabilities": ["elicitation"]})


@mutant("meta-missing-capability-error", revision=MODERN)
class CallsAMissingCapabilityInternal(_Elicits):
    """Refuses a client that cannot be asked with -32603."""

    def cannot(self, request: Json) -> None:
        self.refuse(request, -32603, "Client does not support elicitation")


@mutant("meta-missing-capability-error", revision=MODERN)
class NamesOneCapabilityAtATime(_Elicits):
    """Asks for elicitation first and, once that is there, for sampling."""

    def able(self, request: Json) -> bool:
        return {"elicitation", "sampling"} <= set(client_capabilities(request))

    def cannot(self, request: Json) -> None:
        declared = client_capabilities(request)
        missing = "elicitation" if "elicitation" not in declared else "sampling"
        self.refuse(request, -32021, "Missing", {"requiredCapabilities": {missing: {}}})


# --- who it is


@mutant("meta-server-info", revision=MODERN)
class AnswersAnonymously(Fault):
    """Says who it is in server/discover only."""

    def said(self, message: Any, request: Json) -> Out:
        if "result" in message and is_modern(request) and request["method"] != "server/discover":
            del message["result"]["_meta"][META + "serverInfo"]
        return message  # type: ignore[no-any-return]


class _Named(Fault):
    """Changes what it says of itself."""

    def said(self, message: Any, request: Json) -> Out:
        if "result" in message and is_modern(request):
            found = message["result"]["_meta"]
            found[META + "serverInfo"] = self.changed(found[META + "serverInfo"])
        return message  # type: ignore[no-any-return]

    def changed(self, info: Json) -> Any:
        """Give what stands in its place."""
        return info


@mutant("meta-server-info-shape", revision=MODERN)
class GivesNoVersionOfItself(_Named):
    """Leaves the version out of serverInfo."""

    def changed(self, info: Json) -> Any:
        return {"name": info["name"]}


@mutant("meta-server-info-shape", revision=MODERN)
class NumbersItsVersion(_Named):
    """Gives its version as a number."""

    def changed(self, info: Json) -> Any:
        return {**info, "version": 1.2}


@mutant("meta-server-info-shape", revision=MODERN)
class GivesItsNameAlone(_Named):
    """Gives its name as a string where an object belongs."""

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
    """Writes a trace context with all that the W3C allows."""

    trace: ClassVar[Json] = {
        "traceparent": PARENT,
        "tracestate": "rojo=00f067aa0ba902b7, tenant@congo=t61rcWkgMzE,",
        "baggage": "userId=am%C3%A9lie , serverNode=DF%2028;secret;ttl=1",
    }


@mutant("meta-trace-context", revision=MODERN)
class WritesABareTraceId(_Traced):
    """Writes the id of the trace alone into traceparent."""

    trace: ClassVar[Json] = {"traceparent": "4bf92f3577b34da6a3ce929d0e0e4736"}


@mutant("meta-trace-context", revision=MODERN)
class WritesAnEmptyTrace(_Traced):
    """Writes a traceparent of zeros when nothing is traced."""

    trace: ClassVar[Json] = {"traceparent": f"00-{'0' * 32}-{'0' * 16}-00"}


@mutant("meta-trace-context", revision=MODERN)
class WritesTraceStateAsAnObject(_Traced):
    """Writes tracestate as an object."""

    trace: ClassVar[Json] = {"traceparent": PARENT, "tracestate": {"rojo": "00f067aa0ba902b7"}}


@mutant("meta-trace-context", revision=MODERN)
class WritesTraceStateWithoutAKey(_Traced):
    """Writes a value alone into tracestate."""

    trace: ClassVar[Json] = {"traceparent": PARENT, "tracestate": "00f067aa0ba902b7"}


@mutant("meta-trace-context", revision=MODERN)
class WritesBaggageAsJson(_Traced):
    """Writes the JSON of an object into baggage."""

    trace: ClassVar[Json] = {"baggage": '{"userId": "amélie"}'}


@mutant("meta-trace-context", revision=MODERN)
class RefusesATraceContext(Fault):
    """Refuses a request whose _meta has a key it does not define, such as traceparent."""

    def said(self, message: Any, request: Json) -> Out:
        if "traceparent" in meta(request) and "result" in message:
            return refusal(request, -32602, "Invalid params: unknown key traceparent in _meta")
        return message  # type: ignore[no-any-return]
