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
    controls,
    edits,
    encode,
    has,
    is_modern,
    meta,
    mutant,
    mutants,
    on,
    params,
    puts,
    refusal,
)

OLD = "2024-11-05"
ITEMS = "2025-06-18"


class _Listed(Fault):
    """Changes its answers to tools/list."""

    said = on("tools/list", lambda self, result: self.spoil(result))

    def spoil(self, result: Json) -> None:
        """Change the result."""


class _Keyed(_Listed):
    """Puts keys into the _meta of each tool it lists."""

    own: ClassVar[Json] = {}

    def spoil(self, result: Json) -> None:
        for tool in result["tools"]:
            tool["_meta"] = {**tool.get("_meta", {}), **self.own}


mutants("meta-object", of=_Listed)(
    WritesANullMetaInATool=has(
        "Writes the missing _meta of a tool as null.", spoil=puts("tools", 0, "_meta", None)
    ),
    WritesItsMetaAsAList=has(
        "Gives the _meta of a result as a list of pairs.",
        MODERN,
        spoil=puts("_meta", [["cost", 1]]),
    ),
)


@mutant("meta-object", revision=MODERN)
class WritesANullMetaInAResource(AskingTool):
    """Writes the missing _meta of an embedded resource as null."""

    def on_ask(self, request: Json) -> None:
        resource = {"uri": "note://1", "text": "nothing to ask", "_meta": None}
        self.answer(request, {"content": [{"type": "resource", "resource": resource}]})


class _Pays(AskingTool):
    """Has a tool that answers with what it cost."""

    content: ClassVar[Json] = {}

    def on_ask(self, request: Json) -> None:
        self.answer(request, {"content": [{"type": "text", "text": "paid"}, self.content]})


_LINK = {"type": "resource_link", "uri": "note://1", "name": "note"}
mutants("meta-object", of=_Pays, revision=ITEMS)(
    WritesTheMetaOfATextAsText=has(
        "Gives the _meta of a text as a string.",
        content={"type": "text", "text": "bill", "_meta": "cost=1"},
    )
)
mutants("meta-object", of=_Pays, revision=MODERN)(
    WritesTheMetaOfALinkAsAList=has(
        "Gives the _meta of a resource link as a list of pairs.",
        content={**_LINK, "_meta": [["cost", 1]]},
    )
)
controls("meta-object", of=_Pays, revision=ITEMS)(
    GivesALinkAnEmptyMeta=has(
        "Gives a resource link an empty _meta.", content={**_LINK, "_meta": {}}
    )
)


@mutant("meta-object", revision=ITEMS)
class WritesANullMetaInAPrompt(Fault, said=on("initialize", puts("capabilities", "prompts", {}))):
    """Writes the missing _meta of a prompt message as null."""

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


controls("meta-object", of=_Listed, revision=OLD)(
    NamesAToolMemberMeta=has(
        "Has tools with a member _meta, in a revision that does not define it there.",
        spoil=edits(puts("tools", 0, "_meta", "cheap"), puts("_meta", {})),
    )
)
mutants("meta-key-format", of=_Keyed, revision=ITEMS)(
    UnderscoresAKey=has(
        "Begins a key with an underscore, like an SDK.", own={"_fastmcp": {"tags": []}}
    ),
    BeginsALabelWithADigit=has(
        "Has a prefix with a label that begins with a digit.", MODERN, own={"com.7zip/level": 1}
    ),
)
controls("meta-key-format", "meta-reverse-dns", "meta-reserved-prefix", of=_Keyed)(
    UsesValidMetaKeys=has(
        "Has keys of every valid form.",
        own={"": 0, "cost": 1, "com.example/": 2, "com.example.mcp/a_b-c.d": 3, "ui/x": 4},
    )
)
mutants("meta-reserved-prefix-2025-06-18", of=_Keyed, revision=ITEMS)(
    UsesADomainOfTheProtocol=has("Has a key under mcp.dev/.", own={"mcp.dev/cost": 1})
)
controls("meta-reserved-prefix-2025-06-18", "meta-key-format", of=_Keyed, revision=ITEMS)(
    EndsItsPrefixWithMcp=has(
        "Has a key under com.example.mcp/, which is not reserved.", own={"com.example.mcp/cost": 1}
    )
)
mutants("meta-reserved-prefix", of=_Keyed)(
    InventsAKeyOfTheProtocol=has(
        "Has a key of its own under io.modelcontextprotocol/.", own={META + "cost": 1}
    ),
    UsesAReservedSecondLabel=has(
        "Has a key under com.mcp.tools/.", MODERN, own={"com.mcp.tools/cost": 1}
    ),
)


