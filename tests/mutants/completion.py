"""Servers that break a rule of server/completion."""

from pathlib import Path
from typing import Any

from tests.mutants.kit import (
    MODERN,
    Fault,
    Json,
    Out,
    control,
    controls,
    has,
    is_modern,
    mutant,
    mutants,
    params,
    puts,
    refusal,
)

OLD = "2024-11-05"
METHOD = "completion/complete"
PROMPTS = frozenset({"text_editor_guide", "git_workflow", "edit_file"})


class _Completes(Fault):
    """Changes its completions and their declaration."""

    def said(self, message: Any, request: Json) -> Out:
        if not isinstance(message, dict) or "method" in message:
            return message
        if request.get("method") in {"initialize", "server/discover"} and "result" in message:
            self.declare(message["result"]["capabilities"])
        if request.get("method") != METHOD:
            return message
        if "result" in message:
            self.spoil(message["result"]["completion"])
        return self.changed(message, request)

    def declare(self, capabilities: Json) -> None:
        """Change the capabilities."""

    def spoil(self, completion: Json) -> None:
        """Change a completion."""

    def changed(self, message: Json, request: Json) -> Out:
        """Change the answer."""
        return message

    def give(self, request: Json, *values: str) -> Json:
        """Build a completion in place of an answer."""
        result: Json = {"completion": {"values": list(values), "hasMore": False}}
        if is_modern(request):
            info = {"name": "mutant", "version": "1"}
            own = {"io.modelcontextprotocol/serverInfo": info}
            result = {"resultType": "complete", "_meta": own, **result}
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}


class _Undeclared(_Completes):
    """Does not declare completions."""

    def declare(self, capabilities: Json) -> None:
        capabilities.pop("completions", None)


mutants("completion-capability-declared", of=_Undeclared)(
    CompletesUndeclared="Completes without declaring completions.",
    CompletesUndeclaredStateless=has(
        "Completes in 2026-07-28 without declaring completions.", MODERN
    ),
)
controls(
    "completion-capability-declared", "completion-undeclared-method-not-found", of=_Undeclared
)(
    HasNoCompletion=has(
        "Has no completions and no completion/complete.",
        changed=lambda self, message, request: refusal(request, -32601, "Method not found"),
    )
)
mutants("completion-undeclared-method-not-found", of=_Undeclared)(
    CompletesNothing=has(
        "Gives empty completions without declaring them.",
        changed=lambda self, message, request: self.give(request),
    ),
    RefusesCompletionAsInternalError=has(
        "Answers completion/complete with -32603 without having completions.",
        MODERN,
        changed=lambda self, message, request: refusal(request, -32603, "NotImplementedError"),
    ),
)
mutants("completion-result-shape", of=_Completes, revision=OLD)(
    WritesATotalOfNull=has("Writes an unknown total as null.", spoil=puts("total", None)),
    CountsInHasMore=has(
        "Gives the number of further values as hasMore.", MODERN, spoil=puts("hasMore", 0)
    ),
)


class _Many(_Completes):
    """Suggests many values."""

    MANY = 101

    def spoil(self, completion: Json) -> None:
        completion["values"] = [f"value {n}" for n in range(self.MANY)]
        completion["total"] = 500
        completion["hasMore"] = completion["total"] > self.MANY


mutants("completion-max-100-values", of=_Many)(
    SuggestsTooMuch="Suggests 101 values.",
    SuggestsEverything=has("Suggests all values at once.", MODERN, MANY=500),
)
controls("completion-max-100-values", of=_Many, revision=OLD)(
    SuggestsAHundred=has("Suggests 100 of 500 values.", MANY=100)
)


class _WantsText(_Completes):
    """Completes no empty value."""

    code = -32603

    def changed(self, message: Json, request: Json) -> Out:
        empty = "result" in message and params(request)["argument"]["value"] == ""
        return refusal(request, self.code, "expected <= 100 items") if empty else message


mutants("completion-listed-argument", of=_WantsText)(
    FailsOnTooManyValues="Answers a completion of an empty value by an internal error.",
    RefusesAnEmptyValue=has(
        "Refuses a completion of an empty value as invalid.", MODERN, code=-32602
    ),
)
mutants("completion-total-has-more-consistent", of=_Completes)(
    CountsTheRest=has("Gives the number of omitted values as total.", spoil=puts("total", 0))
)


