"""properties/generated: arguments of tools, cursors and URIs."""

from collections.abc import Iterator, Sequence
from typing import Any

from mcp_touchstone.suite import (
    LISTS,
    BrokenClause,
    Conversation,
    Draw,
    Example,
    Heard,
    Property,
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
"""Number of tools or lists that one scenario uses."""


def _edited(talk: Conversation, tools: Sequence[Example], edit: drawn.Edit) -> dict[str, Any]:
    example = tools[edit.tool]
    given = {name: value for name, value in example.arguments.items() if name != edit.name}
    if edit.name and not edit.gone:
        given[edit.name] = edit.value
    return talk.wire.build(CALL, {**example.params, "arguments": given})


def _harmless(talk: Conversation, word: str) -> list[Example]:
    """Return the examples of tools that are annotated read-only.

    A tool that only the user named may be called with the user's arguments only.
    """
    names = {
        tool["name"]
        for spoken in talk.profile.spoken.values()
        for tool in spoken.named("tools")
        if is_read_only(tool)
    }
    return [example for example in talk.examples(word) if example.name in names]


def _surfaces(tools: Sequence[Example]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(example.schema, example.arguments) for example in tools]


@scenario(SURVIVED, drawn=True)
def survives_any_valid_argument(talk: Conversation) -> None:
    """The server still answers after a call with any arguments that fit the schema."""
    called = _harmless(talk, "callable-tool")
    drawable = [one for one in called if drawn.replaceable(one.schema, one.arguments)][:FEW]
    if not drawable:
        talk.judge.unseen(SURVIVED, "no callable tool has an argument that can be generated")
        return

    def build(edit: drawn.Edit) -> Sequence[Say]:
        return [Say(_edited(talk, drawable, edit), owed=False)]

    plain = [drawn.Edit(number, "") for number in range(len(drawable))]
    Property(talk, Draw("fitting", (_surfaces(drawable),)), build, plain, survival=SURVIVED).hold(
        SURVIVED
    )


@scenario(VALIDATED, drawn=True)
def refuses_any_invalid_argument(talk: Conversation) -> None:
    """A call without a required argument, or with an object for a text or number, is an error."""
    tools = [one for one in _harmless(talk, "argument-tool")[:FEW] if _spoilt(one)]
    if not tools:
        talk.judge.unseen(VALIDATED, "no callable tool has an argument that can be made invalid")
        return

    def build(edit: drawn.Edit) -> Sequence[Say]:
        return [Say(_edited(talk, tools, edit), owed=False)]

    def check(edit: drawn.Edit, heard: Heard, _twin: Heard) -> Iterator[BrokenClause]:
        reply = heard.replies[0]
        if edit.name and (not reply.answered or reply.ran):
            given = "nothing" if edit.gone else brief(edit.value, 60)
            yield BrokenClause(
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
    """Yield the invalid arguments that validates_tool_arguments sends."""
    missing = arguments.incomplete(example.schema, example.arguments)
    if missing is not None:
        yield drawn.Edit(number, missing[0], gone=True)
    mistyped = arguments.mistyped(example.schema, example.arguments)
    if mistyped is not None:
        yield drawn.Edit(number, mistyped[0], mistyped[1][mistyped[0]])


@scenario(GRACEFUL, drawn=True)
def answers_any_cursor(talk: Conversation) -> None:
    """A list request with any text as cursor is answered, and the list works afterwards."""
    methods = [method for method, _ in LISTS.values() if method in talk.spoken.list_methods]
    issued = list(talk.spoken.cursors.values())
    for method in methods[:FEW]:

        def build(cursor: str | None, method: str = method) -> Sequence[Say]:
            given = {} if cursor is None else {"cursor": cursor}
            after = talk.wire.build(method)
            return [Say(talk.wire.build(method, given), owed=False), Say(after, owed=False)]

        def check(
            cursor: str | None, heard: Heard, _twin: Heard, method: str = method
        ) -> Iterator[BrokenClause]:
            first, second = heard.replies
            if cursor is not None and not (first.answered and second.result is not None):
                yield BrokenClause(
                    GRACEFUL,
                    expected=f"an answer to {method} with the cursor {brief(cursor, 60)}, "
                    "and then the list without it",
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
    if not methods:
        talk.judge.unseen(GRACEFUL, "the server declares no lists")


@scenario(URIS, drawn=True)
def answers_any_uri(talk: Conversation) -> None:
    """resources/read with any text as URI is answered."""
    listed = [item["uri"] for item in talk.spoken.named("resources", "uri")[:FEW]]
    never = "touchstone-never://nowhere/at-all"

    def build(uri: str) -> Sequence[Say]:
        return [Say(talk.wire.build("resources/read", {"uri": uri}), owed=False)]

    def check(uri: str, heard: Heard, _twin: Heard) -> Iterator[BrokenClause]:
        reply = heard.replies[0]
        if not reply.answered:
            yield BrokenClause(
                URIS,
                expected=f"an answer to resources/read of {brief(uri, 60)}",
                actual=str(reply),
                at=reply,
            )

    plain = (never, "", "not a uri", f"{never}/a\0b", f"{never}/%zz%")
    Property(talk, Draw("uris", (listed,)), build, plain, check, survival=URIS).hold(URIS)
    if not listed:
        talk.judge.take_back(URIS, "no resource is listed, so a refusal shows nothing")