@control("meta-reserved-prefix", revision=MODERN)
class UsesAKeyOfAnExtension(_Keyed, own={META + "ui-hint": "wide"}):
    """Has a key of an advertised extension."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "server/discover" and "result" in message:
            message["result"]["capabilities"]["extensions"] = {META + "ui": {}}
        return super().said(message, request)  # type: ignore[no-any-return]


mutants("meta-reverse-dns", of=_Keyed)(
    WritesItsDomainForwards=has("Has a key under example.com/.", own={"example.com/cost": 1})
)


@mutant("meta-reverse-dns", revision=MODERN)
class WritesItsDomainForwardsInAResult(_Listed):
    """Has a key under tools.example.io/ in a stateless result."""

    def spoil(self, result: Json) -> None:
        result.setdefault("_meta", {})["tools.example.io/cost"] = 1


class _Unknown(Fault):
    """Handles an unknown key with a reserved prefix in its own way."""

    def said(self, message: Any, request: Json) -> Out:
        if any("touchstone" in key for key in meta(request)) and "result" in message:
            return self.puzzled(message, request)
        return message  # type: ignore[no-any-return]

    def puzzled(self, message: Json, request: Json) -> Out:
        """Answer a request with such a key."""
        return refusal(request, -32602, "Invalid params: _meta must hold objects")


mutants("meta-no-assumptions", of=_Unknown, revision=ITEMS)(
    RefusesAnUnknownMetaKey="Refuses a reserved key that is not an object."
)


@mutant("meta-no-assumptions", revision=MODERN)
class ListsLessForAnUnknownMetaKey(_Unknown):
    """Lists fewer tools for a request with an unknown reserved key."""

    def puzzled(self, message: Json, request: Json) -> Out:
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


mutants("meta-required-fields", of=_Demands, revision=MODERN)(
    ServesWithoutCapabilities="Treats missing clientCapabilities as empty.",
    ServesWithoutAVersion=has(
        "Treats a missing protocolVersion as its own.", lacking="protocolVersion", filling=MODERN
    ),
)


class _Rejects(_Demands):
    """Refuses incomplete requests with an unusual code."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and self.lacks(message):
            self.refuse(message, -32600, f"Invalid request: no {self.lacking}")
            return None
        return line


mutants("meta-required-fields", of=_Rejects, revision=MODERN, outcome="warn")(
    RefusesAMissingVersionAsLegacy=has(
        "Refuses server/discover without protocolVersion as a request before initialize.",
        lacking="protocolVersion",
    )
)