@mutant("completion-total-has-more-consistent", revision=MODERN)
class DeniesFurtherValues(_Completes):
    """Gives hasMore false although total is larger than the number of values."""

    def spoil(self, completion: Json) -> None:
        completion.update(total=len(completion["values"]) + 5, hasMore=False)


@mutant("completion-total-has-more-consistent")
class PromisesMoreThanAll(_Completes):
    """Gives hasMore true although the values sent are as many as total."""

    def spoil(self, completion: Json) -> None:
        completion.update(total=len(completion["values"]), hasMore=True)


@control("completion-total-has-more-consistent", revision=OLD)
class OmitsTheTotal(_Completes):
    """Gives hasMore true without a total."""

    def spoil(self, completion: Json) -> None:
        completion.pop("total", None)
        completion["hasMore"] = True


mutants("completion-unknown-prompt-error", of=_Completes)(
    CompletesUnknownPrompts=has(
        "Gives an empty completion for an unknown prompt.",
        changed=lambda self, message, request: (
            self.give(request) if _is_unknown(request) else message
        ),
    )
)
mutants("completion-unknown-prompt-error", of=_Completes, revision=MODERN)(
    FailsOnUnknownPrompts=has(
        "Answers an unknown prompt with -32603.",
        changed=lambda self, message, request: (
            refusal(request, -32603, "KeyError") if _is_unknown(request) else message
        ),
    )
)


def _is_unknown(request: Json) -> bool:
    ref = params(request).get("ref")
    if not isinstance(ref, dict) or ref.get("type") != "ref/prompt":
        return False
    return ref.get("name") not in PROMPTS


mutants("completion-missing-arguments-error", of=_Completes)(
    FailsOnMissingParams=has(
        "Answers a request without its params with -32603.",
        changed=lambda self, message, request: (
            message
            if {"ref", "argument"} <= set(params(request))
            else refusal(request, -32603, "KeyError")
        ),
    )
)


@mutant("completion-missing-arguments-error", revision=MODERN)
class AcceptsAMissingValue(_Completes):
    """Completes an argument without a value."""

    def changed(self, message: Json, request: Json) -> Out:
        argument = params(request).get("argument")
        without = isinstance(argument, dict) and "value" not in argument
        return self.give(request, "a") if without else message


mutants("completion-context-accepted", of=_Completes)(
    RejectsContext=has(
        "Rejects a request that has context.",
        changed=lambda self, message, request: (
            refusal(request, -32602, "Unrecognized key: context")
            if "context" in params(request)
            else message
        ),
    )
)


@mutant("completion-resource-ref-forms")
class LooksUpTemplatesAsResources(_Completes):
    """Looks a template up among the resources."""

    def changed(self, message: Json, request: Json) -> Out:
        ref = params(request).get("ref")
        if isinstance(ref, dict) and ref.get("type") == "ref/resource":
            return refusal(request, -32602, f"Resource {ref.get('uri')} not found")
        return message


@control("completion-resource-ref-forms", revision=MODERN)
class CompletesPromptsOnly(_Completes):
    """Refuses every reference to a resource, listed or not."""

    def changed(self, message: Json, request: Json) -> Out:
        ref = params(request).get("ref")
        if isinstance(ref, dict) and ref.get("type") == "ref/resource":
            return refusal(request, -32602, "Only prompts are completed")
        return message


@mutant("completion-validate-inputs")
class CompletesAnyPath(_Completes):
    """Suggests the files of any folder."""

    def changed(self, message: Json, request: Json) -> Out:
        argument = params(request).get("argument")
        typed = argument.get("value") if isinstance(argument, dict) else None
        if isinstance(typed, str) and typed.startswith("/") and Path(typed).is_dir():
            return self.give(request, *(file.name for file in Path(typed).iterdir()))
        return message


@mutant("completion-validate-inputs", revision=MODERN)
class HangsOnALongValue(_Completes):
    """Does not answer if a value is very long."""

    def changed(self, message: Json, request: Json) -> Out:
        argument = params(request).get("argument")
        typed = argument.get("value") if isinstance(argument, dict) else None
        return None if isinstance(typed, str) and len(typed) > 8000 else message


@mutant("completion-validate-inputs", revision=OLD, outcome="warn")
class CompletesANumber(_Completes):
    """Completes a number as if it were text."""

    def changed(self, message: Json, request: Json) -> Out:
        argument = params(request).get("argument")
        typed = argument.get("value") if isinstance(argument, dict) else None
        return self.give(request, "42") if typed == 42 else message
