"""properties/generated: arguments of tools, cursors and URIs."""

from collections.abc import Iterator, Sequence
from typing import Any

from mcp_touchstone.suite import (
    LISTS,
    Conversation,
    Draw,
    Example,
    Found,
    Heard,
    Property,
    Reply,
    Say,
    arguments,
    brief,
    drawn,
    is_read_only,
    scenario,
)

SURVIVED = "generated-arguments-survived"
VALIDATED = "tools-validate-inputs"
GRACEFUL = "pagination-invalid-cursor-graceful"
URIS = "resources-validate-uris"
CALL = "tools/call"
FEW = 3
"""Tools that are called."""


def _edited(talk: Conversation, tools: Sequence[Example], edit: drawn.Edit) -> dict[str, Any]:
    example = tools[edit.tool]
    given = {name: value for name, value in example.arguments.items() if name != edit.name}
    if edit.name and not edit.gone:
        given[edit.name] = edit.value
    return talk.wire.build(CALL, {**example.params, "arguments": given})


def _harmless(talk: Conversation, word: str) -> list[Example]:
    """Give the examples of tools that change nothing, whatever they are given.

    A tool that only the user named may be called as the user said, and not otherwise.
    """
    names = {
        tool["name"]
        for spoken in talk.dossier.spoken.values()
        for tool in spoken.named("tools")
        if is_read_only(tool)
    }
    return [example for example in talk.examples(word) if example.name in names]


def _surfaces(tools: Sequence[Example]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(example.schema, example.arguments) for example in tools]


@scenario(SURVIVED, drawn=True)
def outlives_every_argument_that_fits(talk: Conversation) -> None:
    """A call with arguments that fit the schema leaves a server that goes on answering."""
    called = _harmless(talk, "callable-tool")
    drawable = [one for one in called if drawn.replaceable(one.schema, one.arguments)][:FEW]
    if not drawable:
        talk.unseen(SURVIVED, "no tool that may be called takes an argument that can be drawn")
        return

    def build(edit: drawn.Edit) -> Sequence[Say]:
        return [Say(_edited(talk, drawable, edit), owed=False)]

    plain = [drawn.Edit(number, "") for number in range(len(drawable))]
    Property(talk, Draw("fitting", (_surfaces(drawable),)), build, plain, survival=SURVIVED).hold(
        SURVIVED
    )


@scenario(VALIDATED, drawn=True)
def refuses_every_argument_that_does_not_fit(talk: Conversation) -> None:
    """A call without a required argument, or with any object for a text or number, is an error."""
    tools = [one for one in _harmless(talk, "argument-tool")[:FEW] if _spoilt(one)]
    if not tools:
        talk.unseen(VALIDATED, "no argument of the tools that may be called can be spoilt")
        return

    def build(edit: drawn.Edit) -> Sequence[Say]:
        return [Say(_edited(talk, tools, edit), owed=False)]

    def check(edit: drawn.Edit, heard: Heard, _twin: Heard) -> Iterator[Found]:
        reply = heard.replies[0]
        if edit.name and (not reply.answered or _ran(reply)):
            given = "nothing" if edit.gone else brief(edit.value, 60)
            yield Found(
                VALIDATED,
                expected=f"an error for {tools[edit.tool].name} with {given} for {edit.name}",
                actual=str(reply),
                at=reply,
            )

    plain = [drawn.Edit(0, ""), *(edit for n, tool in enumerate(tools) for edit in _plain(n, tool))]
    Property(
        talk,
        Draw("unfitting", (_surfaces(tools),)),
        build,
        plain,
        check,
        survival=VALIDATED,
    ).hold(VALIDATED)


def _spoilt(example: Example) -> bool:
    return any(_plain(0, example))


def _plain(number: int, example: Example) -> Iterator[drawn.Edit]:
    """Give what the scenario on validation sends."""
    missing = arguments.incomplete(example.schema, example.arguments)
    if missing is not None:
        yield drawn.Edit(number, missing[0], gone=True)
    mistyped = arguments.mistyped(example.schema, example.arguments)
    if mistyped is not None:
        yield drawn.Edit(number, mistyped[0], mistyped[1][mistyped[0]])


def _ran(reply: Reply) -> bool:
    result = reply.result
    if result is None or result.get("isError") is True:
        return False
    return result.get("resultType") != "input_required"


@scenario(GRACEFUL, drawn=True)
def answers_every_cursor(talk: Conversation) -> None:
    """A list asked for with any text as cursor gets an answer, and is given again afterwards."""
    methods = [method for method, _ in LISTS.values() if method in talk.spoken.listing]
    issued = list(talk.spoken.cursors.values())
    for method in methods[:FEW]:

        def build(cursor: str | None, method: str = method) -> Sequence[Say]:
            given = {} if cursor is None else {"cursor": cursor}
            after = talk.wire.build(method)
            return [Say(talk.wire.build(method, given), owed=False), Say(after, owed=False)]

        def check(
            cursor: str | None, heard: Heard, _twin: Heard, method: str = method
        ) -> Iterator[Found]:
            first, second = heard.replies
            if cursor is not None and not (first.answered and second.result is not None):
                yield Found(
                    GRACEFUL,
                    expected=f"an answer to {method} with the cursor {brief(cursor, 60)}, "
                    "and the list afterwards",
                    actual=str(second if first.answered else first),
                    at=second if first.answered else first,
                )

        Property(
            talk,
            Draw("cursors", (issued,)),
            build,
            (None, "x-touchstone-no-such-cursor"),
            check,
            survival=GRACEFUL,
        ).hold(GRACEFUL)
    talk.judge(GRACEFUL, True, expected="judged where a list is given")


@scenario(URIS, drawn=True)
def answers_every_uri(talk: Conversation) -> None:
    """A resource asked for by any text gets an answer."""
    listed = [item["uri"] for item in talk.spoken.named("resources", "uri")[:FEW]]
    never = "touchstone-never://nowhere/at-all"

    def build(uri: str) -> Sequence[Say]:
        return [Say(talk.wire.build("resources/read", {"uri": uri}), owed=False)]

    def check(uri: str, heard: Heard, _twin: Heard) -> Iterator[Found]:
        reply = heard.replies[0]
        if not reply.answered:
            yield Found(
                URIS,
                expected=f"an answer to resources/read of {brief(uri, 60)}",
                actual=str(reply),
                at=reply,
            )

    plain = (never, "", "not a uri", f"{never}/a\0b", f"{never}/%zz%")
    Property(talk, Draw("uris", (listed,)), build, plain, check, survival=URIS).hold(URIS)