@mutant("meta-required-fields", revision=MODERN)
class ServesWithoutMeta(ModernOnly):
    """Supports only 2026-07-28, and serves server/discover without _meta."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        bare = isinstance(message, dict) and not message.get("params")
        if bare and message.get("method") == "server/discover":
            own = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
            return encode({**message, "params": {"_meta": own}}).rstrip(b"\n")
        return super().heard(line, message)


mutants("meta-client-info-optional", of=_Rejects, revision=MODERN)(
    RequiresClientInfo=has("Refuses a request without clientInfo.", lacking="clientInfo")
)


class _Prefers(Fault):
    """Treats some clients differently."""

    def said(self, message: Any, request: Json) -> Out:
        if is_modern(request) and request.get("method") == "tools/list" and "result" in message:
            info = meta(request).get(META + "clientInfo")
            if self.minds(info.get("name") if isinstance(info, dict) else None):
                message["result"]["tools"].pop()
        return message  # type: ignore[no-any-return]

    def minds(self, name: Any) -> bool:
        """Whether this client gets less."""
        return bool(name == "claude-code")


mutants("meta-client-info-not-behavioural", of=_Prefers, revision=MODERN)(
    HidesAToolFromOneClient="Lists fewer tools for a client with a certain name.",
    HidesAToolWithoutClientInfo=has(
        "Lists fewer tools for a client without clientInfo.", minds=lambda self, name: name is None
    ),
)


class _Elicits(Interrupts):
    """Has a tool that elicits input if the client can."""

    needed: ClassVar[Json] = {"elicitation": {}}

    def cannot(self, request: Json) -> None:
        data = {"requiredCapabilities": self.needed}
        self.refuse(request, -32021, "Missing required client capability", data)


controls(
    "meta-capabilities-per-request", "meta-missing-capability-error", of=_Elicits, revision=MODERN
)(ElicitsOnlyIfDeclared="Elicits if the request declares elicitation, else refuses with -32021.")
controls("meta-capabilities-per-request", of=_Elicits, revision=MODERN)(
    WorksWithoutElicitation=has(
        "Completes the call of a client without elicitation.", cannot=AskingTool.on_ask
    )
)


@mutant("meta-capabilities-per-request", revision=MODERN)
class RemembersCapabilities(_Elicits):
    """Elicits if any request of the connection declared elicitation."""

    def able(self, request: Json) -> bool:
        known = [client_capabilities(one) for one in self.asked.values()]
        own = client_capabilities(request)
        return elicits(own, "form") or (
            "elicitation" not in own and any(elicits(one, "form") for one in known)
        )


mutants("meta-missing-capability-error", of=_Elicits, revision=MODERN)(
    OmitsRequiredCapabilities=has(
        "Refuses a client without elicitation with -32021 and no data.",
        cannot=lambda self, request: self.refuse(request, -32021, "This client cannot elicit"),
    ),
    RefusesAMissingCapabilityAsInternal=has(
        "Refuses a client without elicitation with -32603.",
        cannot=lambda self, request: self.refuse(
            request, -32603, "Client does not support elicitation"
        ),
    ),
)


@mutant("meta-missing-capability-error", revision=MODERN)
class NamesOneCapabilityAtATime(_Elicits):
    """Requires elicitation first and, if it is declared, sampling."""

    def able(self, request: Json) -> bool:
        return {"elicitation", "sampling"} <= set(client_capabilities(request))

    def cannot(self, request: Json) -> None:
        declared = client_capabilities(request)
        missing = "elicitation" if "elicitation" not in declared else "sampling"
        self.refuse(request, -32021, "Missing", {"requiredCapabilities": {missing: {}}})


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


mutants("meta-server-info-shape", of=_Named, revision=MODERN)(
    OmitsItsVersion=has(
        "Leaves the version out of serverInfo.", changed=lambda self, info: {"name": info["name"]}
    ),
    GivesServerInfoAsText=has(
        "Gives serverInfo as a string.", changed=lambda self, info: info["name"]
    ),
)


PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class _Traced(_Listed):
    """Puts a trace context into its lists."""

    trace: ClassVar[Json] = {}

    def spoil(self, result: Json) -> None:
        result.setdefault("_meta", {}).update(self.trace)


controls("meta-trace-context", of=_Traced, revision=MODERN)(
    WritesATraceContext=has(
        "Writes a trace context with all features of the W3C format.",
        trace={
            "traceparent": PARENT,
            "tracestate": "rojo=00f067aa0ba902b7, tenant@congo=t61rcWkgMzE,",
            "baggage": "userId=am%C3%A9lie , serverNode=DF%2028;secret;ttl=1",
        },
    )
)
mutants("meta-trace-context", of=_Traced, revision=MODERN)(
    WritesABareTraceId=has(
        "Writes only the trace id into traceparent.",
        trace={"traceparent": "4bf92f3577b34da6a3ce929d0e0e4736"},
    ),
    WritesAnEmptyTrace=has(
        "Writes a traceparent of zeros without a trace.",
        trace={"traceparent": f"00-{'0' * 32}-{'0' * 16}-00"},
    ),
    WritesTraceStateWithoutAKey=has(
        "Writes only a value into tracestate.",
        trace={"traceparent": PARENT, "tracestate": "00f067aa0ba902b7"},
    ),
    WritesBaggageAsJson=has(
        "Writes the JSON of an object into baggage.", trace={"baggage": '{"userId": "amélie"}'}
    ),
)
mutants("meta-trace-context", of=Fault, revision=MODERN)(
    RefusesATraceContext=has(
        "Refuses a request with an unknown key in _meta, such as traceparent.",
        said=lambda self, message, request: (
            refusal(request, -32602, "Invalid params: unknown key traceparent in _meta")
            if "traceparent" in meta(request) and "result" in message
            else message
        ),
    )
)
